"""The fast path of a repeated Produce request: when it applies and when it must not."""

from __future__ import annotations

import asyncio
import errno

import pytest

from tests.support.brokers.produce_line import FixedClock
from tests.support.protocol.raw_client import answer_of, request_frame
from tests.support.protocol.requests import create_topic, delete_topic, produce_request
from tests.support.records.batches import TIMESTAMP_MS, batch
from tests.support.replicas.roles import lead, offline
from tests.support.storage.failing_files import FailingFiles
from tests.transcripts.raw_records import batch_of, record
from tests.unit.wirebroker.api.data.prepared_kit import SHORT_VERSIONS, world_of
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.primitives import uvarint
from wirebroker.codecs.records.batch import read_batch_header, write_crc
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.layout import HEADER_BYTES, OVERHEAD_BYTES
from wirebroker.net.pending import HandlerFailedError
from wirebroker.replica.local_replica import LARGE_APPEND_BYTES


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", SHORT_VERSIONS)
async def test_third_identical_produce_takes_the_fast_path(tmp_path, version, acks):
    async with world_of(tmp_path) as world:
        await world.learn(version=version, acks=acks)
        for number in range(3, 7):
            assert await world.append(b"%d" % number, version=version, acks=acks) == number - 1
            assert world.short_count == number - 2
        assert world.stored() == [b"1", b"2", b"3", b"4", b"5", b"6"]
        assert world.partition("t").log.high_watermark == 6


@pytest.mark.parametrize("version", [3, 4])
async def test_old_versions_have_no_fast_path(tmp_path, version):
    async with world_of(tmp_path) as world:
        for number in range(4):
            assert await world.append(b"a", version=version) == number
            assert world.memo is None


@pytest.mark.parametrize(
    ("given", "more"),
    [
        ({}, {"acks": 0}),
        ({"message_timestamp_type": "LogAppendTime"}, {}),
        ({"flush_messages": "1"}, {}),
        ({"flush_messages": "1000"}, {}),
        ({"settings": {"wirebroker.durability": "fsync"}}, {}),
    ],
)
async def test_delayed_commit_or_response_builds_no_memo(tmp_path, given, more):

    async with world_of(tmp_path, **given) as world:
        for number in range(4):
            await world.produce({("t", 0): batch(b"a")}, **more)
            assert world.memo is None
            assert world.partition("t").log.log_end_offset == number + 1


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (batch(b"a")[:-1] + b"!", ErrorCode.CORRUPT_MESSAGE),
        (batch(b"a") + batch(b"b"), ErrorCode.INVALID_RECORD),
        (batch(b"x" * 2_000_000), ErrorCode.MESSAGE_TOO_LARGE),
        (
            batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True),
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ),
        (batch(b"a", is_transactional=True), ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (batch(b"a", producer_id=7, producer_epoch=0, base_sequence=-1), ErrorCode.INVALID_RECORD),
        (batch_of(record("a", longer=1)), ErrorCode.INVALID_RECORD),
        (batch_of(record("a"), record("b", offset=1), count=1), ErrorCode.INVALID_RECORD),
        (batch_of(codec="gzip", packed=b"x" * 20, count=1), ErrorCode.UNKNOWN_SERVER_ERROR),
        (batch_of(record("a", time=1 << 50), codec="lz4"), ErrorCode.INVALID_TIMESTAMP),
    ],
    ids=[
        "crc",
        "two batches",
        "too large",
        "transactional",
        "nobody's",
        "no sequence",
        "longer",
        "more records",
        "garbage",
        "timestamp",
    ],
)
async def test_refused_request_gets_its_error_and_ends_the_memo(tmp_path, records, code):
    async with world_of(tmp_path) as world:
        await world.learn()
        assert await world.error_of(records) == code
        assert world.memo is None
        assert (await world.append(b"3"), world.stored()) == (2, [b"1", b"2", b"3"])


async def test_sequences_are_checked_on_fast_path(tmp_path):
    async with world_of(tmp_path) as world:
        await world.learn()

        async def send(sequence: int, epoch: int = 1) -> tuple[int, int]:
            records = batch(b"a", producer_id=7, producer_epoch=epoch, base_sequence=sequence)
            (result,) = await world.produce({("t", 0): records})
            return result.error_code, result.base_offset

        assert [await send(sequence) for sequence in (0, 1, 1, 0, 2)] == [
            (0, 2),
            (0, 3),
            (0, 3),
            (0, 2),
            (0, 4),
        ]
        assert world.short_count == 5
        assert await send(9) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        assert await send(3, epoch=0) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)
        assert await send(3) == (0, 5)
        assert world.short_count == 5


