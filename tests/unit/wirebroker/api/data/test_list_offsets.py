"""ListOffsets over a socket: the ends of a log, timestamps, errors."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.protocol.requests import append, create_topic, delete_topic
from tests.support.records.batches import TIMESTAMP_MS, batch
from tests.support.storage.failing_files import FailingFiles
from wirebroker.api.data import list_offsets
from wirebroker.base.threads import Work
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.codec import Codec
from wirebroker.replica import offset_search
from wirebroker.storage.log.search_by_time import DetachedLog
from wirebroker.storage.long_work import TakesLongError

if TYPE_CHECKING:
    from tests.support.protocol.raw_client import RawClient
    from wirebroker.base.clock import Steps
    from wirebroker.storage.log.log import Log

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = range(-1, -7, -1)


async def look_up(
    client: RawClient, timestamp: int, *, version: int = 7, topic: str = "t", **fields: int
) -> Any:
    isolation_level = fields.pop("isolation_level", 0)
    partition = {"partition_index": 0, "timestamp": timestamp, **fields}
    request = {"replica_id": -1, "topics": [{"name": topic, "partitions": [partition]}]}
    if version >= 2:
        request["isolation_level"] = isolation_level
    answer = await client.ask(ApiKey.LIST_OFFSETS, version, request)
    (result,) = answer.topics[0].partitions
    return result


def found_in(result: Any) -> tuple[int, int, int]:
    assert result.error_code == 0
    return result.timestamp, result.offset, result.leader_epoch


def never_at_once(monkeypatch: pytest.MonkeyPatch) -> None:

    def find(log: Log, timestamp_ms: int, *, up_to_offset: int) -> None:
        raise TakesLongError

    monkeypatch.setattr(list_offsets, "find_quickly", find)


async def test_empty_log_starts_and_ends_at_offset_0(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        assert found_in(await look_up(client, LATEST)) == (-1, 0, 0)
        assert found_in(await look_up(client, EARLIEST)) == (-1, 0, 0)
        assert found_in(await look_up(client, MAX_TIMESTAMP)) == (-1, -1, -1)
        assert found_in(await look_up(client, TIMESTAMP_MS)) == (-1, -1, -1)


@pytest.mark.parametrize("isolation_level", [0, 1])
async def test_offsets_are_found_by_end_and_by_timestamp(tmp_path, isolation_level):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        await append(client, "t", batch(b"a", b"b", b"c"))
        packed = batch(b"d", b"e", timestamp_ms=TIMESTAMP_MS + 100, codec=Codec.ZSTD)
        await append(client, "t", packed)
        await append(client, "t", batch(b"f", timestamp_ms=TIMESTAMP_MS + 50))
        for timestamp, expected in (
            (LATEST, (-1, 6, 0)),
            (EARLIEST, (-1, 0, 0)),
            (MAX_TIMESTAMP, (TIMESTAMP_MS + 101, 4, 0)),
            (0, (TIMESTAMP_MS, 0, 0)),
            (TIMESTAMP_MS + 1, (TIMESTAMP_MS + 1, 1, 0)),
            (TIMESTAMP_MS + 3, (TIMESTAMP_MS + 100, 3, 0)),
            (TIMESTAMP_MS + 101, (TIMESTAMP_MS + 101, 4, 0)),
            (TIMESTAMP_MS + 102, (-1, -1, -1)),
        ):
            result = await look_up(client, timestamp, isolation_level=isolation_level)
            assert found_in(result) == expected, timestamp
        for timestamp, version, offset in (
            (EARLIEST_LOCAL, 8, 0),
            (LATEST_TIERED, 9, -1),
            (PENDING_UPLOAD, 11, -1),
        ):
            result = await look_up(client, timestamp, version=version)
            assert (result.error_code, result.offset) == (0, offset)


@pytest.mark.parametrize("version", [1, 3, 4, 6])
async def test_old_versions_omit_newer_fields(tmp_path, version):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        await append(client, "t", batch(b"a"))
        result = await look_up(client, LATEST, version=version)
        assert found_in(result) == (-1, 1, 0 if version >= 4 else -1)


@pytest.mark.parametrize(
    ("timestamp", "version"),
    [(MAX_TIMESTAMP, 6), (EARLIEST_LOCAL, 7), (LATEST_TIERED, 8), (PENDING_UPLOAD, 10), (-7, 11)],
)
async def test_special_timestamps_need_their_version(tmp_path, timestamp, version):
    async with running(tmp_path) as server, client_of(server) as client:
        result = await look_up(client, timestamp, version=version, topic="nowhere")
        assert (result.error_code, result.offset) == (ErrorCode.UNSUPPORTED_VERSION, -1)


async def test_errors_are_reported_per_partition(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        result = await look_up(client, LATEST, topic="nowhere")
        assert result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        result = await look_up(client, LATEST, current_leader_epoch=5)
        assert result.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        twice = [{"partition_index": 0, "timestamp": -1}] * 2
        once = {"partition_index": 1, "timestamp": -1}
        topics = [{"name": "t", "partitions": [*twice, once]}]
        request = {"replica_id": -1, "topics": topics}
        answer = await client.ask(ApiKey.LIST_OFFSETS, 7, request)
        codes = [
            (partition.partition_index, partition.error_code)
            for partition in answer.topics[0].partitions
        ]
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert codes == [(0, ErrorCode.INVALID_REQUEST), (1, unknown)]


async def test_a_search_that_fails_takes_the_directory_offline(tmp_path):
    disk = FailingFiles()

    async with running(tmp_path, files=disk) as server, client_of(server) as client:
        await create_topic(client, "t")
        await append(client, "t", batch(b"a"))
        disk.fail(tmp_path / "t-0", "read")
        result = await look_up(client, TIMESTAMP_MS)
        assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert not broker_of(server).replicas.directories[0].is_online
        assert (await look_up(client, LATEST)).error_code == ErrorCode.KAFKA_STORAGE_ERROR


async def test_search_is_repeated_if_segments_were_compacted_meanwhile(tmp_path, monkeypatch):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        await append(client, "t", batch(b"a"))
        search = DetachedLog.offset_for_timestamp

        def search_too_late(
            log: DetachedLog, timestamp_ms: int, *, up_to_offset: int
        ) -> Steps[None]:
            del log, timestamp_ms, up_to_offset
            yield
            monkeypatch.setattr(DetachedLog, "offset_for_timestamp", search)
            raise FileNotFoundError(2, "removed")

        never_at_once(monkeypatch)
        monkeypatch.setattr(DetachedLog, "offset_for_timestamp", search_too_late)
        result = await look_up(client, 0)
        assert (result.error_code, result.offset) == (ErrorCode.NONE, 0)
        assert broker_of(server).replicas.directories[0].is_online


@pytest.mark.parametrize(
    "fault", [FileNotFoundError(2, "moved away"), KafkaError(ErrorCode.CORRUPT_MESSAGE)]
)
async def test_search_in_a_topic_deleted_meanwhile_keeps_disk_online(tmp_path, fault, monkeypatch):
    async with (
        running(tmp_path) as server,
        client_of(server) as client,
        client_of(server) as other,
    ):
        await create_topic(client, "t")
        await append(client, "t", batch(b"a"))
        loop = asyncio.get_running_loop()

        def search(log: DetachedLog, timestamp_ms: int, *, up_to_offset: int) -> Steps[None]:
            del log, timestamp_ms, up_to_offset
            yield
            asyncio.run_coroutine_threadsafe(delete_topic(other, "t"), loop).result(10)
            raise fault

        never_at_once(monkeypatch)
        monkeypatch.setattr(DetachedLog, "offset_for_timestamp", search)
        result = await look_up(client, TIMESTAMP_MS)
        assert result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert broker_of(server).replicas.directories[0].is_online


async def test_brief_search_in_cached_pages_needs_no_thread(tmp_path, monkeypatch):
    searched: list[object] = []

    async def in_a_thread(work: Work, function: Any, *arguments: Any) -> Any:
        searched.append(work)
        return function(*arguments)

    monkeypatch.setattr(offset_search, "in_thread", in_a_thread)

    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        for number in range(50):
            records = batch(*[b"x" * 50] * 20, timestamp_ms=TIMESTAMP_MS + 100 * number)
            await append(client, "t", records)
        packed = batch(*[b"y"] * 20, timestamp_ms=TIMESTAMP_MS + 6_000, codec=Codec.LZ4)
        await append(client, "t", packed)
        for timestamp, offset in ((0, 0), (4_011, 811), (6_003, 1_003), (7_000, -1)):
            result = await look_up(client, TIMESTAMP_MS + timestamp)
            assert (result.error_code, result.offset) == (0, offset)
        assert searched == []
        # Much to unpack: a few hundred bytes of zeros.
        large_batch = batch(*[b""] * 100_000, timestamp_ms=TIMESTAMP_MS + 8_000, codec=Codec.ZSTD)
        await append(client, "t", large_batch)
        result = await look_up(client, TIMESTAMP_MS + 8_000 + 99_999)
        assert (result.error_code, result.offset) == (0, 1_020 + 99_999)
        assert set(searched) == {Work.SEARCHES}
        assert len(searched) > 1, "a piece at a time"
