"""The clients of a broker, from the samples of its metrics page."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

from wirebroker.base.client_metric_names import (
    ACCEPT_RATE,
    CONNECTIONS,
    QUOTA_NAMES,
    SOFTWARE,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.console.client_metrics.text_page import ClientSample, ClientSamples

# The kind of meter that measures IP addresses; the other kinds are Kafka's quota types.
ADDRESS: Final = "Address"
_QUOTED: Final = re.compile(r'"(.*)"', re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)")


class ClientConnections(NamedTuple):
    """Connections of one kind to a broker.

    Attributes:
        user: None if the broker does not report it.
    """

    software: str
    version: str
    listener: str
    user: str | None
    connections: int


class ClientMeter(NamedTuple):
    """The use of a quota by the clients that share it; an empty name matches any.

    Attributes:
        kind: Kafka's quota type, or ADDRESS.
        rate: Bytes per second, percent, or changes or connections per second.
        throttle_ms: None if unknown.
    """

    kind: str
    user: str
    client_id: str
    address: str
    rate: float
    throttle_ms: float | None


class BrokerClients(NamedTuple):
    """The clients of a broker; with a `failure`, the other values are those last read.

    Attributes:
        is_cut: Whether the page has more series than are read.
        read_ms: When it was read (ms since 1970); 0 for never.
    """

    connections: tuple[ClientConnections, ...] = ()
    meters: tuple[ClientMeter, ...] = ()
    is_cut: bool = False
    read_ms: int = 0
    failure: str | None = None

    @property
    def connection_count(self) -> int:
        """Number of open connections."""
        return sum(row.connections for row in self.connections)


def broker_clients(page: ClientSamples, now_ms: int) -> BrokerClients:
    """Return the clients of a page."""
    return BrokerClients(
        tuple(_connections(page.samples)),
        tuple(_meters(page.samples)),
        page.is_cut,
        now_ms,
    )


def _connections(samples: Iterable[ClientSample]) -> list[ClientConnections]:
    """Return the connections from the most detailed metric of the page.

    A page may report the same connections under several names, with one sample per network thread.
    """
    counts: dict[str, Counter[tuple[str, str, str, str | None]]] = {}
    for sample in samples:
        is_own = sample.name == CONNECTIONS
        if (not is_own and sample.name not in SOFTWARE) or not sample.value >= 1:
            continue
        labels = sample.labels
        key = (
            _plain(labels.get("clientsoftwarename", "")),
            _plain(labels.get("clientsoftwareversion", "")),
            _plain(labels.get("listener", "")),
            labels.get("user", "") if is_own else None,
        )
        counts.setdefault(sample.name, Counter())[key] += int(sample.value)
    if not counts:
        return []
    chosen = counts[CONNECTIONS if CONNECTIONS in counts else min(counts)]
    return [ClientConnections(*key, count) for key, count in sorted(chosen.items(), key=str)]


def _meters(samples: Iterable[ClientSample]) -> list[ClientMeter]:
    values: dict[tuple[str, str, str, str], dict[str, float]] = {}
    for sample in samples:
        if sample.name == ACCEPT_RATE and "ip" in sample.labels:
            key = ADDRESS, "", "", _plain(sample.labels["ip"])
            values.setdefault(key, {})["rate"] = sample.value
            continue
        kind_and_attribute = QUOTA_NAMES.get(sample.name)
        if kind_and_attribute is None:
            continue
        kind, attribute = kind_and_attribute
        user, client_id = sample.labels.get("user", ""), sample.labels.get("clientid", "")
        if not kind:
            # Some rules of the exporter put the user into the resource.
            kind, _, user_part = sample.labels.get("resource", "").partition(", user=")
            user = user_part or user
        name = "throttle" if attribute == "throttle_time" else "rate"
        key = kind, unquote(_plain(user)), _plain(client_id), ""
        values.setdefault(key, {})[name] = sample.value
    return [
        ClientMeter(*key, found["rate"], _known(found.get("throttle", math.nan)))
        for key, found in values.items()
        if _known(found.get("rate", math.nan)) is not None
    ]


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _plain(text: str) -> str:
    """Remove the quotes that JMX puts around values with special characters."""
    match = _QUOTED.fullmatch(text)
    return text if match is None else _ESCAPED.sub(r"\1", match[1])
