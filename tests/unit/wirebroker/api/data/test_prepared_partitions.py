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
from wirebroker.api.data.prepared_produce import MOST_PLACES
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", SHORT_VERSIONS)
async def test_several_partitions_take_the_short_way_together_in_any_number_and_order(
    tmp_path, version, acks
):
    async with world_of(tmp_path, 5) as world:
        ends = [0] * 5
        for number, asked in enumerate([(0, 1, 2, 3), (0, 1, 2, 3), (3, 1), (2,), (1, 0, 3, 2)]):
            records = {("t", index): batch(b"%d" % number) for index in asked}
            results = await world.produce(records, version=version, acks=acks)
            assert [each.error_code for each in results] == [0] * len(asked)
            assert [each.index for each in results] == list(asked)
            assert [each.base_offset for each in results] == [ends[each] for each in asked]
            for index in asked:
                ends[index] += 1
        assert world.short_count == 3
        assert [len(world.stored(index)) for index in range(5)] == ends


async def test_a_partition_that_is_not_known_goes_the_whole_way_and_is_known_then(tmp_path):
    async with world_of(tmp_path, 3) as world:
        await world.learn()
        for count in (0, 1):
            results = await world.produce({("t", 0): batch(b"a"), ("t", 2): batch(b"a")})
            assert [each.error_code for each in results] == [0, 0]
            assert world.short_count == count


async def test_one_memo_is_for_all_partitions_and_forgets_those_that_came_first(tmp_path):
    async with world_of(tmp_path, MOST_PLACES + 1) as world:
        await world.learn()
        memo = world.memo
        for index in range(1, MOST_PLACES + 1):
            await world.produce({("t", index): batch(b"a")})
        assert (world.memo, world.short_count) == (memo, 0)
        # The first was evicted by the last; it returns in place of the second.
        for index, count in ((MOST_PLACES, 1), (1, 2), (0, 2), (1, 2), (0, 3)):
            (result,) = await world.produce({("t", index): batch(b"a")})
            assert (result.index, result.error_code) == (index, 0)
            assert (world.memo, world.short_count) == (memo, count)


async def test_what_the_gate_decides_anew_is_remembered_anew(tmp_path):
    async with world_of(tmp_path, 2) as world:
        await world.learn()
        memo = world.memo
        await world.produce({("t", 1): batch(b"a")})
        assert world.memo is memo
        world.gate.epoch += 1
        await world.produce({("t", 1): batch(b"a")})
        assert (world.memo is memo, world.short_count) == (False, 0)
        await world.produce({("t", 1): batch(b"a")})
        assert world.short_count == 1


def _several(places: int = 3, /, **odd: bytes) -> dict[tuple[str, int], bytes]:
    records = {("t", index): batch(b"a") for index in range(places)}
    return records | {("t", int(name[1:])): each for name, each in odd.items()}


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
async def test_one_of_several_that_is_refused_leaves_the_others_appended_once(
    tmp_path, place, fault
):
    records, code = _FAULTS[fault]
    async with world_of(tmp_path, 3, max_message_bytes="1000") as world:
        for _ in range(2):
            await world.produce(_several())
        assert world.memo is not None
        results = await world.produce(_several(**{f"p{place}": records}))
        expected = [0, 0, 0]
        expected[place] = code
        assert [each.error_code for each in results] == expected
        assert [each.base_offset for each in results] == [-1 if each else 2 for each in expected]
        assert world.memo is None
        stored = [len(world.stored(index)) for index in range(3)]
        assert stored == [2 if each else 3 for each in expected]


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_one_of_several_that_refuses_the_request_keeps_all_from_being_appended(
    tmp_path, place
):
    records = batch(b"a", is_transactional=True)
    async with world_of(tmp_path, 3) as world:
        for _ in range(2):
            await world.produce(_several())
        results = await world.produce(_several(**{f"p{place}": records}))
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert [each.error_code for each in results] == [code] * 3
        assert [len(world.stored(index)) for index in range(3)] == [2, 2, 2]


@pytest.mark.parametrize("error_number", [errno.EMFILE, errno.ENOSPC])
async def test_one_of_several_that_finds_no_room_is_tried_again_alone(tmp_path, error_number):
    disk = FailingFiles()
    disk.error_number = error_number
    async with world_of(tmp_path, 3, files=disk) as world:
        for _ in range(2):
            await world.produce(_several())
        disk.fail(tmp_path / "t-1", "write")
        results = await world.produce(_several())
        code = ErrorCode.KAFKA_STORAGE_ERROR
        assert [each.error_code for each in results] == [0, code, 0]
        disk.broken.clear()
        results = await world.produce(_several())
        assert [each.base_offset for each in results] == [3, 2, 3]
        assert [len(world.stored(index)) for index in range(3)] == [4, 3, 4]


async def test_one_of_several_behind_a_long_append_of_another_takes_its_turn(tmp_path):
    async with world_of(tmp_path, 3) as world:
        for _ in range(2):
            await world.produce(_several())
        async with world.partition("t", 1).append_lock:
            waiting = asyncio.create_task(world.produce(_several()))
            while not waiting.done() and world.memo is not None:
                await asyncio.wait([waiting], timeout=0)
            assert not waiting.done()
        results = await waiting
        assert [each.base_offset for each in results] == [2, 2, 2]


@pytest.mark.parametrize("names", [(0,), (0, 1), (1, 0)])
async def test_what_turns_out_not_to_be_committed_at_once_is_answered_when_it_is(
    tmp_path, names, monkeypatch
):
    async with world_of(tmp_path, 2) as world:
        for _ in range(2):
            await world.produce({("t", index): batch(b"a") for index in names})
        assert world.memo is not None
        # As if another commit path omitted the epoch change.
        for index in names:
            monkeypatch.setattr(world.partition("t", index), "_most_unflushed", 0)
        results = await world.produce({("t", index): batch(b"b") for index in names})
        assert [(each.error_code, each.base_offset) for each in results] == [(0, 2)] * len(names)
        for index in names:
            log = world.partition("t", index).log
            assert (log.recovery_point, log.high_watermark, log.log_end_offset) == (3, 3, 3)


async def test_a_partition_that_is_named_twice_takes_its_last_records(tmp_path):
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
