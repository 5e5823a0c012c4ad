"""Values over time for plots, derived from samples when they are read."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

from wirebroker.console.model.partition_slots import SlotTable
from wirebroker.console.model.samples import SampleRing, rate_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from wirebroker.console.model.partition_slots import TopicSlots

    Point: TypeAlias = tuple[int, float]

_CLUSTER_POINTS: Final = 240
RECORDS_PER_S: Final = "records_per_s"
BYTES_PER_S: Final = "bytes_per_s"
LAG: Final = "lag"
SIZE_BYTES: Final = "size_bytes"


class History:
    """The values of about an hour; the collector adds to it.

    Attributes:
        slots, group_slots: The slots of partitions and of groups in the rings.
        ends: End offsets of partitions.
        leader_sizes, total_sizes: Bytes of the leaders' logs, and of all replicas.
        lags: Of groups.
    """

    __slots__ = (
        "_cluster",
        "ends",
        "group_slots",
        "lags",
        "leader_sizes",
        "slots",
        "total_sizes",
    )

    def __init__(self) -> None:
        self.slots = SlotTable()
        self.group_slots: dict[str, int] = {}
        self.ends = SampleRing()
        self.leader_sizes = SampleRing()
        self.total_sizes = SampleRing()
        self.lags = SampleRing()
        self._cluster: dict[str, deque[Point]] = {}

    def add_cluster(self, taken_ms: int, values: Mapping[str, float | None]) -> None:
        """Add the cluster's values, by metric."""
        for metric, value in values.items():
            points = self._cluster.setdefault(metric, deque(maxlen=_CLUSTER_POINTS))
            if value is not None and (not points or points[-1][0] < taken_ms):
                points.append((taken_ms, value))

    def forget_partitions(self) -> None:
        """Drop all numbers of partitions, and their slots."""
        self.slots = SlotTable()
        for ring in (self.ends, self.leader_sizes, self.total_sizes):
            ring.clear()

    def points(self, kind: str, name: str, metric: str) -> Sequence[Point]:
        """Return the times (ms since 1970) and values of a metric, the oldest first.

        `kind` is cluster, topic or group; `metric` records_per_s, bytes_per_s, lag or size_bytes.
        Without such values the result is empty.
        """
        if kind == "cluster":
            return list(self._cluster.get(metric, ()))
        if kind == "group" and metric == LAG and name in self.group_slots:
            return list(_numbers(self.lags, self.group_slots[name], 1))
        slots = self.slots.topics.get(name)
        if kind != "topic" or slots is None:
            return []
        return list(self._points_of_topic(slots, metric))

    def _points_of_topic(self, slots: TopicSlots, metric: str) -> Iterator[Point]:
        if metric == SIZE_BYTES:
            return _numbers(self.total_sizes, slots.first, slots.size)
        if metric == BYTES_PER_S:
            return _rates(self.leader_sizes, slots.first, slots.size)
        if metric == RECORDS_PER_S:
            return _rates(self.ends, slots.first, slots.size)
        return iter(())


def _numbers(ring: SampleRing, first: int, count: int) -> Iterator[Point]:
    for sample in ring:
        total = sample.total(first, count)
        if total is not None:
            yield sample.taken_ms, float(total)


def _rates(ring: SampleRing, first: int, count: int) -> Iterator[Point]:
    for before, after in pairwise(ring):
        rate = rate_of(before, after, first, count)
        if rate is not None:
            yield after.taken_ms, rate
