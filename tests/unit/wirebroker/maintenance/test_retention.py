"""Retention in a running broker: changed configs, clock jumps, failing disks."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import weakref
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.protocol.requests import append, create_topic, delete_topic, fetch, produce
from tests.support.records.batches import batch, values_in
from tests.support.records.clocks import HandClock
from tests.support.storage.failing_files import FailingFiles
from wirebroker.base.clock import next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.maintenance import retention
from wirebroker.maintenance.maintenance import Maintenance
from wirebroker.storage.files import Files
from wirebroker.storage.log.removal import set_aside_segment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.protocol.raw_client import RawClient
    from wirebroker.broker.server import Server
    from wirebroker.replica.partition import Partition
    from wirebroker.storage.log.log import Log
    from wirebroker.storage.log.segment.segment import Segment

NOW = 1_700_000_000_000
HOUR = 3_600_000
YEAR = 365 * 24 * HOUR


class Broker:
    """A broker whose clocks and background tasks the test controls."""

    def __init__(self, server: Server, client: RawClient, clock: HandClock) -> None:
        self.server = server
        self.client = client
        self.clock = clock
        self.maintenance = Maintenance(broker_of(server))

    def partition(self, topic: str = "t", index: int = 0) -> Partition:
        partitions, _ = broker_of(self.server).replicas.find(topic, b"", by_id=False)
        return partitions[index]

    async def append(self, *values: bytes, topic: str = "t", timestamp_ms: int | None = None):
        time = self.clock.now_ms() if timestamp_ms is None else timestamp_ms
        return await append(self.client, topic, batch(*values, timestamp_ms=time))

    def roll(self, topic: str = "t") -> None:
        self.partition(topic).log.roll(now_ms=self.clock.now_ms())

    async def retain(self) -> None:
        await self.maintenance.retention.check_all()

    def bounds(self, topic: str = "t") -> tuple[int, int]:
        log = self.partition(topic).log
        log.check()
        return log.log_start_offset, log.log_end_offset

    async def alter(self, kind: int, resource: str, **configs: str) -> None:
        entries = [
            {"name": name.replace("_", "."), "config_operation": 0, "value": value}
            for name, value in configs.items()
        ]
        resources = [{"resource_type": kind, "resource_name": resource, "configs": entries}]
        request = {"resources": resources, "validate_only": False}
        answer = await self.client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
        assert answer.responses[0].error_code == 0, answer

    async def earliest(self, topic: str = "t") -> int:
        partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -2}
        request = {"replica_id": -1, "topics": [{"name": topic, "partitions": [partition]}]}
        answer = await self.client.ask(ApiKey.LIST_OFFSETS, 7, request)
        offset: int = answer.topics[0].partitions[0].offset
        return offset


@contextlib.asynccontextmanager
async def broker_at(path: Path, *, files: Files | None = None) -> AsyncIterator[Broker]:
    clock = HandClock()
    async with (
        running(path, clock=clock, files=files or Files()) as server,
        client_of(server) as client,
    ):
        yield Broker(server, client, clock)


def names(path: Path, suffix: str = ".log") -> list[str]:
    return sorted(entry.name for entry in path.iterdir() if entry.name.endswith(suffix))


async def test_expired_records_are_deleted_and_their_files_after_a_delay(tmp_path):
    async with broker_at(tmp_path) as broker:
        await create_topic(broker.client, "t", retention_ms=str(HOUR), file_delete_delay_ms="60000")
        await broker.append(b"a", b"b", timestamp_ms=NOW - 1)
        broker.clock.passed_ms += HOUR
        broker.roll()
        await broker.append(b"c")
        await broker.retain()
        assert broker.bounds() == (0, 3)
        broker.clock.passed_ms += 1
        await broker.retain()
        assert broker.bounds() == (2, 3)
        assert await broker.earliest() == 2
        result = await fetch(broker.client, "t", 1)
        assert result.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        result = await fetch(broker.client, "t", 2)
        assert values_in(result.records) == [b"c"]
        assert names(tmp_path / "t-0", ".deleted") == [
            "00000000000000000000.index.deleted",
            "00000000000000000000.log.deleted",
            "00000000000000000000.timeindex.deleted",
        ]
        broker.clock.passed_ms += 59_000
        await broker.maintenance.remove_deleted()
        assert names(tmp_path / "t-0", ".deleted")
        broker.clock.passed_ms += 1_000
        await broker.maintenance.remove_deleted()
        assert not names(tmp_path / "t-0", ".deleted")


async def test_changed_configs_apply_from_the_next_check(tmp_path):
    async with broker_at(tmp_path) as broker:
        for topic in ("t", "default"):
            await create_topic(broker.client, topic)
            await broker.append(b"a", topic=topic)
        broker.clock.passed_ms += HOUR
        await broker.retain()
        assert broker.bounds() == (0, 1)
        await broker.alter(2, "t", retention_ms="60000")
        await broker.retain()
        assert (broker.bounds(), broker.bounds("default")) == ((1, 1), (0, 1))
        await broker.alter(4, "", log_retention_ms="60000")
        await broker.retain()
        assert broker.bounds("default") == (1, 1)


async def test_segments_beyond_retention_bytes_are_deleted(tmp_path):
    async with broker_at(tmp_path) as broker:
        await create_topic(broker.client, "t", retention_ms="-1")
        for value in (b"a", b"b", b"c"):
            await broker.append(value * 1000)
            broker.roll()
        size = broker.partition().log.size_bytes
        await broker.alter(2, "t", retention_bytes=str(size))
        await broker.retain()
        assert broker.bounds() == (0, 3)
        await broker.alter(2, "t", retention_bytes="1500")
        await broker.retain()
        assert broker.bounds() == (1, 3)


async def test_hundreds_of_segments_are_deleted_in_one_check(tmp_path):
    async with broker_at(tmp_path) as broker:
        await create_topic(broker.client, "t", retention_ms=str(HOUR))
        for _ in range(200):
            await broker.append(b"a")
            broker.roll()
        broker.clock.passed_ms += 2 * HOUR
        await broker.retain()
        assert broker.bounds() == (200, 200)
        assert len(broker_of(broker.server).replicas.deleted_segments) == 200
        assert len(names(tmp_path / "t-0")) == 1


@pytest.mark.parametrize("jump_ms", [YEAR, -YEAR, HOUR, -HOUR])
async def test_clock_jump_expires_no_record(tmp_path, jump_ms, caplog):
    async with broker_at(tmp_path) as broker:
        kept_ms = 24 * HOUR
        await create_topic(broker.client, "t", retention_ms=str(kept_ms))
        await broker.append(b"a")
        broker.clock.passed_ms += HOUR
        broker.clock.jumped_ms += jump_ms
        with caplog.at_level(logging.WARNING):
            await broker.retain()
        assert "the wall clock has jumped" in caplog.text
        await broker.append(b"b")
        broker.clock.passed_ms += 22 * HOUR
        broker.roll()
        await broker.append(b"c")
        await broker.retain()
        assert broker.bounds() == (0, 3), "all of it is younger than a day"
        # Two days later all but the last are older, by either clock, and by no more than a jump.
        broker.clock.passed_ms += kept_ms
        await broker.retain()
        assert broker.bounds() == (2, 3)


async def test_records_with_old_timestamps_are_deleted_like_in_kafka(tmp_path):
    async with broker_at(tmp_path) as broker:
        await create_topic(broker.client, "t", retention_ms=str(HOUR))
        await broker.append(b"a", timestamp_ms=NOW - 2 * HOUR)
        broker.clock.jumped_ms += YEAR
        await broker.retain()
        assert broker.bounds() == (1, 1)


async def test_topic_deleted_during_retention_leaves_no_file_open(tmp_path, monkeypatch):
    """A deleted file uses disk space for as long as it is open."""
    async with broker_at(tmp_path) as broker:
        await create_topic(broker.client, "t", retention_ms=str(HOUR))
        for _ in range(3):
            await broker.append(b"a")
            broker.roll()
        broker.clock.passed_ms += 2 * HOUR
        partition = broker.partition()
        references = [weakref.ref(segment.log) for segment in list(partition.log.segments)[:3]]

        def set_aside(log: Log, segment: Segment) -> None:
            set_aside_segment(log, segment)
            partition.retire()

        monkeypatch.setattr(retention, "set_aside_segment", set_aside)
        await broker.retain()
        gc.collect()
        assert [file() for file in references] == [None, None, None]


async def test_retention_waits_for_a_large_append(tmp_path):
    async with broker_at(tmp_path) as broker:
        await create_topic(broker.client, "t", retention_ms=str(HOUR))
        await broker.append(b"a")
        broker.clock.passed_ms += 2 * HOUR
        lock = broker.partition().append_lock
        await lock.acquire()
        check = asyncio.create_task(broker.retain())
        for _ in range(10):
            await next_turn()
        assert not check.done()
        assert broker.bounds() == (0, 1)
        lock.release()
        await check
        assert broker.bounds() == (1, 1)


@pytest.mark.parametrize("kind", ["rename", "write"])
async def test_disk_failing_during_retention_goes_offline(tmp_path, kind):
    disk = FailingFiles()

    async with broker_at(tmp_path, files=disk) as broker:
        await create_topic(broker.client, "t", retention_ms=str(HOUR))
        await broker.append(b"a")
        broker.clock.passed_ms += 2 * HOUR
        disk.fail(tmp_path / "t-0", kind)
        await broker.retain()
        result = await produce(broker.client, "t", batch(b"b"))
        assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        log = broker.partition().log
        log.check()
        disk.broken.clear()

    async with broker_at(tmp_path) as broker:
        start, end = broker.bounds()
        assert start in {0, 1}
        assert end == 1


async def test_full_disk_does_not_prevent_deletion(tmp_path):
    disk = FailingFiles()

    async with broker_at(tmp_path, files=disk) as broker:
        await create_topic(broker.client, "t", retention_ms=str(HOUR))
        await broker.append(b"a")
        broker.roll()
        broker.clock.passed_ms += 2 * HOUR
        await broker.append(b"b")
        disk.fill()
        await broker.retain()
        assert broker.bounds() == (1, 2)
        disk.free()
        await broker.append(b"c")


async def test_full_disk_keeps_a_log_whose_last_segment_expired(tmp_path):
    disk = FailingFiles()

    async with broker_at(tmp_path, files=disk) as broker:
        await create_topic(broker.client, "t", retention_ms=str(HOUR))
        await broker.append(b"a")
        broker.clock.passed_ms += 2 * HOUR
        disk.fill()
        await broker.retain()
        assert broker.bounds() == (0, 1)
        disk.free()
        await broker.retain()
        assert broker.bounds() == (1, 1)
        await broker.append(b"b")


async def test_rolled_segment_is_flushed_and_checkpointed(tmp_path):
    async with broker_at(tmp_path) as broker:
        await create_topic(broker.client, "t")
        await broker.append(b"a", b"b")
        broker.roll()
        await broker.append(b"c")
        await broker.maintenance.checkpoint_high_watermarks()
        assert not (tmp_path / "recovery-point-offset-checkpoint").exists()
        await broker.maintenance.small_duties()
        assert broker.partition().log.recovery_point == 2
        checkpoint = tmp_path / "recovery-point-offset-checkpoint"
        assert checkpoint.read_text() == "0\n1\nt 0 2\n"
        await create_topic(broker.client, "gone")
        await broker.append(b"a", topic="gone")
        broker.roll("gone")
        await delete_topic(broker.client, "gone")
        await broker.maintenance.small_duties()


async def test_segment_deleted_during_a_flush_is_no_disk_failure(tmp_path):
    files = FailingFiles()
    files.error_number = errno.ENOENT

    async with broker_at(tmp_path, files=files) as broker:
        await create_topic(broker.client, "t")
        await broker.append(b"a")
        broker.roll()
        partition = broker.partition()
        files.fail(tmp_path / "t-0", "sync", times=1)
        await broker.maintenance.small_duties()
        assert partition.directory.is_online
        assert partition.log.recovery_point == 0
        await broker.maintenance.small_duties()
        assert partition.log.recovery_point == 1
        await broker.append(b"b")
        broker.roll()
        files.fail(tmp_path / "t-0", "sync", times=2)
        await broker.maintenance.small_duties()
        assert partition.directory.is_online
        await broker.maintenance.small_duties()
        assert not partition.directory.is_online


async def test_recovery_point_is_written_after_the_log_start_checkpoint(tmp_path):
    async with broker_at(tmp_path) as broker:
        await create_topic(broker.client, "t", retention_ms=str(HOUR))
        await broker.append(b"a", b"b")
        broker.clock.passed_ms += 2 * HOUR
        await broker.retain()
        # A power loss may restore the segment, with records that were never flushed.
        await broker.maintenance.checkpoint_recovery_points()
        assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\nt 0 2\n"
        assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\nt 0 2\n"


async def test_recreated_topic_does_not_inherit_checkpoint_offsets(tmp_path):
    async with broker_at(tmp_path) as broker:
        await create_topic(broker.client, "t", retention_ms=str(HOUR))
        await create_topic(broker.client, "other")
        await broker.append(b"a", b"b")
        broker.partition().log.increment_log_start_offset(1)
        broker.partition().log.flush()
        await broker.maintenance.checkpoint()
        assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\nt 0 1\n"
        await delete_topic(broker.client, "t")
        assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n0\n"
        assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\nother 0 0\n"


async def test_maintenance_intervals_come_from_the_config(tmp_path):
    settings = {
        "log.retention.check.interval.ms": "11",
        "log.initial.task.delay.ms": "12",
        "log.flush.offset.checkpoint.interval.ms": "13",
        "log.flush.start.offset.checkpoint.interval.ms": "14",
    }

    async with running(tmp_path, settings=settings) as server:
        duties: Any = Maintenance(broker_of(server))._duties()
        duties = {duty.work.__name__: (duty.interval_ms, duty.delay_ms) for duty in duties}
    assert duties["check_all"] == (11, 12)
    assert duties["checkpoint_recovery_points"] == (13, 12)
    assert duties["checkpoint_start_offsets"] == (14, 12)
    assert duties["checkpoint_high_watermarks"] == (5_000, 5_000)
