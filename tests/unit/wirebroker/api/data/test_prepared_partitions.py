"""The prepared Produce of several partitions: when it applies fully or in part."""

from __future__ import annotations

import asyncio
import errno

import pytest

from tests.support.protocol.raw_client import request_frame
from tests.support.protocol.requests import produce_request
from tests.support.records.batches import batch
from tests.support.storage.failing_files import FailingFiles
from tests.transcripts.raw_records import batch_of, record
from tests.unit.wirebroker.api.data.prepared_kit import SHORT_VERSIONS, world_of
from wirebroker.api.data.prepared_produce import MAX_CACHED_PARTITIONS
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", SHORT_VERSIONS)
async def test_several_partitions_take_the_fast_path_in_any_order(tmp_path, version, acks):
    async with world_of(tmp_path, 5) as world:
        ends = [0] * 5
        for number, indexes in enumerate([(0, 1, 2, 3), (0, 1, 2, 3), (3, 1), (2,), (1, 0, 3, 2)]):
            records = {("t", index): batch(b"%d" % number) for index in indexes}
            results = await world.produce(records, version=version, acks=acks)
            assert [result.error_code for result in results] == [0] * len(indexes)
            assert [result.index for result in results] == list(indexes)
            assert [result.base_offset for result in results] == [ends[index] for index in indexes]
            for index in indexes:
                ends[index] += 1
        assert world.short_count == 3
        assert [len(world.stored(index)) for index in range(5)] == ends


async def test_new_partition_takes_slow_path_then_fast_path(tmp_path):
    async with world_of(tmp_path, 3) as world:
        await world.learn()
        for count in (0, 1):
            results = await world.produce({("t", 0): batch(b"a"), ("t", 2): batch(b"a")})
            assert [result.error_code for result in results] == [0, 0]
            assert world.short_count == count


async def test_memo_covers_all_partitions_and_evicts_the_oldest(tmp_path):
    async with world_of(tmp_path, MAX_CACHED_PARTITIONS + 1) as world:
        await world.learn()
        memo = world.memo
        for index in range(1, MAX_CACHED_PARTITIONS + 1):
            await world.produce({("t", index): batch(b"a")})
        assert (world.memo, world.short_count) == (memo, 0)
        # The first was evicted by the last; it returns in place of the second.
        for index, count in ((MAX_CACHED_PARTITIONS, 1), (1, 2), (0, 2), (1, 2), (0, 3)):
            (result,) = await world.produce({("t", index): batch(b"a")})
            assert (result.index, result.error_code) == (index, 0)
            assert (world.memo, world.short_count) == (memo, count)


async def test_changed_authorization_decision_renews_the_memo(tmp_path):
    async with world_of(tmp_path, 2) as world:
        await world.learn()
        memo = world.memo
        await world.produce({("t", 1): batch(b"a")})
        assert world.memo is memo
        world.admission.epoch += 1
        await world.produce({("t", 1): batch(b"a")})
        assert (world.memo is memo, world.short_count) == (False, 0)
        await world.produce({("t", 1): batch(b"a")})
        assert world.short_count == 1


def _several(count: int = 3, /, **odd: bytes) -> dict[tuple[str, int], bytes]:
    records = {("t", index): batch(b"a") for index in range(count)}
    return records | {("t", int(name[1:])): data for name, data in odd.items()}


