"""Metrics of client connections, and of the use of quotas.

Clients choose their software's name and their ids, so the number of series is limited.

Source: Kafka's Selector (connections), ClientQuotaManager, ConnectionQuotas.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from wirebroker.base.client_metric_names import (
    ACCEPT_RATE,
    CONNECTIONS,
    QUOTA_ATTRIBUTES,
    QUOTA_PREFIX,
    SOFTWARE_CONFLUENT,
    SOFTWARE_STRIMZI,
)
from wirebroker.base.metric_field import Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from wirebroker.base.clock import Slices
    from wirebroker.metrics.page import Labels, Page
    from wirebroker.quotas.client_quotas import ClientRates, QuotaUsage
    from wirebroker.request.session import Session

MOST_CONNECTION_SERIES: Final = 1000
MOST_QUOTA_SERIES: Final = 1000
# The label of connections beyond the limit.
OTHER: Final = "(other)"

_SOFTWARE_DOC: Final = "Open connections by the software of the client (KIP-511)."
_CONNECTIONS_DOC: Final = "Open connections by listener, user and software of the client."
_ACCEPT_DOC: Final = "New connections per second from an IP address with a quota."
_QUOTA_DOCS: Final = {
    "byte_rate": "Bytes per second that clients with a quota send or receive.",
    "request_time": "Share of the event loop that clients with a quota use, in percent.",
    "throttle_time": "Throttle time of the next request of these clients, in milliseconds.",
}


class _Software(NamedTuple):
    listener: str
    name: str
    version: str


class _Client(NamedTuple):
    software: _Software
    user: str


def client_dialects(dialects: Sequence[str], names: Collection[str]) -> Sequence[str]:
    """Return the dialects of these metrics; requests by name get one even if none has them."""
    if not names or not {"strimzi", "confluent"}.isdisjoint(dialects):
        return dialects
    return (*dialects, "strimzi")


async def add_connections(
    page: Page, sessions: Iterable[Session], dialects: Collection[str], slices: Slices
) -> None:
    """Add the connections by listener, software and user."""
    counts: Counter[_Client] = Counter()
    for session in sessions:
        if not session.has_ended:
            client = _client_of(session)
            if client not in counts and len(counts) >= MOST_CONNECTION_SERIES:
                client = _Client(_Software(session.listener_name, OTHER, OTHER), OTHER)
            counts[client] += 1
        await slices.turn()
    by_software: Counter[_Software] = Counter()
    for client, count in sorted(counts.items()):
        by_software[client.software] += count
        page.add_one(CONNECTIONS, Kind.GAUGE, _CONNECTIONS_DOC, _own_labels(client), count)
    for software, count in by_software.items():
        for name, labels in _kafka_names(software, dialects):
            page.add_one(name, Kind.GAUGE, _SOFTWARE_DOC, labels, count)


def _client_of(session: Session) -> _Client:
    software = _Software(
        session.listener_name, session.client_software_name, session.client_software_version
    )
    return _Client(software, session.principal.name)


def _own_labels(client: _Client) -> Labels:
    software = client.software
    return (
        ("client_software_name", software.name),
        ("client_software_version", software.version),
        ("listener", software.listener),
        ("user", client.user),
    )


def _kafka_names(software: _Software, dialects: Collection[str]) -> Iterable[tuple[str, Labels]]:
    if "strimzi" in dialects:
        yield (
            SOFTWARE_STRIMZI,
            (
                ("clientSoftwareName", software.name),
                ("clientSoftwareVersion", software.version),
                ("listener", software.listener),
            ),
        )
    if "confluent" in dialects:
        yield (
            SOFTWARE_CONFLUENT,
            (
                ("client_software_name", software.name),
                ("client_software_version", software.version),
                ("listener", software.listener),
            ),
        )


async def add_quota_usage(
    page: Page,
    rates: Mapping[str, ClientRates],
    now_ms: float,
    dialects: Collection[str],
    slices: Slices,
) -> None:
    """Add the use of quotas by the most recently active clients, by Kafka's quota types."""
    for kind, of_kind in rates.items():
        rate_name, throttle_name = QUOTA_ATTRIBUTES[kind]
        for usage in of_kind.usages(now_ms, MOST_QUOTA_SERIES):
            for attribute, value in (
                (rate_name, usage.per_second),
                (throttle_name, usage.throttle_ms),
            ):
                for name, labels in _quota_names(kind, attribute, usage, dialects):
                    page.add_one(name, Kind.GAUGE, _QUOTA_DOCS[attribute], labels, value)
            await slices.turn()


def _quota_names(
    kind: str, attribute: str, usage: QuotaUsage, dialects: Collection[str]
) -> Iterable[tuple[str, Labels]]:
    """Yield names and labels; a label that does not apply is missing, as in Kafka."""
    user = sanitized_user(usage.user)
    if "strimzi" in dialects:
        labels = (("clientId", usage.client_id), ("resource", kind), ("user", user))
        yield QUOTA_PREFIX + attribute, tuple(label for label in labels if label[1])
    if "confluent" in dialects:
        named = (("client_id", usage.client_id), ("user", user))
        name = f"kafka_server_{kind.lower()}_{attribute}"
        yield name, tuple(label for label in named if label[1])


def sanitized_user(name: str) -> str:
    """Return a user name, encoded as in the labels of quota metrics.

    Source: Kafka's Sanitizer.sanitize.
    """
    return quote(name, safe="-._", errors="surrogatepass").replace("~", "%7E")


def add_accept_rates(page: Page, rates: Iterable[tuple[str, float]]) -> None:
    """Add the new connections per second from addresses with a quota."""
    for address, per_second in rates:
        page.add_one(ACCEPT_RATE, Kind.GAUGE, _ACCEPT_DOC, (("ip", address),), per_second)
