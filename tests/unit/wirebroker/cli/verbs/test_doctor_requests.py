"""`wirebroker doctor --metrics` names slow requests and the phase in which they wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.servers import ONE_NODE, ThreadedServer, config_of
from tests.support.cli.verbs import Verbs
from tests.support.http.http_client import http_address
from tests.support.http.scrape_pages import HTTP
from wirebroker.client.checks.slow_requests import slow_requests

if TYPE_CHECKING:
    from pathlib import Path

PREFIX = "kafka_network_requestmetrics_"


def page_of(request: str, **times_ms: float) -> str:
    """Return a page with the slowest hundredth of one API's requests and a faster half."""
    return "".join(
        f'{PREFIX}{phase}{{quantile="{share}",request="{request}"}} {value}\n'
        for phase, ms in times_ms.items()
        for share, value in (("0.5", 0.0), ("0.99", ms))
    )


@pytest.mark.parametrize(
    ("phase", "where", "step"),
    [
        ("requestqueuetimems", "other requests", "busy"),
        ("localtimems", "broker itself", "CPU"),
        ("remotetimems", "followers", "under-replicated"),
        ("responsesendtimems", "sending", "network"),
    ],
)
def test_slowest_phase_is_named(phase: str, where: str, step: str):
    page = page_of("Produce", totaltimems=1500.0, **{phase: 1400.0})
    (slow_request,) = slow_requests(page, 1000)
    assert (slow_request.name, slow_request.ms) == ("Produce", 1500.0)
    assert where in slow_request.where
    assert step in slow_request.next_step
    assert slow_requests(page, 1500) == []


@pytest.mark.parametrize("request_name", ["FetchConsumer", "FetchFollower", "Fetch", "JoinGroup"])
def test_waiting_by_design_is_not_slow(request_name: str):
    waits = page_of(request_name, totaltimems=60_000.0, remotetimems=60_000.0, localtimems=1.0)
    assert slow_requests(waits, 1000) == []
    works = page_of(request_name, totaltimems=3000.0, remotetimems=1.0, localtimems=2999.0)
    assert [request.name for request in slow_requests(works, 1000)] == [request_name]


def test_confluent_exporter_labels_and_other_metrics_are_read():
    page = (
        'kafka_network_requestmetrics_totaltimems{request="Metadata",quantile="0.99",} 2000\n'
        'kafka_network_requestmetrics_localtimems{request="Metadata",quantile="0.99",} 2000\n'
        "# a comment\nkafka_log_log_size 1\n"
    )
    assert [request.name for request in slow_requests(page, 1000)] == ["Metadata"]


def test_metrics_page_of_a_broker_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with ThreadedServer(config_of(tmp_path, settings=ONE_NODE | HTTP)) as served:
        verbs = Verbs("{}:{}".format(*served.address), capsys)
        url = "http://{}:{}/metrics".format(*http_address(served.server))
        verbs.do("topic", "create", "t")
        result = verbs.do("doctor", "--free", "0", "--metrics", url, "--slow", "600000")
        assert result.lines[-1] == "ok  requests"
        result = verbs.run("doctor", "--free", "0", "--metrics", url, "--slow", "0")
        assert result.status == 1
        assert "requests: 1 of 100 recent CreateTopics requests" in result.out
        result = verbs.do("doctor", "--free", "0", "--metrics", "127.0.0.1:1")
        assert "cannot read 127.0.0.1:1: 127.0.0.1:1 is not an http://" in result.out
