"""Metrics pages of brokers are read within bounds, and by name where the exporter allows it."""

from __future__ import annotations

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.brokers.servers import client_of, running
from tests.support.http.http_client import http_address
from tests.support.http.scrape_pages import HTTP
from wirebroker.base.client_metric_names import ALL
from wirebroker.base.clock import SystemClock
from wirebroker.client.errors import ClientError
from wirebroker.client.http_client import HttpBounds
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.console.client_metrics import scrapes
from wirebroker.console.client_metrics.scrapes import read_timed_samples
from wirebroker.console.model.client_polls import poll_clients
from wirebroker.console.model.http_settings import HttpSettings
from wirebroker.console.model.polled_cluster import PolledCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wirebroker.console.client_metrics.text_page import ClientSamples


async def samples_of(url: str, token: str | None) -> ClientSamples:
    return (await read_timed_samples(url, token, SystemClock())).page


SAMPLE = b'kafka_server_quota_byte_rate{resource="Produce",user="a"} 1.0\n'


class Exporter:
    """A page that is a function of the requested names; it records the requests."""

    def __init__(self) -> None:
        self.respond: Callable[[list[str]], tuple[int, bytes]] = lambda _names: (200, SAMPLE)
        self.requests: list[list[str]] = []
        self.tokens: list[str | None] = []
        self.url = ""


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    """Run an exporter."""
    exporter = Exporter()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            names = parse_qs(urlsplit(self.path).query).get("name[]", [])
            exporter.requests.append(names)
            exporter.tokens.append(self.headers["Authorization"])
            status, body = exporter.respond(names)
            self.send_response(status)
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        exporter.url = f"http://127.0.0.1:{server.server_port}/metrics"
        try:
            yield exporter
        finally:
            server.shutdown()
            thread.join()


async def test_only_the_known_names_are_requested(exporter):
    page = await samples_of(exporter.url, "secret")
    assert [sample.name for sample in page.samples] == ["kafka_server_quota_byte_rate"]
    assert exporter.requests == [sorted(ALL)]
    assert exporter.tokens == ["Bearer secret"]


async def test_an_exporter_that_returns_no_names_is_read_whole(exporter):
    exporter.respond = lambda names: (200, b"" if names else b"other 1\n" * 1000 + SAMPLE)
    page = await samples_of(f"{exporter.url}?target=kafka", None)
    assert len(page.samples) == 1
    assert exporter.requests == [sorted(ALL), []]
    assert exporter.tokens == [None, None]


@pytest.mark.parametrize(
    ("status", "message"),
    [(401, "refuses the token: set wirebroker.http.token"), (500, "responds with status 500")],
)
async def test_a_refusal_is_explained_without_the_query(exporter, status, message):
    exporter.respond = lambda _names: (status, b"")
    with pytest.raises(ClientError, match=message) as raised:
        await samples_of(f"{exporter.url}?key=SECRET", None)
    assert exporter.url in str(raised.value)
    assert "SECRET" not in str(raised.value)
    assert "name[]" not in str(raised.value)
    assert "name%5B" not in str(raised.value)


async def test_a_large_page_is_refused(exporter, monkeypatch):
    monkeypatch.setattr(scrapes, "_BOUNDS", HttpBounds(5.0, 1 << 20))
    exporter.respond = lambda _names: (200, b"x" * (2 << 20))
    with pytest.raises(ClientError, match=r"/metrics is larger than 1 MiB"):
        await samples_of(exporter.url, None)


class MovedMonotonicClock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s

    def now_ms(self) -> int:
        return int(self.now_s * 1000)


def polled(url: str, clock: MovedMonotonicClock) -> PolledCluster:
    none: object = None
    return PolledCluster(none, clock, HttpSettings(metrics_urls={1: url}))  # type: ignore[arg-type]


async def test_a_page_that_fails_keeps_its_values_and_is_tried_again_later(exporter):
    clock = MovedMonotonicClock()
    cluster = polled(exporter.url, clock)
    await poll_clients(cluster)
    assert len(cluster.state.clients[1].meters) == 1
    exporter.respond = lambda _names: (503, b"")
    clock.now_s += 1
    await poll_clients(cluster)
    failed = cluster.state.clients[1]
    assert len(failed.meters) == 1
    assert failed.read_ms == 1_000_000
    assert "status 503" in str(failed.failure)
    clock.now_s += 59
    await poll_clients(cluster)
    assert len(exporter.requests) == 2
    exporter.respond = lambda _names: (200, SAMPLE)
    clock.now_s += 2
    await poll_clients(cluster)
    assert cluster.state.clients[1].failure is None


async def test_a_slow_page_is_read_rarely(exporter):
    clock = MovedMonotonicClock()
    cluster = polled(exporter.url, clock)

    def respond_late(_names: list[str]) -> tuple[int, bytes]:
        clock.now_s += 0.5
        return 200, SAMPLE

    exporter.respond = respond_late
    await poll_clients(cluster)
    clock.now_s += 99
    await poll_clients(cluster)
    assert len(exporter.requests) == 1
    clock.now_s += 2
    await poll_clients(cluster)
    assert len(exporter.requests) == 2


async def test_the_clients_of_a_broker_are_read(tmp_path):
    async with running(tmp_path, settings=HTTP) as server, client_of(server) as client:
        await client.ask(ApiKey.API_VERSIONS, 0, {})
        host, port = http_address(server)
        cluster = polled(f"http://{host}:{port}/metrics", MovedMonotonicClock())
        await poll_clients(cluster)
    [row] = cluster.state.clients[1].connections
    assert (row.software, row.listener, row.user, row.connections) == (
        "unknown",
        "PLAINTEXT",
        "ANONYMOUS",
        1,
    )
