"""Slow requests in a broker's /metrics, and the phase in which they wait.

The names are those of wirebroker, and of the JMX exporter with Strimzi's or Confluent's rules:
`kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.99"}`.
"""

from __future__ import annotations

import re
import urllib.request
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_SAMPLE: Final = re.compile(
    r"^kafka_network_requestmetrics_(totaltimems|requestqueuetimems|localtimems|remotetimems"
    r"|responsesendtimems)\{([^}]*)\} (\S+)",
    re.MULTILINE,
)
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')
_QUANTILE: Final = "0.99"
# They wait for records or members by design.
_WAITING: Final = frozenset({"Fetch", "FetchConsumer", "FetchFollower", "JoinGroup", "SyncGroup"})
_MOST_BYTES: Final = 64 << 20
_PATIENCE_S: Final = 10.0

# Phase -> its description, and how to fix it.
_PHASES: Final = {
    "requestqueuetimems": (
        "waiting for the broker's other requests",
        "the broker is busy: see which APIs have many requests, and spread partitions over brokers",
    ),
    "localtimems": (
        "in the broker itself",
        "see the broker's CPU and disk, and the size of these requests (requestbytes)",
    ),
    "remotetimems": (
        "waiting for followers, the disk or the controller",
        "see under-replicated partitions, flush times (logflushrateandtimems) and `quorum`",
    ),
    "responsesendtimems": (
        "sending the response",
        "see the network, and clients that read slowly",
    ),
}


class SlowRequests(NamedTuple):
    """An API whose recent requests are slow.

    Attributes:
        name: Kafka's name of the API.
        ms: The 99th percentile.
        where: The phase that takes most of it.
    """

    name: str
    ms: float
    where: str
    next_step: str


def read_metrics(url: str) -> str:
    """Return a metrics page; blocks.

    Raises:
        OSError: It cannot be read.
        ValueError: The URL is not an HTTP URL.
    """
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url} is not an http:// or https:// address of a /metrics page")
    with urllib.request.urlopen(url, timeout=_PATIENCE_S) as response:  # noqa: S310 - checked
        return str(response.read(_MOST_BYTES), "utf-8", "replace")


def slow_requests(page: str, slow_ms: float) -> list[SlowRequests]:
    """Return the APIs whose 99th percentile is over `slow_ms`, unless they wait by design."""
    slow_apis: list[SlowRequests] = []
    for name, phases in sorted(_by_request(page).items()):
        if name in _WAITING:
            phases["remotetimems"] = 0.0
        total = phases.pop("totaltimems", 0.0)
        if name in _WAITING:
            total = sum(phases.values())
        if total > slow_ms and phases:
            phase, next_step = _PHASES[max(phases, key=phases.__getitem__)]
            slow_apis.append(SlowRequests(name, total, phase, next_step))
    return slow_apis


def _by_request(page: str) -> dict[str, dict[str, float]]:
    phases_by_request: dict[str, dict[str, float]] = {}
    for phase, name, value in _samples(page):
        phases_by_request.setdefault(name, {})[phase] = value
    return phases_by_request


def _samples(page: str) -> Iterator[tuple[str, str, float]]:
    for phase, labels, value in _SAMPLE.findall(page):
        named = dict(_LABEL.findall(labels))
        if named.get("quantile") == _QUANTILE and "request" in named:
            yield phase, named["request"], float(value)
