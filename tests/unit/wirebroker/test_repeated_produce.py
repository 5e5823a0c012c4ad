"""The short way of a Produce request like the one before: when it is taken, when it must not be."""

from __future__ import annotations

import asyncio
import contextlib
import errno
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.batches import TIMESTAMP_MS, batch, values_in
from tests.support.failing_files import FailingFiles
from tests.support.produce_line import FixedClock, ProduceLine
from tests.support.raw_client import answer_of, request_frame
from tests.support.requests import create_topic, delete_topic, produce_request
from tests.support.servers import client_of, running
from wirebroker.cluster.partition import LARGE_APPEND_BYTES
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.compression import Codec
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.primitives import uvarint
from wirebroker.codecs.record_batch import HEADER_BYTES, OVERHEAD_BYTES, write_crc
from wirebroker.net.dispatch import HandlerFailedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from tests.support.raw_client import RawClient

_SHORT_VERSIONS = range(5, 14)


class _World(ProduceLine):
    """A broker with the topic t, and a connection to it."""

    def __init__(self, server: Any, client: RawClient, topic_id: bytes) -> None:
        super().__init__(server)
        self.client = client
        self.topic_id = topic_id
        self.correlation_id = 0

    async def produce(
        self, records: Mapping[tuple[str, int], bytes], *, version: int = 12, **more: Any
    ) -> list[Any]:
        """Return the partitions' parts of the answer."""
        self.correlation_id += 1
        request = produce_request(records, **more)
        for topic in request["topic_data"] if version >= 13 else ():
            topic["topic_id"] = self.topic_id
        frame = request_frame(ApiKey.PRODUCE, version, request, correlation_id=self.correlation_id)
        answer = await self.exchange(frame)
        if more.get("acks") == 0:
            assert answer == b""
            return []
        assert int.from_bytes(answer[:4]) == len(answer) - 4
        decoded = answer_of(ApiKey.PRODUCE, version, answer[4:], correlation_id=self.correlation_id)
        return [result for topic in decoded.responses for result in topic.partition_responses]

    async def append(self, value: bytes, **more: Any) -> int:
        """Append a batch to t-0 and return its base offset."""
        (result,) = await self.produce({("t", 0): batch(value)}, **more)
        assert (result.index, result.error_code) == (0, 0)
        offset: int = result.base_offset
        return offset

    async def error_of(self, records: bytes, **more: Any) -> int:
        """Send records to t-0 and return the error."""
        (result,) = await self.produce({("t", 0): records}, **more)
        code: int = result.error_code
        return code

    async def learn(self, **more: Any) -> None:
        """Append twice: the next request of this kind takes the short way."""
        await self.append(b"1", **more)
        assert self.memo is None
        await self.append(b"2", **more)
        assert self.memo is not None
        assert self.short_count == 0

    async def alter(self, name: str, value: str) -> None:
        """Change a setting of t."""
        entry = {"name": name, "config_operation": 0, "value": value}
        resource = {"resource_type": 2, "resource_name": "t", "configs": [entry]}
        request = {"resources": [resource], "validate_only": False}
        answer = await self.client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
        assert answer.responses[0].error_code == 0

    def stored(self, index: int = 0) -> list[bytes | None]:
        """Return the values in the log of t."""
        log = self.partition("t", index).log
        log.check()
        found = log.read(log.log_start_offset, 1 << 30, up_to_offset=log.log_end_offset).slice
        return [] if found is None else values_in(found.read())


@contextlib.asynccontextmanager
async def _world(path: Path, partitions: int = 1, /, **given: Any) -> AsyncIterator[_World]:
    options = {each: given.pop(each) for each in ("settings", "clock", "files") if each in given}
    async with running(path, **options) as server, client_of(server) as client:
        topic_id = await create_topic(client, "t", partitions, **given)
        yield _World(server, client, topic_id)


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", _SHORT_VERSIONS)
def test_the_third_of_three_alike_takes_the_short_way(tmp_path, version, acks):
    async def run() -> None:
        async with _world(tmp_path) as world:
            await world.learn(version=version, acks=acks)
            for number in range(3, 7):
                assert await world.append(b"%d" % number, version=version, acks=acks) == number - 1
                assert world.short_count == number - 2
            assert world.stored() == [b"1", b"2", b"3", b"4", b"5", b"6"]
            assert world.partition("t").log.high_watermark == 6

    asyncio.run(run())


@pytest.mark.parametrize("version", [3, 4])
def test_old_versions_have_no_short_way(tmp_path, version):
    async def run() -> None:
        async with _world(tmp_path) as world:
            for number in range(4):
                assert await world.append(b"a", version=version) == number
                assert world.memo is None

    asyncio.run(run())


