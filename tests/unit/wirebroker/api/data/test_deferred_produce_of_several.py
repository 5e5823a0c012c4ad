"""A prepared Produce of several partitions with followers gets the slow path's response."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.produce_line import ProduceLine
from tests.support.protocol.raw_client import request_frame
from tests.support.protocol.requests import produce_request
from tests.support.records.batches import batch
from tests.support.replicas.roles import lead, offline
from tests.support.tools.waiting import until
from tests.unit.wirebroker.api.data.prepared_kit import SHORT_VERSIONS, world_of
from wirebroker.api.data.delayed_produce import LEAST_WAIT_MS
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.unit.wirebroker.api.data.prepared_kit import World

ALL = -1
COUNT = 3
_OFFLINE_AT_ONCE = (ErrorCode.KAFKA_STORAGE_ERROR, -1)


def records_of(value: bytes) -> dict[tuple[str, int], bytes]:
    return {("t", index): batch(value) for index in range(COUNT)}


def follow(world: World, index: int, offset: int) -> None:
    partition = world.partition("t", index)
    partition.update_follower(2, fetch_offset=offset, log_start_offset=0, broker_epoch=-1)


def waiting(world: World) -> list[int]:
    """Return how many responses or parts wait in each partition."""
    return [world.partition("t", index).watcher_count for index in range(COUNT)]


async def begin(world: World, value: bytes, **fields: Any) -> asyncio.Task[list[Any]]:
    before = sum(waiting(world))
    sent = asyncio.create_task(world.produce(records_of(value), acks=ALL, **fields))
    await until(lambda: sum(waiting(world)) > before)
    return sent


async def outcomes(sent: asyncio.Task[list[Any]]) -> list[tuple[int, int]]:
    """Return error codes and base offsets in the order of the request."""
    return [(result.error_code, result.base_offset) for result in await sent]


@contextlib.asynccontextmanager
async def routine_of(path: Path, **arguments: Any) -> AsyncIterator[World]:
    """Prepare a producer's requests with followers: two records are committed everywhere."""
    produce_fields = {
        name: arguments.pop(name) for name in ("timeout_ms", "version") if name in arguments
    }
    async with world_of(path, COUNT, **arguments) as world:
        for index in range(COUNT):
            lead(world.partition("t", index), replicas=(1, 2))
        for number in range(2):
            sent = await begin(world, b"%d" % number, **produce_fields)
            for index in range(COUNT):
                follow(world, index, number + 1)
            assert await outcomes(sent) == [(0, number)] * COUNT
        assert (world.short_count, waiting(world)) == (0, [0, 0, 0])
        yield world


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
@pytest.mark.parametrize("version", SHORT_VERSIONS)
async def test_response_is_sent_when_the_last_partition_is_committed(tmp_path, version, order):
    async with routine_of(tmp_path, version=version) as world:
        sent = await begin(world, b"2", version=version)
        for index in order:
            assert not sent.done()
            follow(world, index, 3)
            assert world.partition("t", index).watcher_count == 0
        assert await outcomes(sent) == [(0, 2)] * COUNT
        assert world.short_count == 1
        assert [world.stored(index) for index in range(COUNT)] == [[b"0", b"1", b"2"]] * COUNT


async def test_a_partition_without_followers_is_not_waited_for(tmp_path):
    async with routine_of(tmp_path) as world:
        lead(world.partition("t", 1))
        for number in (2, 3):
            sent = await begin(world, b"%d" % number)
            assert waiting(world) == [1, 0, 1]
            follow(world, 0, number + 1)
            follow(world, 2, number + 1)
            assert await outcomes(sent) == [(0, number)] * COUNT
        assert world.short_count == 1, "the first of the two looked the partition up again"


@pytest.mark.parametrize("version", SHORT_VERSIONS)
async def test_new_leader_of_one_partition_is_reported_as_on_slow_path(tmp_path, version):
    async with routine_of(tmp_path, version=version) as world:
        slow_path = ProduceLine(world.server, has_memory=False)
        sent = await begin(world, b"2", version=version)
        request = produce_request(records_of(b"3"), acks=ALL)
        for topic in request["topic_data"] if version >= 13 else ():
            topic["topic_id"] = world.topic_id
        frame = request_frame(ApiKey.PRODUCE, version, request)
        exchanging = asyncio.create_task(slow_path.exchange(frame))
        await until(lambda: waiting(world) == [2, 2, 2])
        moved = world.partition("t", 1)
        lead(moved, replicas=(1, 2), leader=2)
        moved.wake_watchers()
        assert not sent.done()
        follow(world, 0, 4)
        follow(world, 2, 4)
        lost = (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
        assert await outcomes(sent) == [(0, 2), lost, (0, 2)]
        assert world.short_count == 1
        # Apart from the correlation id and the slow path's append offset.
        fast_response = world.last_answer[8:].replace((2).to_bytes(8), (3).to_bytes(8))
        assert fast_response == (await exchanging)[8:]


async def test_only_the_uncommitted_partition_times_out(tmp_path):
    async with routine_of(tmp_path, timeout_ms=300) as world:
        sent = await begin(world, b"2", timeout_ms=300)
        follow(world, 0, 3)
        follow(world, 2, 3)
        late = (ErrorCode.REQUEST_TIMED_OUT, 2)
        assert await outcomes(sent) == [(0, 2), late, (0, 2)]
        assert (world.short_count, waiting(world)) == (1, [0, 0, 0])
        follow(world, 1, 3)
        assert world.stored(1)[2] == b"2", "perhaps it is committed later"


async def test_too_few_in_sync_replicas_fail_only_their_partition(tmp_path):
    async with routine_of(tmp_path, min_insync_replicas="2") as world:
        sent = await begin(world, b"2")
        partition = world.partition("t", 2)
        leading = partition.leading
        assert leading is not None
        # It catches up and leaves the ISR at the same time.
        leading.followers[2].log_end_offset = 3
        partition.log.set_high_watermark(3)
        partition.isr_accepted({1}, partition_epoch=99)
        partition.wake_watchers()
        follow(world, 0, 3)
        follow(world, 1, 3)
        lacking = (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 2)
        assert await outcomes(sent) == [(0, 2), (0, 2), lacking]
        assert world.short_count == 1


async def test_failed_disk_during_the_wait_acknowledges_nothing(
    tmp_path,
):
    async with routine_of(tmp_path) as world:
        sent = await begin(world, b"2")
        follow(world, 0, 3)
        follow(world, 1, 3)
        with offline(world.partition("t", 0).directory):
            assert waiting(world) == [0, 0, 1]
            world.partition("t", 2).wake_watchers()
            assert await outcomes(sent) == [_OFFLINE_AT_ONCE] * COUNT
        assert world.short_count == 1


async def test_wait_is_shortened_when_the_client_disconnects(tmp_path):
    async with routine_of(tmp_path, timeout_ms=3_600_000) as world:
        sent = await begin(world, b"2", timeout_ms=3_600_000)
        follow(world, 1, 3)
        world.disconnect()
        with pytest.raises(ConnectionError):
            await sent
        soon_s = asyncio.get_running_loop().time() + LEAST_WAIT_MS / 1000
        for index in (0, 2):
            (part,) = world.partition("t", index).deferred_responses(ALL)._waiting
            assert part.deadline_s <= soon_s, "as for a disk"
        assert waiting(world) == [1, 0, 1]
        follow(world, 0, 3)
        follow(world, 2, 3)
        assert waiting(world) == [0, 0, 0]