_FAULTS = {
    "crc": (batch(b"a")[:-1] + b"!", ErrorCode.CORRUPT_MESSAGE),
    "sequence": (
        batch(b"a", producer_id=7, producer_epoch=0, base_sequence=-1),
        ErrorCode.INVALID_RECORD,
    ),
    "records": (batch_of(record("a", longer=1)), ErrorCode.INVALID_RECORD),
    "timestamp": (batch_of(record("a", time=1 << 50), codec="lz4"), ErrorCode.INVALID_TIMESTAMP),
    "size": (batch(b"x" * 1500), ErrorCode.MESSAGE_TOO_LARGE),
}


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("fault", _FAULTS)
async def test_one_refused_partition_leaves_others_appended_once(tmp_path, place, fault):
    records, code = _FAULTS[fault]
    async with world_of(tmp_path, 3, max_message_bytes="1000") as world:
        for _ in range(2):
            await world.produce(_several())
        assert world.memo is not None
        results = await world.produce(_several(**{f"p{place}": records}))
        expected = [0, 0, 0]
        expected[place] = code
        assert [result.error_code for result in results] == expected
        assert [result.base_offset for result in results] == [
            -1 if error else 2 for error in expected
        ]
        assert world.memo is None
        stored = [len(world.stored(index)) for index in range(3)]
        assert stored == [2 if error else 3 for error in expected]


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_request_level_error_of_one_partition_appends_nothing(tmp_path, place):
    records = batch(b"a", is_transactional=True)
    async with world_of(tmp_path, 3) as world:
        for _ in range(2):
            await world.produce(_several())
        results = await world.produce(_several(**{f"p{place}": records}))
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert [result.error_code for result in results] == [code] * 3
        assert [len(world.stored(index)) for index in range(3)] == [2, 2, 2]


@pytest.mark.parametrize("error_number", [errno.EMFILE, errno.ENOSPC])
async def test_partition_on_full_disk_is_retried_alone(tmp_path, error_number):
    disk = FailingFiles()
    disk.error_number = error_number
    async with world_of(tmp_path, 3, files=disk) as world:
        for _ in range(2):
            await world.produce(_several())
        disk.fail(tmp_path / "t-1", "write")
        results = await world.produce(_several())
        code = ErrorCode.KAFKA_STORAGE_ERROR
        assert [result.error_code for result in results] == [0, code, 0]
        disk.broken.clear()
        results = await world.produce(_several())
        assert [result.base_offset for result in results] == [3, 2, 3]
        assert [len(world.stored(index)) for index in range(3)] == [4, 3, 4]


async def test_partition_with_append_in_progress_waits_its_turn(tmp_path):
    async with world_of(tmp_path, 3) as world:
        for _ in range(2):
            await world.produce(_several())
        async with world.partition("t", 1).append_lock:
            waiting = asyncio.create_task(world.produce(_several()))
            while not waiting.done() and world.memo is not None:
                await asyncio.wait([waiting], timeout=0)
            assert not waiting.done()
        results = await waiting
        assert [result.base_offset for result in results] == [2, 2, 2]


@pytest.mark.parametrize("names", [(0,), (0, 1), (1, 0)])
async def test_response_waits_if_append_is_not_committed_at_once(tmp_path, names, monkeypatch):
    async with world_of(tmp_path, 2) as world:
        for _ in range(2):
            await world.produce({("t", index): batch(b"a") for index in names})
        assert world.memo is not None
        # As if another commit path omitted the epoch change.
        for index in names:
            monkeypatch.setattr(world.partition("t", index), "_most_unflushed", 0)
        results = await world.produce({("t", index): batch(b"b") for index in names})
        assert [(result.error_code, result.base_offset) for result in results] == [(0, 2)] * len(
            names
        )
        for index in names:
            log = world.partition("t", index).log
            assert (log.recovery_point, log.high_watermark, log.log_end_offset) == (3, 3, 3)


async def test_partition_named_twice_gets_its_last_records(tmp_path):
    async with world_of(tmp_path, 2) as world:
        for _ in range(2):
            await world.produce({("t", 0): batch(b"a"), ("t", 1): batch(b"a")})
        first, second = batch(b"1"), batch(b"2")
        request = produce_request({("t", 0): first, ("t", 1): second})
        frame = request_frame(ApiKey.PRODUCE, 12, request)
        at = frame.index(second) - 5 - (len(second) >= 127)
        assert frame[at : at + 4] == (1).to_bytes(4)
        await world.exchange(frame[:at] + bytes(4) + frame[at + 4 :])
        assert (world.stored(0), world.stored(1)) == ([b"a", b"a", b"2"], [b"a", b"a"])