def test_requests_that_alternate_between_two_partitions_never_build_a_memo(tmp_path):
    async def run() -> None:
        async with _world(tmp_path, 2) as world:
            for number in range(8):
                (result,) = await world.produce({("t", number % 2): batch(b"a")})
                assert (result.error_code, result.base_offset) == (0, number // 2)
                assert world.memo is None

    asyncio.run(run())


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
def test_what_is_not_committed_or_answered_at_once_builds_no_memo(tmp_path, given, more):
    async def run() -> None:
        async with _world(tmp_path, **given) as world:
            for number in range(4):
                await world.produce({("t", 0): batch(b"a")}, **more)
                assert world.memo is None
                assert world.partition("t").log.log_end_offset == number + 1

    asyncio.run(run())


def test_requests_of_two_partitions_build_no_memo_and_end_one(tmp_path):
    async def run() -> None:
        async with _world(tmp_path, 2) as world:
            await world.learn()
            for _ in range(3):
                await world.produce({("t", 0): batch(b"a"), ("t", 1): batch(b"a")})
                assert world.memo is None
            assert await world.append(b"a") == 5

    asyncio.run(run())


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
    ],
    ids=["crc", "two batches", "too large", "transactional", "nobody's", "no sequence"],
)
def test_what_is_refused_is_refused_as_ever_and_ends_the_memo(tmp_path, records, code):
    async def run() -> None:
        async with _world(tmp_path) as world:
            await world.learn()
            assert await world.error_of(records) == code
            assert world.memo is None
            assert (await world.append(b"3"), world.stored()) == (2, [b"1", b"2", b"3"])

    asyncio.run(run())


