"""A partition over a real log: epochs, high watermark, ordered appends, waiters."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.records.batches import TIMESTAMP_MS, batch
from tests.support.replicas.roles import lead
from tests.support.storage.failing_files import FailingFiles
from tests.unit.wirebroker.replica.partition_kit import (
    BRIEF_RECORDS,
    HeldWrites,
    Kit,
    code_of,
    large,
)
from wirebroker.base.clock import Slices, SystemClock, next_turn
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.walk import IS_QUICK
from wirebroker.config.rows.topic import TopicSettings
from wirebroker.replica.partition import Partition
from wirebroker.storage.log.leader_epochs import LeaderEpochs

if TYPE_CHECKING:
    from wirebroker.storage.log.log import Log


@pytest.fixture
def python_walks(tmp_path, monkeypatch):
    """Return a directory for a partition whose records are walked by Python, in any build."""
    monkeypatch.setattr("wirebroker.replica.local_replica.BRIEF_RECORDS", BRIEF_RECORDS)
    return tmp_path


@pytest.fixture
def kit(tmp_path):
    kit = Kit(tmp_path, max_message_bytes=str(64 << 20))
    yield kit
    kit.disk.broken.clear()
    kit.log.close(clean=False)
    kit.directory.files.close()


def test_requests_are_checked_by_leader_epoch(kit):
    kit.partition.check_leader()
    kit.partition.check_leader(3)
    assert code_of(lambda: kit.partition.check_leader(2)) == ErrorCode.FENCED_LEADER_EPOCH
    assert code_of(lambda: kit.partition.check_leader(4)) == ErrorCode.UNKNOWN_LEADER_EPOCH
    lead(kit.partition, leader=-1)
    assert code_of(kit.partition.check_leader) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_too_few_in_sync_replicas_refuse_acks_all(tmp_path):
    kit = Kit(tmp_path, min_insync_replicas="2")
    kit.partition.check_in_sync()  # demands no more than exist
    lead(kit.partition, replicas=(1, 2), isr=(1,))
    assert code_of(kit.partition.check_in_sync) == ErrorCode.NOT_ENOUGH_REPLICAS
    lead(kit.partition, replicas=(1, 2))
    kit.partition.check_in_sync()
    kit.directory.files.close()


def test_append_commits_and_notifies_watchers(kit):
    high_watermarks: list[int] = []

    def on_advance() -> None:
        high_watermarks.append(kit.log.high_watermark)

    kit.partition.watch(on_advance)
    assert kit.append(b"a", b"b") == 0
    assert kit.append(b"c") == 2
    assert high_watermarks == [2, 3]
    kit.partition.unwatch(on_advance)
    kit.partition.unwatch(on_advance)
    kit.append(b"d")
    assert high_watermarks == [2, 3]
    kit.log.check()


def test_isr_change_of_the_metadata_notifies_watchers(kit):
    """DeleteRecords no longer waits for a replica that has been fenced."""
    lead(kit.partition, replicas=(1, 2), isr=(1, 2))
    notified: list[tuple[int, ...]] = []

    def on_advance() -> None:
        assert kit.partition.leading is not None
        notified.append(tuple(kit.partition.leading.isr))

    kit.partition.watch(on_advance)
    epoch = kit.partition.leader_epoch
    lead(kit.partition, replicas=(1, 2), isr=(1,), leader_epoch=epoch)
    assert notified == [(1,)]
    kit.partition.unwatch(on_advance)


def test_new_leader_commits_the_records_of_its_log(kit):
    lead(kit.partition, leader=2, replicas=(1, 2))
    kit.follow(b"a")
    assert kit.log.high_watermark == 0
    lead(kit.partition)
    assert kit.log.high_watermark == 1


def test_epoch_without_records_ends_at_the_log_end(kit):
    partition = kit.partition
    assert partition.end_offset_for_epoch(3) == (3, 0)
    assert partition.end_offset_for_epoch(1) == (1, 0), "older than all: what follows begins here"
    assert partition.end_offset_for_epoch(4) == (-1, -1)
    assert partition.end_offset_for_epoch(-1) == (-1, -1)
    assert partition.earliest() == (0, 3)
    kit.append(b"a", b"b")
    lead(partition, leader_epoch=7)
    assert partition.end_offset_for_epoch(3) == (3, 2)
    assert partition.end_offset_for_epoch(5) == (3, 2)
    assert partition.end_offset_for_epoch(7) == (7, 2)
    assert partition.end_offset_for_epoch(8) == (-1, -1)
    assert partition.earliest() == (0, 3)
    kit.append(b"c")
    assert partition.end_offset_for_epoch(5) == (3, 2)
    assert partition.end_offset_for_epoch(7) == (7, 3)


@pytest.mark.parametrize(
    ("settings", "values", "fields", "expected"),
    [
        ({}, 1, {}, False),
        ({}, BRIEF_RECORDS, {}, False),
        ({}, BRIEF_RECORDS + 1, {}, True),
        ({}, BRIEF_RECORDS + 1, {"codec": Codec.ZSTD}, True),
        ({}, 1, {"codec": Codec.ZSTD}, False),
        ({"cleanup_policy": "compact"}, 1, {"codec": Codec.ZSTD}, False),
        ({"compression_type": "lz4"}, 1, {}, False),
        ({"compression_type": "lz4"}, 2_000, {}, True),
        ({"compression_type": "lz4"}, 1, {"codec": Codec.ZSTD}, True),
        ({"compression_type": "zstd"}, 1, {"codec": Codec.ZSTD}, False),
    ],
)
def test_expensive_batches_are_recognized(python_walks, settings, values, fields, expected):
    kit = Kit(python_walks, **settings)
    records = memoryview(batch(*[b"12345678"] * values, **fields))
    assert kit.partition.takes_long(records) is expected
    kit.directory.files.close()


class ChangingSlices(Slices):
    """Slices during which, the first time, a topic's settings change."""

    def __init__(self, log: Log, settings: TopicSettings) -> None:
        super().__init__(SystemClock())
        self.log = log
        self.settings = settings
        self.count = 0

    async def run(self, steps: Any) -> Any:
        result = await super().run(steps)
        self.count += 1
        if self.count == 1:
            self.log.settings = self.settings
        return result


