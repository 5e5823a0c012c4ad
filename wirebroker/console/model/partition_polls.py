"""Polls of partitions: end and start offsets, sizes on disk."""

from __future__ import annotations

from array import array
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from wirebroker.client.cluster.brokers import described_log_dirs, log_dir_of
from wirebroker.client.topics.leader_offsets import leader_offsets
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.special_offsets import EARLIEST, LATEST
from wirebroker.console.model.samples import UNKNOWN, SlotNumbers
from wirebroker.console.model.snapshot import LogDirInfo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from wirebroker.base.clock import Slices
    from wirebroker.console.model.polled_cluster import PolledCluster

# Partitions of a request: a broker works for it for some milliseconds.
_CHUNK: Final = 1000
# Topics of which it is found out whether they are hidden.
_MOST_UNSEEN: Final = 100


async def poll_ends(cluster: PolledCluster) -> None:
    """Read the end offset of each partition."""
    cluster.state.history.ends.add(await _offsets(cluster, LATEST))


async def poll_starts(cluster: PolledCluster) -> None:
    """Read the start offset of each partition."""
    cluster.state.starts = await _offsets(cluster, EARLIEST)


async def _offsets(cluster: PolledCluster, timestamp: int) -> SlotNumbers:
    slots = cluster.state.history.slots
    numbers = array("q", [UNKNOWN]) * slots.size
    slices = cluster.slices()
    by_leader = await _partitions_by_leader(cluster, slices)

    async def read(leader_id: int) -> None:
        for chunk in _chunks(by_leader[leader_id]):
            offsets = await cluster.timed(
                leader_offsets(cluster.client, leader_id, chunk, timestamp), leader_id
            )
            for row in offsets:
                slot = slots.slot_of(row.topic, row.partition)
                if slot is not None and not row.error_code:
                    numbers[slot] = row.offset
                await slices.turn()

    await cluster.on_each_broker(read, by_leader)
    return SlotNumbers(cluster.clock.now_ms(), numbers)


async def _partitions_by_leader(
    cluster: PolledCluster, slices: Slices
) -> dict[int, dict[str, list[int]]]:
    by_leader: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for name, layout in cluster.state.layouts.items():
        for index, partition in enumerate(layout.partitions):
            if partition.leader >= 0:
                by_leader[partition.leader][name].append(index)
        await slices.turn()
    return by_leader


def _chunks(partitions: Mapping[str, list[int]]) -> Iterator[dict[str, list[int]]]:
    chunk: dict[str, list[int]] = {}
    space = _CHUNK
    for name, numbers in partitions.items():
        first = 0
        while first < len(numbers):
            chunk[name] = numbers[first : first + space]
            first += space
            space -= len(chunk[name])
            if space == 0:
                yield chunk
                chunk, space = {}, _CHUNK
    if chunk:
        yield chunk


async def poll_sizes(cluster: PolledCluster) -> None:
    """Read the log directories of brokers, with the size of each replica.

    They name all topics, also those that the user may not describe.
    """
    state = cluster.state
    slots = state.history.slots
    leader_sizes = array("q", [UNKNOWN]) * slots.size
    total_sizes = array("q", [UNKNOWN]) * slots.size
    slices = cluster.slices()
    unseen: set[str] = set()

    async def read(broker_id: int) -> None:
        answer = await cluster.timed(described_log_dirs(cluster.client, [broker_id]), broker_id)
        results = answer[broker_id]
        state.log_dirs[broker_id] = tuple(_log_dir(broker_id, result) for result in results)
        for result in results:
            for topic in result.topics:
                await _take_sizes(broker_id, topic)

    async def _take_sizes(broker_id: int, topic: Any) -> None:
        layout = state.layouts.get(topic.name)
        if layout is None:
            unseen.add(topic.name)
        for log in topic.partitions:
            await slices.turn()
            slot = slots.slot_of(topic.name, log.partition_index)
            if layout is None or slot is None or log.is_future_key:
                continue
            total_sizes[slot] = max(0, total_sizes[slot]) + log.partition_size
            if layout.partitions[slot - layout.first_slot].leader == broker_id:
                leader_sizes[slot] = log.partition_size

    await cluster.on_each_broker(read)
    state.hidden_topics = await _hidden(cluster, sorted(unseen)[:_MOST_UNSEEN])
    now_ms = cluster.clock.now_ms()
    state.history.leader_sizes.add(SlotNumbers(now_ms, leader_sizes))
    state.history.total_sizes.add(SlotNumbers(now_ms, total_sizes))


async def _hidden(cluster: PolledCluster, names: list[str]) -> tuple[str, ...]:
    """Return the topics that the user may not describe; others were just created or deleted."""
    if not names:
        return ()
    answer = await cluster.timed(cluster.client.metadata(names))
    return tuple(
        topic.name
        for topic in answer.topics
        if topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    )


def _log_dir(broker_id: int, result: Any) -> LogDirInfo:
    return LogDirInfo(*log_dir_of(broker_id, result)[1:])