def test_sequences_are_checked_on_the_short_way(tmp_path):
    async def run() -> None:
        async with _world(tmp_path) as world:
            await world.learn()

            async def send(sequence: int, epoch: int = 1) -> tuple[int, int]:
                records = batch(b"a", producer_id=7, producer_epoch=epoch, base_sequence=sequence)
                (result,) = await world.produce({("t", 0): records})
                return result.error_code, result.base_offset

            assert [await send(each) for each in (0, 1, 1, 0, 2)] == [
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

    asyncio.run(run())


def test_changed_settings_count_for_the_next_request(tmp_path):
    async def run() -> None:
        async with _world(tmp_path) as world:
            await world.learn()
            await world.alter("max.message.bytes", "100")
            assert await world.error_of(batch(b"a" * 100)) == ErrorCode.MESSAGE_TOO_LARGE
            for _ in range(3):
                await world.append(b"a")
            assert world.short_count == 1

    asyncio.run(run())


def test_records_are_on_the_disk_from_when_that_is_asked_for(tmp_path):
    async def run() -> None:
        async with _world(tmp_path) as world:
            await world.learn()
            await world.alter("flush.messages", "1")
            for number in range(2, 5):
                assert await world.append(b"a") == number
                log = world.partition("t").log
                assert (log.recovery_point, log.high_watermark) == (number + 1, number + 1)
            assert (world.memo, world.short_count) == (None, 0)

    asyncio.run(run())


def test_records_are_stamped_from_when_that_is_asked_for(tmp_path):
    async def run() -> None:
        clock = FixedClock(TIMESTAMP_MS + 9)
        async with _world(tmp_path, clock=clock) as world:
            await world.learn()
            await world.alter("message.timestamp.type", "LogAppendTime")
            for number in range(2, 5):
                (result,) = await world.produce({("t", 0): batch(b"a")})
                assert result.base_offset == number
                assert result.log_append_time_ms == clock.now_ms()
            assert (world.memo, world.short_count) == (None, 0)

    asyncio.run(run())


def test_a_topic_that_is_deleted_and_made_again_gets_the_next_records(tmp_path):
    async def run() -> None:
        async with _world(tmp_path) as world:
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

    asyncio.run(run())


def test_a_partition_that_is_not_led_or_not_in_sync_takes_nothing(tmp_path):
    async def run() -> None:
        async with _world(tmp_path, min_insync_replicas="2") as world:
            await world.learn()
            partition = world.partition("t")
            partition.isr_count, partition.replica_count = 1, 2
            assert await world.error_of(batch(b"a")) == ErrorCode.NOT_ENOUGH_REPLICAS
            partition.isr_count = 2
            assert await world.append(b"3") == 2
            await world.append(b"4")
            partition.resign()
            assert await world.error_of(batch(b"a")) == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert partition.log.log_end_offset == 4

    asyncio.run(run())


def test_a_directory_that_is_offline_takes_nothing(tmp_path, caplog):
    async def run() -> None:
        async with _world(tmp_path) as world:
            await world.learn()
            partition = world.partition("t")
            partition.directory.is_online = False
            assert await world.error_of(batch(b"a")) == ErrorCode.KAFKA_STORAGE_ERROR
            partition.directory.is_online = True
            assert (await world.append(b"3"), world.stored()) == (2, [b"1", b"2", b"3"])

    asyncio.run(run())


@pytest.mark.parametrize("error_number", [errno.EMFILE, errno.ENOSPC])
def test_a_write_that_finds_no_room_is_answered_and_the_next_one_works(tmp_path, error_number):
    disk = FailingFiles()
    disk.error_number = error_number

    async def run() -> None:
        async with _world(tmp_path, files=disk) as world:
            await world.learn()
            disk.fail(tmp_path / "t-0", "write")
            assert await world.error_of(batch(b"a")) == ErrorCode.KAFKA_STORAGE_ERROR
            disk.broken.clear()
            for number in range(3, 6):
                assert await world.append(b"%d" % number) == number - 1
            assert world.stored() == [b"1", b"2", b"3", b"4", b"5"]
            assert world.short_count == 1

    asyncio.run(run())


def test_a_disk_that_fails_on_the_short_way_goes_offline(tmp_path):
    disk = FailingFiles()

    async def run() -> None:
        async with _world(tmp_path, files=disk) as world:
            await world.learn()
            disk.fail(tmp_path / "t-0", "write", times=1)
            assert await world.error_of(batch(b"a")) == ErrorCode.KAFKA_STORAGE_ERROR
            assert not world.partition("t").directory.is_online
            assert await world.error_of(batch(b"a")) == ErrorCode.KAFKA_STORAGE_ERROR

    asyncio.run(run())


@pytest.mark.parametrize(
    "records",
    [
        batch(b"x" * (LARGE_APPEND_BYTES + 1)),
        batch(bytes(range(256)) * 4, codec=Codec.GZIP, timestamp_ms=1 << 50),
    ],
    ids=["large", "walked"],
)
def test_an_append_that_takes_long_goes_the_whole_way(tmp_path, records):
    async def run() -> None:
        async with _world(tmp_path, max_message_bytes=str(64 << 20)) as world:
            await world.learn(version=8)
            await world.error_of(records, version=8)
            assert (world.memo, world.short_count) == (None, 0)

    asyncio.run(run())


def test_a_request_behind_a_long_append_of_another_takes_its_turn(tmp_path):
    async def run() -> None:
        async with _world(tmp_path) as world:
            await world.learn()
            async with world.partition("t").append_lock:
                waiting = asyncio.create_task(world.append(b"3"))
                while not waiting.done() and world.memo is not None:
                    await asyncio.wait([waiting], timeout=0)
                assert not waiting.done()
                assert world.stored() == [b"1", b"2"]
            assert await waiting == 2

    asyncio.run(run())


def test_a_mistake_of_ours_closes_the_connection(tmp_path):
    class BrokenClock(FixedClock):
        is_broken = False

        def now_ms(self) -> int:
            if self.is_broken:
                raise LookupError("no clock")
            return super().now_ms()

    clock = BrokenClock(TIMESTAMP_MS)

    async def run() -> None:
        async with _world(tmp_path, clock=clock) as world:
            await world.learn()
            clock.is_broken = True
            with pytest.raises(HandlerFailedError) as failed:
                await world.append(b"3")
            assert isinstance(failed.value.__cause__, LookupError)
            clock.is_broken = False

    asyncio.run(run())


def test_tagged_fields_are_not_taken_for_records(tmp_path):
    """Read 100 bytes too late and on into the tags, the frame's batch is another one."""
    shift = 100
    tags = b"\0\0\1\5" + uvarint(shift - 2) + bytes(shift - 2)
    request = produce_request({("t", 0): _two_in_one(600, shift, tags[:shift])})
    body = request_frame(ApiKey.PRODUCE, 12, request)[4:-3] + tags
    frame = len(body).to_bytes(4) + body

    async def run() -> None:
        async with _world(tmp_path) as world:
            offsets = []
            for _ in range(3):
                answer = answer_of(ApiKey.PRODUCE, 12, (await world.exchange(frame))[4:])
                (result,) = answer.responses[0].partition_responses
                offsets.append(result.base_offset)
            assert offsets == [0, 0, 0]
            assert len(world.stored()) == 1

    asyncio.run(run())


def test_a_request_that_is_long_without_its_records_is_not_remembered(tmp_path):
    """A tagged field of the header would be kept as long as the connection, in no budget."""
    request = produce_request({("t", 0): batch(b"a")})
    body = request_frame(ApiKey.PRODUCE, 12, request, client_id="us")[4:]
    head, tags, rest = body[:12], body[12:13], body[13:]
    assert (head[-2:], tags) == (b"us", b"\0")
    body = head + b"\1\5" + uvarint(1 << 20) + bytes(1 << 20) + rest

    async def run() -> None:
        async with _world(tmp_path) as world:
            for _ in range(3):
                await world.exchange(len(body).to_bytes(4) + body)
                assert world.memo is None
            assert world.stored() == [b"a"] * 3

    asyncio.run(run())


def _two_in_one(value_bytes: int, shift: int, behind: bytes) -> bytes:
    """Return a batch that together with what comes behind it holds another one of its size.

    It has a producer, so that the second time it is a duplicate and left as it came.
    """
    outer = bytearray(batch(bytes(value_bytes), producer_id=7, producer_epoch=0, base_sequence=0))
    size = len(outer)
    length = uvarint(size + 1)
    outer[shift - len(length) : shift] = length
    inner = outer[shift:] + behind
    assert len(inner) == size
    inner[:HEADER_BYTES] = batch(bytes(value_bytes))[:HEADER_BYTES]
    inner[8:12] = (size - OVERHEAD_BYTES).to_bytes(4)
    write_crc(inner, 0)
    outer[shift:] = inner[:-shift]
    write_crc(outer, 0)
    return bytes(outer)