async def test_changed_settings_apply_to_the_next_request(tmp_path):
    async with world_of(tmp_path) as world:
        await world.learn()
        await world.alter("max.message.bytes", "100")
        assert await world.error_of(batch(b"a" * 100)) == ErrorCode.MESSAGE_TOO_LARGE
        for _ in range(3):
            await world.append(b"a")
        assert world.short_count == 1


async def test_records_are_flushed_once_flush_messages_is_set(tmp_path):
    async with world_of(tmp_path) as world:
        await world.learn()
        await world.alter("flush.messages", "1")
        for number in range(2, 5):
            assert await world.append(b"a") == number
            log = world.partition("t").log
            assert (log.recovery_point, log.high_watermark) == (number + 1, number + 1)
        assert (world.memo, world.short_count) == (None, 0)


async def test_records_are_stamped_once_log_append_time_is_set(tmp_path):
    clock = FixedClock(TIMESTAMP_MS + 9)
    async with world_of(tmp_path, clock=clock) as world:
        await world.learn()
        await world.alter("message.timestamp.type", "LogAppendTime")
        for number in range(2, 5):
            (result,) = await world.produce({("t", 0): batch(b"a")})
            assert result.base_offset == number
            assert result.log_append_time_ms == clock.now_ms()
        assert (world.memo, world.short_count) == (None, 0)


async def test_recreated_topic_gets_the_next_records(tmp_path):
    async with world_of(tmp_path) as world:
        await world.learn()
        await delete_topic(world.client, "t")
        assert await world.error_of(batch(b"a")) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await create_topic(world.client, "t")
        for number in range(4):
            assert await world.append(b"%d" % number) == number
        await delete_topic(world.client, "t")
        await create_topic(world.client, "t")
        assert await world.append(b"new") == 0
        assert world.stored() == [b"new"]


async def test_unled_or_under_replicated_partition_refuses_appends(tmp_path):
    async with world_of(tmp_path, min_insync_replicas="2") as world:
        await world.learn()
        partition = world.partition("t")
        lead(partition, replicas=(1, 2), isr=(1,))
        assert await world.error_of(batch(b"a")) == ErrorCode.NOT_ENOUGH_REPLICAS
        lead(partition)
        assert await world.append(b"3") == 2
        await world.append(b"4")
        partition.resign()
        assert await world.error_of(batch(b"a")) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert partition.log.log_end_offset == 4


async def test_offline_directory_refuses_appends(tmp_path, caplog):
    async with world_of(tmp_path) as world:
        await world.learn()
        partition = world.partition("t")
        with offline(partition.directory):
            assert await world.error_of(batch(b"a")) == ErrorCode.KAFKA_STORAGE_ERROR
        assert (await world.append(b"3"), world.stored()) == (2, [b"1", b"2", b"3"])


@pytest.mark.parametrize("error_number", [errno.EMFILE, errno.ENOSPC])
async def test_disk_full_is_reported_and_the_next_write_works(tmp_path, error_number):
    disk = FailingFiles()
    disk.error_number = error_number

    async with world_of(tmp_path, files=disk) as world:
        await world.learn()
        disk.fail(tmp_path / "t-0", "write")
        assert await world.error_of(batch(b"a")) == ErrorCode.KAFKA_STORAGE_ERROR
        disk.broken.clear()
        for number in range(3, 6):
            assert await world.append(b"%d" % number) == number - 1
        assert world.stored() == [b"1", b"2", b"3", b"4", b"5"]
        assert world.short_count == 1


async def test_disk_failing_on_fast_path_goes_offline(tmp_path):
    disk = FailingFiles()

    async with world_of(tmp_path, files=disk) as world:
        await world.learn()
        disk.fail(tmp_path / "t-0", "write", times=1)
        assert await world.error_of(batch(b"a")) == ErrorCode.KAFKA_STORAGE_ERROR
        assert not world.partition("t").directory.is_online
        assert await world.error_of(batch(b"a")) == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize(
    "records",
    [
        batch(b"x" * (LARGE_APPEND_BYTES + 1)),
        batch(bytes(3 << 20), codec=Codec.GZIP),
    ],
    ids=["large", "unpacks to much"],
)
async def test_long_append_takes_the_slow_path(tmp_path, records):
    async with world_of(tmp_path, max_message_bytes=str(64 << 20)) as world:
        await world.learn(version=8)
        assert await world.error_of(records, version=8) == ErrorCode.NONE
        assert (world.memo, world.short_count) == (None, 0)


