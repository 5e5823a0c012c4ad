"""DeleteRecords beyond the transcripts: crashes, disks, concurrent clients."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.protocol.requests import append, create_topic, fetch
from tests.support.records.batches import batch, values_in
from tests.support.storage.failing_files import FailingFiles
from wirebroker.base.clock import next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.maintenance.maintenance import Maintenance

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.protocol.raw_client import RawClient
    from wirebroker.broker.server import Server
    from wirebroker.replica.partition import Partition


def partition_of(server: Server, topic: str, index: int = 0) -> Partition:
    partitions, _ = broker_of(server).replicas.find(topic, b"", by_id=False)
    return partitions[index]


async def delete_records(client: RawClient, topic: str, *offsets: int) -> list[tuple[int, int]]:
    partitions = [
        {"partition_index": index, "offset": offset} for index, offset in enumerate(offsets)
    ]
    request = {"topics": [{"name": topic, "partitions": partitions}], "timeout_ms": 1000}
    answer: Any = await client.ask(ApiKey.DELETE_RECORDS, 2, request)
    (of_topic,) = answer.topics
    return [(partition.error_code, partition.low_watermark) for partition in of_topic.partitions]


def checkpoint(path: Path) -> str:
    return (path / "log-start-offset-checkpoint").read_text()


async def test_new_log_start_is_on_disk_before_the_response(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t", 2)
        for index in (0, 1):
            await append(client, "t", batch(b"a", b"b"), partition=index)
        assert await delete_records(client, "t", 1, -1) == [(0, 1), (0, 2)]
        lines = checkpoint(tmp_path).splitlines()
        assert lines[:2] == ["0", "2"]
        assert set(lines[2:]) == {"t 0 1", "t 1 2"}


async def test_segments_below_log_start_are_deleted_at_next_check(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t", retention_ms="-1")
        await append(client, "t", batch(b"a", b"b"))
        log = partition_of(server, "t").log
        log.roll(now_ms=0)
        await append(client, "t", batch(b"c", b"d"))
        assert await delete_records(client, "t", 3) == [(0, 3)]
        await Maintenance(broker_of(server)).retention.check_all()
        assert log.segments.base_offsets == [2]
        log.check()
        result = await fetch(client, "t", 3)
        assert values_in(result.records) == [b"c", b"d"], "a batch comes whole"
        assert result.log_start_offset == 3
        result = await fetch(client, "t", 2)
        assert result.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_deletion_waits_for_a_large_append(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        await append(client, "t", batch(b"a"))
        lock = partition_of(server, "t").append_lock
        await lock.acquire()  # a thread is appending
        deletion = asyncio.create_task(delete_records(client, "t", -1))
        for _ in range(100):
            await next_turn()
        assert partition_of(server, "t").log.log_start_offset == 0
        lock.release()
        assert await deletion == [(0, 1)]


async def test_unwritable_log_start_is_not_acknowledged(tmp_path):
    disk = FailingFiles()

    async with running(tmp_path, files=disk) as server, client_of(server) as client:
        await create_topic(client, "t")
        await append(client, "t", batch(b"a"))
        disk.fail(tmp_path / "log-start-offset", "write")
        refused = (ErrorCode.KAFKA_STORAGE_ERROR, -1)
        assert await delete_records(client, "t", 1) == [refused]
        assert await delete_records(client, "t", 1) == [refused], "the directory is offline"
        disk.broken.clear()
