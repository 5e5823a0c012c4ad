"""Groups of a snapshot, their members and partitions."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.console.model.samples import UNKNOWN, time_reached

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator

    from wirebroker.client.groups.groups import GroupMember
    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.console.model.partition_slots import SlotTable
    from wirebroker.console.model.samples import SlotNumbers


# Partitions that are kept of a member.
_MOST_PARTITIONS: Final = 1000


class CommittedOffsets(NamedTuple):
    """The committed offsets of a group when they were last read, by slots of partitions.

    Attributes:
        offsets: Of a share group the first unfinished offsets.
        topics: Of the slots.
        lags: Of a share group, as its coordinator counts them; -1 for unknown.
    """

    taken_ms: int
    slots: array[int]
    offsets: array[int]
    topics: frozenset[str]
    lags: array[int] | None = None


class EndOffsets(NamedTuple):
    """End offsets over time, and the partitions of their slots."""

    slots: SlotTable
    samples: tuple[SlotNumbers, ...]
    now_ms: int


class MemberInfo(NamedTuple):
    """A member; epochs are of the newer protocols.

    Attributes:
        partitions: Topics and partitions that it reads, at most 1,000.
        target: Those that it will read; None for the classic protocol.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[tuple[str, int], ...]
    epoch: int | None
    target: tuple[tuple[str, int], ...] | None


def member_info(row: GroupMember) -> MemberInfo:
    """Return a member as the client describes it."""
    return MemberInfo(
        row.member_id,
        row.instance_id,
        row.client_id,
        row.host,
        _places(row.partitions),
        row.epoch,
        None if row.target is None else _places(row.target),
    )


def _places(partitions: list[TopicPartition]) -> tuple[tuple[str, int], ...]:
    return tuple((place.topic, place.partition) for place in partitions[:_MOST_PARTITIONS])


class GroupPartitionInfo(NamedTuple):
    """A group's progress in a partition; None if unknown.

    Attributes:
        lag_s: Age of the first record that is not committed; 0 without lag.
        is_lag_s_minimum: Whether `lag_s` is a lower bound, because the console does not know
            older end offsets.
    """

    topic: str
    partition: int
    committed: int | None
    end: int | None
    lag: int | None
    lag_s: float | None
    is_lag_s_minimum: bool
    member_id: str | None


class GroupInfo(NamedTuple):
    """A group; None if unknown or not read yet.

    Attributes:
        kind: classic, consumer, share or streams.
        lag_s: The largest of its partitions.
        trend: Records a second by which the lag grows.
        stuck: Why it makes no progress, in a sentence; None if it does.
        next_step: What to do about that.
        error: Why its members or offsets cannot be read.
    """

    name: str
    kind: str
    state: str
    assignor: str
    coordinator_id: int | None
    members: tuple[MemberInfo, ...] | None
    member_count: int | None
    partition_count: int | None
    lag: int | None
    lag_s: float | None
    is_lag_s_minimum: bool
    trend: float | None
    stuck: str | None
    next_step: str | None
    epoch: int | None
    assignment_epoch: int | None
    error: str | None
    progress: CommittedOffsets | None
    ends: EndOffsets

    @property
    def partitions(self) -> tuple[GroupPartitionInfo, ...]:
        """The committed and assigned partitions in order, computed for each call."""
        owners = {
            place: member.member_id for member in self.members or () for place in member.partitions
        }
        rows = {
            (partition.place.topic, partition.place.partition): GroupPartitionInfo(
                *partition.place,
                partition.committed,
                partition.end,
                partition.lag,
                partition.lag_s,
                partition.is_lag_s_minimum,
                owners.get((partition.place.topic, partition.place.partition)),
            )
            for partition in partition_lags(self.progress, self.ends)
        }
        for (topic, partition), member_id in owners.items():
            end = _end_of(self.ends, topic, partition)
            unread = GroupPartitionInfo(topic, partition, None, end, None, None, False, member_id)
            rows.setdefault((topic, partition), unread)
        return tuple(rows[place] for place in sorted(rows))


class LagOfGroup(NamedTuple):
    """The lag of a whole group; None if unknown."""

    lag: int | None
    lag_s: float | None
    is_lag_s_minimum: bool


def committed_in(group: GroupInfo, topic: str, partition: int) -> int | None:
    """Return the committed offset of a group in a partition, or None."""
    slot = group.ends.slots.slot_of(topic, partition)
    if group.progress is None or slot is None or slot not in group.progress.slots:
        return None
    return group.progress.offsets[group.progress.slots.index(slot)]


def group_lag(progress: CommittedOffsets, ends: EndOffsets) -> LagOfGroup:
    """Return the lag of a group, without a value for each partition."""
    latest = ends.samples[-1].numbers if ends.samples else ()
    lag, worst_s, is_minimum, is_known = 0, 0.0, False, False
    size = len(latest)
    lags = progress.lags or repeat(UNKNOWN)
    for slot, committed, shared_lag in zip(progress.slots, progress.offsets, lags, strict=False):
        end = latest[slot] if slot < size else UNKNOWN
        behind = shared_lag if progress.lags is not None else end - committed
        if end == UNKNOWN or (progress.lags is not None and shared_lag == UNKNOWN):
            continue
        is_known = True
        if behind > 0:
            lag += behind
            reached = time_reached(ends.samples, slot, committed)
            age_s = 0.0 if reached is None else (ends.now_ms - reached.time_ms) / 1000
            if reached is not None and age_s > worst_s:
                worst_s, is_minimum = age_s, reached.is_latest
    return LagOfGroup(lag, worst_s, is_minimum) if is_known else LagOfGroup(None, None, False)


class CommittedLag(NamedTuple):
    """A group's progress in a partition where it has committed; see GroupPartitionInfo."""

    place: TopicPartition
    committed: int
    end: int | None
    lag: int | None
    lag_s: float | None
    is_lag_s_minimum: bool


def partition_lags(progress: CommittedOffsets | None, ends: EndOffsets) -> Iterator[CommittedLag]:
    """Yield the lag in each partition that still exists."""
    if progress is None:
        return
    latest = ends.samples[-1] if ends.samples else None
    for index, slot in enumerate(progress.slots):
        place = ends.slots.place_of(slot)
        if place is None:
            continue
        committed = progress.offsets[index]
        end = None if latest is None else latest.number(slot)
        if progress.lags is not None:
            lag = None if progress.lags[index] < 0 else progress.lags[index]
        else:
            lag = None if end is None else max(0, end - committed)
        lag_s, is_minimum = _lag_seconds(ends, slot, committed, lag)
        yield CommittedLag(place, committed, end, lag, lag_s, is_minimum)


def _lag_seconds(
    ends: EndOffsets, slot: int, committed: int, lag: int | None
) -> tuple[float | None, bool]:
    if not lag:
        return (None if lag is None else 0.0), False
    reached = time_reached(ends.samples, slot, committed)
    if reached is None:
        return None, False
    return max(0.0, (ends.now_ms - reached.time_ms) / 1000), reached.is_latest


def _end_of(ends: EndOffsets, topic: str, partition: int) -> int | None:
    slot = ends.slots.slot_of(topic, partition)
    if slot is None or not ends.samples:
        return None
    return ends.samples[-1].number(slot)
