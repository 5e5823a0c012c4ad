"""A broker's /metrics, read with Prometheus' own library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

from tests.support.http.http_client import ask_http, http_address

if TYPE_CHECKING:
    from wirebroker.broker.controller_server import ControllerServer
    from wirebroker.broker.server import Server

# Names and values of labels, in order.
Labels = tuple[tuple[str, str], ...]
Samples = dict[tuple[str, Labels], float]

HTTP = {"wirebroker.http.listeners": "127.0.0.1:0"}


def read_page(text: str) -> Samples:
    """Return the samples of a page; fail on duplicates."""
    samples: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = sample.name, tuple(sorted(sample.labels.items()))
            assert key not in samples, f"{key} occurs twice"
            samples[key] = sample.value
    return samples


async def scrape(server: Server | ControllerServer) -> Samples:
    reply = await ask_http(http_address(server), "/metrics")
    assert reply.status == 200, reply.text
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    return read_page(reply.text)


def value(samples: Samples, name: str, /, **labels: object) -> float | None:
    return samples.get((name, tuple(sorted((label, str(labels[label])) for label in labels))))
