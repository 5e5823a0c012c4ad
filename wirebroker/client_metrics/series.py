"""The last numbers of each client, as series of Prometheus, within bounds.

    org.apache.kafka.producer.record.send.total  ->  wirebroker_client_producer_record_send_total

Deltas are added up. A push replaces all gauges of its client, so gauges missing from the push are
removed. Counters remain.

Source: KIP-714; OpenTelemetry's rules for names in Prometheus.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.metric_field import Kind
from wirebroker.client_metrics.otlp import Form

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from wirebroker.base.clock import Steps
    from wirebroker.client_metrics.otlp import Point

MOST_OF_ONE_CLIENT: Final = 2_000
MOST_LABELS: Final = 32
_LONGEST_NAME: Final = 200
_LONGEST_VALUE: Final = 200
_PREFIX: Final = "wirebroker_client_"
_KAFKA_PREFIX: Final = "org.apache.kafka."
_TOTAL: Final = "_total"
_INVALID: Final = re.compile(r"[^a-zA-Z0-9_]+")
# Points per step: about 1 ms.
_STEP: Final = 128

Labels = tuple[tuple[str, str], ...]


class SeriesKey(NamedTuple):
    """A series of one client."""

    name: str
    labels: Labels
    kind: Kind


class ClientSeries:
    """The series of all clients.

    Attributes:
        dropped: Number of data points beyond the bounds.
    """

    __slots__ = ("_by_client", "_count", "_most", "dropped")

    # _count == the number of series in _by_client.

    def __init__(self, most: int) -> None:
        self._most = most
        self._by_client: dict[bytes, dict[SeriesKey, float]] = {}
        self._count = 0
        self.dropped = 0

    def __len__(self) -> int:
        return self._count

    def record(
        self, client: bytes, own_labels: Mapping[str, str], points: Iterable[Point]
    ) -> Steps[None]:
        """Apply a client's push."""
        before = self._by_client.get(client, {})
        after = {key: value for key, value in before.items() if key.kind is Kind.COUNTER}
        room = min(MOST_OF_ONE_CLIENT, self._most - self._count + len(before))
        for count, point in enumerate(points, 1):
            key = _key_of(point, own_labels)
            if key not in after and len(after) >= room:
                self.dropped += 1
            else:
                is_addition = point.form is Form.DELTA
                after[key] = after.get(key, 0.0) + point.value if is_addition else point.value
            if count % _STEP == 0:
                yield
        self.remove(client)
        # Other clients may have used the room in the meantime.
        while len(after) > self._most - self._count:
            after.popitem()
            self.dropped += 1
        if after:
            self._by_client[client] = after
            self._count += len(after)

    def remove(self, client: bytes) -> None:
        """Remove a client's series."""
        self._count -= len(self._by_client.pop(client, ()))

    def series(self) -> Iterator[tuple[SeriesKey, float]]:
        """Iterate over all series while clients may come and go."""
        for series in list(self._by_client.values()):
            yield from series.items()


def _key_of(point: Point, own_labels: Mapping[str, str]) -> SeriesKey:
    kind = Kind.GAUGE if point.form is Form.GAUGE else Kind.COUNTER
    name = _PREFIX + _sanitized(point.name.removeprefix(_KAFKA_PREFIX))[:_LONGEST_NAME]
    if kind is Kind.COUNTER and not name.endswith(_TOTAL):
        name += _TOTAL
    labels = {
        _label_name(key): value[:_LONGEST_VALUE]
        for key, value in point.attributes[:MOST_LABELS]
        if key
    }
    # A client's own labels cannot be replaced by attributes of the same name.
    return SeriesKey(name, tuple(sorted({**labels, **own_labels}.items())), kind)


def _sanitized(text: str) -> str:
    return _INVALID.sub("_", text[: 2 * _LONGEST_NAME])


def _label_name(text: str) -> str:
    name = _sanitized(text)[:_LONGEST_NAME].lstrip("_")
    return f"_{name}" if not name or name[0].isdigit() else name
