"""Polls of groups: states, members, committed offsets.

Lists are read in full. Members and offsets are read for some groups at a time: those that changed
or waited longest first.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Final

from wirebroker.client.errors import ClientError, UnservedError
from wirebroker.client.groups.groups import committed_of
from wirebroker.client.groups.many_groups import (
    ManyOffsets,
    committed_of_groups,
    describe_groups,
    listed_groups_of,
)
from wirebroker.client.groups.share_groups import SHARE
from wirebroker.client.groups.share_offsets import shared_progress_of
from wirebroker.console.model.cluster_state import MOST_OFFSETS, WatchedGroup
from wirebroker.console.model.group_info import CommittedOffsets
from wirebroker.console.model.samples import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from wirebroker.client.groups.groups import DescribedConsumers
    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.console.model.partition_slots import SlotTable
    from wirebroker.console.model.polled_cluster import PolledCluster

# Groups of a request, and of a poll.
_CHUNK: Final = 50
_DESCRIBED_AT_ONCE: Final = 200
_READ_AT_ONCE: Final = 500
# Groups of a poll if each needs a request.
_ALONE_AT_ONCE: Final = 50
# Committed offsets that are kept of one group.
_MOST_OF_GROUP: Final = 200_000


async def poll_groups(cluster: PolledCluster) -> None:
    """Read the names, kinds and states of all groups."""
    groups = cluster.state.groups
    now_ms = cluster.clock.now_ms()
    listed: set[str] = set()
    slices = cluster.slices()

    async def read(broker_id: int) -> None:
        rows = await cluster.timed(listed_groups_of(cluster.client, broker_id), broker_id)
        for row in rows:
            kind = row.kind or "classic"
            group = groups.get(row.name)
            if group is None or group.kind != kind:
                group = groups[row.name] = WatchedGroup(row.name, kind, now_ms)
            group.take_state(row.state or "", broker_id, now_ms)
            listed.add(row.name)
            await slices.turn()

    if await cluster.on_each_broker(read):
        for name in groups.keys() - listed:
            del groups[name]


# --- members ---


async def poll_members(cluster: PolledCluster) -> None:
    """Read the members of some groups."""
    due = sorted(
        cluster.state.groups.values(), key=lambda group: (not group.is_changed, group.described_ms)
    )
    by_coordinator = _by_coordinator(due[:_DESCRIBED_AT_ONCE])
    slices = cluster.slices()

    async def read(broker_id: int) -> None:
        for chunk in _chunks_of_kind(by_coordinator[broker_id]):
            names = [group.name for group in chunk]
            described = await cluster.timed(
                describe_groups(cluster.client, broker_id, chunk[0].kind, names), broker_id
            )
            for group in chunk:
                _take_description(group, described.get(group.name), cluster.clock.now_ms())
                await slices.turn()

    await cluster.on_each_broker(read, by_coordinator)


def _take_description(
    group: WatchedGroup, described: DescribedConsumers | ClientError | None, now_ms: int
) -> None:
    group.described_ms = now_ms
    group.is_changed = False
    if isinstance(described, ClientError):
        group.error = str(described)
    elif described is not None:
        group.error = None
        group.take_description(described)


async def refresh_group(cluster: PolledCluster, group: WatchedGroup) -> None:
    """Read the members and the committed offsets of one group.

    Raises:
        ClientError: Its coordinator does not respond, or refuses.
    """
    coordinator_id = group.coordinator_id
    described = await cluster.timed(
        describe_groups(cluster.client, coordinator_id, group.kind, [group.name]), coordinator_id
    )
    _take_description(group, described.get(group.name), cluster.clock.now_ms())
    cluster.state.count_offsets()
    if group.kind == SHARE:
        await _read_share_group(cluster, group)
    else:
        await _read_alone(cluster, group)


# --- committed offsets ---


async def poll_commits(cluster: PolledCluster) -> None:
    """Read the committed offsets of some groups."""
    cluster.state.count_offsets()
    due = sorted(cluster.state.groups.values(), key=lambda group: group.read_ms)
    consumers = _by_coordinator(
        islice((group for group in due if group.kind != SHARE), _READ_AT_ONCE)
    )
    shares = _by_coordinator(
        islice((group for group in due if group.kind == SHARE), _ALONE_AT_ONCE)
    )

    async def read(broker_id: int) -> None:
        groups = consumers.get(broker_id, [])
        try:
            for first in range(0, len(groups), _CHUNK):
                await _read_together(cluster, broker_id, groups[first : first + _CHUNK])
        except UnservedError:  # before Kafka 3.0
            for group in groups[:_ALONE_AT_ONCE]:
                await _read_alone(cluster, group)
        for group in shares.get(broker_id, ()):
            await _read_share_group(cluster, group)

    await cluster.on_each_broker(read, consumers.keys() | shares.keys())


async def _read_together(
    cluster: PolledCluster, coordinator_id: int, groups: Sequence[WatchedGroup]
) -> None:
    names = [group.name for group in groups]
    committed = await cluster.timed(
        committed_of_groups(cluster.client, coordinator_id, names), coordinator_id
    )
    slices = cluster.slices()
    for group in groups:
        offsets = committed.get(group.name)
        group.read_ms = cluster.clock.now_ms()
        if isinstance(offsets, ClientError):
            group.error = str(offsets)
        elif offsets is not None:
            _take_progress(cluster, group, _progress(cluster, group.read_ms, offsets))
        await slices.turn()


def _progress(cluster: PolledCluster, now_ms: int, offsets: ManyOffsets) -> CommittedOffsets:
    slots, numbers = array("i"), array("q")
    slot_of = cluster.state.history.slots.slot_of
    topics: set[str] = set()
    for topic, partition, offset in zip(*offsets, strict=True):
        slot = slot_of(topic, partition)
        if slot is not None and len(slots) < _MOST_OF_GROUP:
            slots.append(slot)
            numbers.append(offset)
            topics.add(topic)
    return CommittedOffsets(now_ms, slots, numbers, frozenset(topics))


async def _read_alone(cluster: PolledCluster, group: WatchedGroup) -> None:
    group.read_ms = cluster.clock.now_ms()
    try:
        committed = await cluster.timed(
            committed_of(cluster.client, group.name), group.coordinator_id
        )
    except ClientError as error:
        if not error.code:
            raise
        group.error = str(error)
        return
    _take_progress(cluster, group, _progress_of_places(cluster, group.read_ms, committed))


def _progress_of_places(
    cluster: PolledCluster, now_ms: int, committed: Mapping[TopicPartition, int]
) -> CommittedOffsets:
    rows = ManyOffsets([], array("i"), array("q"))
    for place, offset in committed.items():
        rows.topics.append(place.topic)
        rows.partitions.append(place.partition)
        rows.offsets.append(offset)
    return _progress(cluster, now_ms, rows)


async def _read_share_group(cluster: PolledCluster, group: WatchedGroup) -> None:
    group.read_ms = cluster.clock.now_ms()
    try:
        progress = await cluster.timed(
            shared_progress_of(cluster.client, group.name), group.coordinator_id
        )
    except ClientError as error:
        if not error.code:
            raise
        group.error = str(error)
        return
    slots, starts, lags = array("i"), array("q"), array("q")
    table: SlotTable = cluster.state.history.slots
    for row in progress[:_MOST_OF_GROUP]:
        slot = table.slot_of(*row.place)
        if slot is not None and row.start is not None:
            slots.append(slot)
            starts.append(row.start)
            lags.append(UNKNOWN if row.lag is None else row.lag)
    topics = frozenset(row.place.topic for row in progress)
    _take_progress(cluster, group, CommittedOffsets(group.read_ms, slots, starts, topics, lags))


def _take_progress(cluster: PolledCluster, group: WatchedGroup, progress: CommittedOffsets) -> None:
    if not cluster.state.take_progress(group, progress):
        group.error = (
            f"the groups of this cluster have more than {MOST_OFFSETS:,} committed offsets, of"
            " which the console keeps no more"
        )


def _by_coordinator(groups: Iterable[WatchedGroup]) -> dict[int, list[WatchedGroup]]:
    by_coordinator: dict[int, list[WatchedGroup]] = defaultdict(list)
    for group in groups:
        by_coordinator[group.coordinator_id].append(group)
    return by_coordinator


def _chunks_of_kind(groups: Iterable[WatchedGroup]) -> Iterator[list[WatchedGroup]]:
    by_kind: dict[str, list[WatchedGroup]] = defaultdict(list)
    for group in groups:
        by_kind[group.kind].append(group)
    for of_kind in by_kind.values():
        for first in range(0, len(of_kind), _CHUNK):
            yield of_kind[first : first + _CHUNK]
