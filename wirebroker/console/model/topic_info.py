"""Topics of a snapshot, and their partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.codecs.primitives import uuid_text

if TYPE_CHECKING:
    from wirebroker.console.model.samples import SlotNumbers, Window


class PartitionLayout(NamedTuple):
    """A partition's leader (-1 for none) and replicas, as brokers describe it."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]

    @property
    def is_under_replicated(self) -> bool:
        """Whether replicas are not in sync."""
        return len(self.isr) < len(self.replicas)


class TopicLayout(NamedTuple):
    """A topic as brokers describe it; `first_slot` is that of partition 0 in all samples."""

    name: str
    topic_id: bytes
    is_internal: bool
    first_slot: int
    partitions: tuple[PartitionLayout, ...]


class Figures(NamedTuple):
    """Numbers of all partitions; None or empty before they were first read.

    Attributes:
        ends: End offsets.
        starts: Start offsets.
        leader_sizes: Bytes of the leaders' logs.
        total_sizes: Bytes of all replicas.
    """

    ends: Window
    starts: SlotNumbers | None
    leader_sizes: Window
    total_sizes: SlotNumbers | None


class PartitionInfo(NamedTuple):
    """A partition; None if unknown. `size_bytes` is that of the leader's log."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    start_offset: int | None
    end_offset: int | None
    size_bytes: int | None
    records_per_s: float | None


class TopicInfo(NamedTuple):
    """A topic; None if unknown.

    Attributes:
        record_count: Offsets between start and end; fewer records if the topic is compacted or has
            transactions.
        size_bytes: Of all replicas.
        bytes_per_s: Growth of the leaders' logs; None if they shrank.
        groups: That committed offsets for it.
    """

    name: str
    topic_id: str
    is_internal: bool
    partition_count: int
    replication_factor: int
    leaderless_count: int
    under_replicated_count: int
    record_count: int | None
    size_bytes: int | None
    records_per_s: float | None
    bytes_per_s: float | None
    groups: tuple[str, ...]
    layout: TopicLayout
    figures: Figures

    @property
    def partitions(self) -> tuple[PartitionInfo, ...]:
        """The partitions, computed for each call."""
        return tuple(
            _partition(index, layout, self.layout.first_slot + index, self.figures)
            for index, layout in enumerate(self.layout.partitions)
        )


def topic_info(layout: TopicLayout, figures: Figures, groups: tuple[str, ...]) -> TopicInfo:
    """Return a topic with its totals."""
    first, count = layout.first_slot, len(layout.partitions)
    ends = figures.ends.latest
    end = None if ends is None else ends.total(first, count)
    start = None if figures.starts is None else figures.starts.total(first, count)
    total_sizes = figures.total_sizes
    return TopicInfo(
        layout.name,
        uuid_text(layout.topic_id) if any(layout.topic_id) else "",
        layout.is_internal,
        count,
        max((len(partition.replicas) for partition in layout.partitions), default=0),
        sum(partition.leader < 0 for partition in layout.partitions),
        sum(partition.is_under_replicated for partition in layout.partitions),
        None if end is None or start is None else max(0, end - start),
        None if total_sizes is None else total_sizes.total(first, count),
        figures.ends.rate(first, count),
        figures.leader_sizes.rate(first, count),
        groups,
        layout,
        figures,
    )


def _partition(index: int, layout: PartitionLayout, slot: int, figures: Figures) -> PartitionInfo:
    ends, leader_sizes = figures.ends.latest, figures.leader_sizes.latest
    return PartitionInfo(
        index,
        layout.leader,
        layout.leader_epoch,
        layout.replicas,
        layout.isr,
        layout.offline,
        None if figures.starts is None else figures.starts.number(slot),
        None if ends is None else ends.number(slot),
        None if leader_sizes is None else leader_sizes.number(slot),
        figures.ends.rate(slot, 1),
    )