@pytest.mark.skipif(IS_QUICK, reason="the walk in C is a part of the append's own thread")
async def test_records_are_validated_again_after_a_config_change(kit, monkeypatch):
    slices = ChangingSlices(kit.log, TopicSettings(cleanup_policy=("compact",)))
    records = memoryview(bytearray(batch(b"v", key=None, codec=Codec.GZIP)))
    monkeypatch.setattr(Partition, "takes_long", lambda _self, _records: True)
    with pytest.raises(KafkaError) as caught:
        await kit.partition.append_in_turn(
            records, now_ms=TIMESTAMP_MS, request_version=12, slices=slices
        )
    assert caught.value.code == ErrorCode.INVALID_RECORD
    assert slices.count == 2


async def test_large_append_runs_in_a_thread_and_the_next_one_waits(kit, monkeypatch):
    held_writes = HeldWrites(monkeypatch)
    assert not kit.partition.is_appending
    first = asyncio.create_task(kit.append_in_turn(large()))
    await held_writes.wait_until_begun()
    assert kit.partition.is_appending
    second = asyncio.create_task(kit.append_in_turn(b"small"))
    await next_turn()
    assert kit.log.log_end_offset == 0
    held_writes.go.set()
    assert (await first, await second) == (0, 1)
    assert not kit.partition.is_appending
    kit.log.check()


async def test_large_append_after_a_start_hides_no_epoch(kit, monkeypatch):
    """A reader meanwhile would otherwise get no epochs."""
    kit.append(b"in epoch 3")
    kit.log.leader_epochs.persist()
    kit.log.leader_epochs = LeaderEpochs(kit.disk, kit.log.directory)
    lead(kit.partition, leader_epoch=5)
    readers: list[threading.Thread] = []
    read_file = FailingFiles.read_file

    def noting(files: FailingFiles, path: str) -> bytes:
        readers.append(threading.current_thread())
        return read_file(files, path)

    monkeypatch.setattr(FailingFiles, "read_file", noting)
    assert (await kit.append_in_turn(large())) == 1
    assert readers == [threading.main_thread()]
    assert kit.partition.end_offset_for_epoch(3) == (3, 1)
    assert kit.partition.end_offset_for_epoch(5) == (5, 2)


async def test_failed_large_append_leaves_nothing(kit):
    kit.append(b"before")
    kit.disk.fail(kit.log.directory, "write")
    with pytest.raises(OSError, match="Input/output"):
        await kit.append_in_turn(large())
    kit.disk.broken.clear()
    assert await kit.append_in_turn(b"after") == 1
    kit.log.check()


async def test_append_is_not_acknowledged_if_the_directory_fails(kit, monkeypatch):
    held_writes = HeldWrites(monkeypatch)
    append = asyncio.create_task(kit.append_in_turn(large()))
    next_append = asyncio.create_task(kit.append_in_turn(b"small"))
    await held_writes.wait_until_begun()
    kit.take_offline()
    held_writes.go.set()
    for task in (append, next_append):
        with pytest.raises(KafkaError) as caught:
            await task
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert kit.log.log_end_offset == 0


async def test_waiting_append_fails_when_the_partition_is_retired(kit, monkeypatch):
    held_writes = HeldWrites(monkeypatch)
    append = asyncio.create_task(kit.append_in_turn(large()))
    next_append = asyncio.create_task(kit.append_in_turn(b"small"))
    await held_writes.wait_until_begun()
    kit.partition.retire()
    held_writes.go.set()
    await append
    with pytest.raises(KafkaError) as caught:
        await next_append
    assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_offline_directory_takes_precedence_over_other_errors(kit):
    kit.take_offline()
    assert code_of(lambda: kit.partition.check_leader(2)) == ErrorCode.KAFKA_STORAGE_ERROR
