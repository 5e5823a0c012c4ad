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
MOST_LABELS: Final = 16
_LONGEST_NAME: Final = 200
_LONGEST_VALUE: Final = 200
_PREFIX: Final = "wirebroker_client_"
_KAFKA_PREFIX: Final = "org.apache.kafka."
_TOTAL: Final = "_total"
_INVALID: Final = re.compile(r"[^a-zA-Z0-9_]+")
# Labels and points per step: about 1 ms.
_STEP: Final = 256

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
        texts, work = _Texts(), 0
        for point in points:
            key = texts.key_of(point, own_labels)
            if key not in after and len(after) >= room:
                self.dropped += 1
            else:
                is_addition = point.form is Form.DELTA
                after[key] = after.get(key, 0.0) + point.value if is_addition else point.value
            work += 1 + len(key.labels)
            if work >= _STEP:
                work = 0
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


class _Texts:
    """The names and labels of one push; its points share most of them."""

    __slots__ = ("_label_names", "_labels", "_names")

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._label_names: dict[str, str] = {}
        self._labels: dict[tuple[str, str], tuple[str, str]] = {}

    def key_of(self, point: Point, own_labels: Mapping[str, str]) -> SeriesKey:
        """Return the series of a data point."""
        kind = Kind.GAUGE if point.form is Form.GAUGE else Kind.COUNTER
        name = self._names.get(point.name)
        if name is None:
            name = self._names[point.name] = _series_name(point.name)
        if kind is Kind.COUNTER and not name.endswith(_TOTAL):
            name += _TOTAL
        labels = dict(
            self._label(attribute) for attribute in point.attributes[:MOST_LABELS] if attribute[0]
        )
        # A client's own labels cannot be replaced by attributes of the same name.
        merged = sorted({**labels, **own_labels}.items())
        return SeriesKey(name, tuple(map(self._shared, merged)), kind)

    def _label(self, attribute: tuple[str, str]) -> tuple[str, str]:
        key, value = attribute
        name = self._label_names.get(key)
        if name is None:
            name = self._label_names[key] = _label_name(key)
        return name, value[:_LONGEST_VALUE]

    def _shared(self, label: tuple[str, str]) -> tuple[str, str]:
        return self._labels.setdefault(label, label)


def _series_name(text: str) -> str:
    return _PREFIX + _sanitized(text.removeprefix(_KAFKA_PREFIX))[:_LONGEST_NAME]


def _sanitized(text: str) -> str:
    return _INVALID.sub("_", text[: 2 * _LONGEST_NAME])


def _label_name(text: str) -> str:
    name = _sanitized(text)[:_LONGEST_NAME].lstrip("_")
    return f"_{name}" if not name or name[0].isdigit() else name