async def test_records_of_trusted_producers_are_not_inspected(tmp_path):
    settings = {"wirebroker.record.validation": "header"}
    async with world_of(tmp_path, settings=settings) as world:
        await world.learn()
        garbage = batch_of(codec="gzip", packed=b"x" * 20, count=1)
        assert await world.error_of(garbage) == ErrorCode.NONE
        assert world.short_count == 1
        assert world.partition("t").log.log_end_offset == 3


async def test_wrong_max_timestamp_is_corrected_on_fast_path(tmp_path):
    async with world_of(tmp_path) as world:
        await world.learn()
        for data in (
            batch_of(record("3"), max_timestamp=5),
            batch_of(record("4", time=-9), codec="lz4", max_timestamp=5),
        ):
            assert await world.error_of(data) == ErrorCode.NONE
        assert world.short_count == 2
        log = world.partition("t").log
        for offset, latest in ((2, TIMESTAMP_MS), (3, TIMESTAMP_MS - 9)):
            file_slice = log.read(offset, 1 << 20, up_to_offset=offset + 1).slice
            assert file_slice is not None
            assert read_batch_header(file_slice.read()).max_timestamp == latest


async def test_request_waits_for_a_long_append_of_another(tmp_path):
    async with world_of(tmp_path) as world:
        await world.learn()
        async with world.partition("t").append_lock:
            waiting = asyncio.create_task(world.append(b"3"))
            while not waiting.done() and world.memo is not None:
                await asyncio.wait([waiting], timeout=0)
            assert not waiting.done()
            assert world.stored() == [b"1", b"2"]
        assert await waiting == 2


async def test_internal_error_closes_the_connection(tmp_path):
    class BrokenClock(FixedClock):
        is_broken = False

        def now_ms(self) -> int:
            if self.is_broken:
                raise LookupError("no clock")
            return super().now_ms()

    clock = BrokenClock(TIMESTAMP_MS)

    async with world_of(tmp_path, clock=clock) as world:
        await world.learn()
        clock.is_broken = True
        with pytest.raises(HandlerFailedError) as failed:
            await world.append(b"3")
        assert isinstance(failed.value.__cause__, LookupError)
        clock.is_broken = False


async def test_tagged_fields_are_not_taken_for_records(tmp_path):
    """Read 100 bytes too late and into the tags, the frame contains a different batch."""
    shift = 100
    tags = b"\0\0\1\5" + uvarint(shift - 2) + bytes(shift - 2)
    request = produce_request({("t", 0): _two_in_one(600, shift, tags[:shift])})
    body = request_frame(ApiKey.PRODUCE, 12, request)[4:-3] + tags
    frame = len(body).to_bytes(4) + body

    async with world_of(tmp_path) as world:
        offsets = []
        for _ in range(3):
            answer = answer_of(ApiKey.PRODUCE, 12, (await world.exchange(frame))[4:])
            (result,) = answer.responses[0].partition_responses
            offsets.append(result.base_offset)
        assert offsets == [0, 0, 0]
        assert len(world.stored()) == 1


async def test_request_with_a_long_header_builds_no_memo(tmp_path):
    request = produce_request({("t", 0): batch(b"a")})
    body = request_frame(ApiKey.PRODUCE, 12, request, client_id="us")[4:]
    head, tags, rest = body[:12], body[12:13], body[13:]
    assert (head[-2:], tags) == (b"us", b"\0")
    body = head + b"\1\5" + uvarint(1 << 20) + bytes(1 << 20) + rest

    async with world_of(tmp_path) as world:
        for _ in range(3):
            await world.exchange(len(body).to_bytes(4) + body)
            assert world.memo is None
        assert world.stored() == [b"a"] * 3


def _two_in_one(value_bytes: int, shift: int, trailing: bytes) -> bytes:
    """Return a batch that, with the bytes after it, contains another one of the same size.

    It has a producer, so that the second time it is a duplicate and stays unchanged.
    """
    outer = bytearray(batch(bytes(value_bytes), producer_id=7, producer_epoch=0, base_sequence=0))
    size = len(outer)
    length = uvarint(size + 1)
    outer[shift - len(length) : shift] = length
    inner = outer[shift:] + trailing
    assert len(inner) == size
    inner[:HEADER_BYTES] = batch(bytes(value_bytes))[:HEADER_BYTES]
    inner[8:12] = (size - OVERHEAD_BYTES).to_bytes(4)
    write_crc(inner, 0)
    outer[shift:] = inner[:-shift]
    write_crc(outer, 0)
    return bytes(outer)
