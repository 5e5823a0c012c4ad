"""A partition over a real log: epochs, high watermark, ordered appends, flushes, waiters."""

from __future__ import annotations

import asyncio
import errno
import threading
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from tests.support.records.batches import TIMESTAMP_MS, batch
from tests.support.replicas.roles import lead
from tests.support.storage.failing_files import FailingFiles
from wirebroker.base.clock import Slices, SystemClock, next_turn
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import build_batch
from wirebroker.codecs.records.compression import Codec
from wirebroker.codecs.records.walk import IS_QUICK
from wirebroker.config import Config
from wirebroker.config.rows.topic import TopicSettings
from wirebroker.disks.data_directory import DataDirectory
from wirebroker.replica.group_commit import GroupCommit
from wirebroker.replica.local_replica import LARGE_APPEND_BYTES
from wirebroker.replica.partition import Partition
from wirebroker.replica.replica_context import ReplicaContext
from wirebroker.storage.files import DataFile
from wirebroker.storage.log.leader_epochs import LeaderEpochs
from wirebroker.storage.log.log import Log
from wirebroker.storage.log_directory import LogDirectory
from wirebroker.storage.recovery.log_recovery import load_log

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NODE = 1


class Kit:
    def __init__(self, path: Path, *, is_always: bool = False, **settings: str) -> None:
        self.disk = FailingFiles()
        self.directory = DataDirectory(LogDirectory.open(str(path), self.disk, node_id=NODE))
        topic_id = b"i" * 16
        partition_path = self.directory.files.create_partition_directory("t", 0, topic_id)
        overrides = {name.replace("_", "."): value for name, value in settings.items()}
        log = Log(
            partition_path,
            self.disk,
            topic="t",
            partition=0,
            topic_id=topic_id,
            settings=Config({}).topic_settings(overrides),
        )
        load_log(log, recovery_point=0, clean=True, now_ms=0)
        self.failures: list[OSError] = []
        self.commits = GroupCommit(is_always=is_always, on_failure=self._disk_failed)
        self.partition = Partition(
            log,
            directory=self.directory,
            host=ReplicaContext(
                NODE, commits=self.commits, clock=SystemClock(), most_lag_ms=30_000
            ),
        )
        lead(self.partition, leader_epoch=3)
        self.log = log

    def _disk_failed(self, directory: DataDirectory, error: OSError) -> None:
        assert directory is self.directory
        self.failures.append(error)
        self.take_offline()

    def take_offline(self) -> None:
        """Do what the replica manager does when a disk fails."""
        self.directory.is_online = False
        self.partition.resign()
        self.partition.wake_watchers()

    def append(self, *values: bytes) -> int:
        records = memoryview(bytearray(batch(*values)))
        now_ms = TIMESTAMP_MS
        return self.partition.append(records, now_ms=now_ms, request_version=12).base_offset

    def follow(self, value: bytes, *, offset: int = 0, high_watermark: int = 0) -> int:
        role = self.partition.role
        record = (None, value, ())
        return self.partition.append_as_follower(
            bytes(build_batch([record], base_offset=offset, leader_epoch=role.leader_epoch)),
            leader_epoch=role.leader_epoch,
            high_watermark=high_watermark,
            log_start_offset=0,
            now_ms=TIMESTAMP_MS,
        )

    async def append_in_turn(self, *values: bytes) -> int:
        records = memoryview(bytearray(batch(*values)))
        now_ms = TIMESTAMP_MS
        done = await self.partition.append_in_turn(
            records, now_ms=now_ms, request_version=12, slices=Slices(SystemClock())
        )
        return done.base_offset


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


def code_of(call: Callable[[], Any]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        call()
    return caught.value.code


# Applies where records are parsed by Python; otherwise it is never reached.
BRIEF_RECORDS = 3_000


def large(fill: bytes = b"x") -> bytes:
    return fill * (LARGE_APPEND_BYTES + 1)


class HeldWrites:
    """Block writes of the log in their thread until the test releases them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.began = threading.Event()
        self.go = threading.Event()
        write = DataFile.write_at

        def held(file: DataFile, position: int, data: Any) -> None:
            self.began.set()
            assert self.go.wait(10)
            write(file, position, data)

        monkeypatch.setattr(DataFile, "write_at", held)

    async def wait_until_begun(self) -> None:
        assert await asyncio.to_thread(self.began.wait, 10)


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


async def test_flush_messages_holds_back_the_high_watermark_until_synced(tmp_path):
    kit = Kit(tmp_path, flush_messages="2")
    kit.append(b"a")
    assert (kit.log.high_watermark, kit.log.recovery_point) == (1, 0)
    kit.append(b"b")
    assert (kit.log.high_watermark, kit.log.recovery_point) == (1, 0)
    await kit.partition.until_committed(2)
    assert (kit.log.high_watermark, kit.log.recovery_point) == (2, 2)
    await kit.partition.flush()
    kit.append(b"c")
    assert (kit.log.high_watermark, kit.log.recovery_point) == (3, 2)
    kit.directory.files.close()


async def test_fsync_commits_only_synced_records(tmp_path):
    kit = Kit(tmp_path, is_always=True)
    woken: list[int] = []
    kit.partition.watch(lambda: woken.append(kit.log.high_watermark))
    kit.append(b"a")
    kit.append(b"b")
    assert (kit.log.high_watermark, woken) == (0, [])
    await kit.partition.until_committed(2)
    assert (kit.log.high_watermark, kit.log.recovery_point) == (2, 2)
    assert kit.commits.rounds == 1
    assert set(woken) == {2}
    kit.directory.files.close()


async def test_new_leader_syncs_unflushed_records_before_counting_them(tmp_path):
    kit = Kit(tmp_path, is_always=True)
    lead(kit.partition, leader=2, replicas=(1, 2))
    kit.follow(b"a")
    await kit.commits.until_idle()
    kit.log.high_watermark = kit.log.recovery_point = 0
    lead(kit.partition)
    assert kit.log.high_watermark == 0
    await kit.partition.until_committed(1)
    kit.directory.files.close()


async def test_simultaneous_flushes_share_one_sync(kit, monkeypatch):
    began, go = threading.Event(), threading.Event()

    def check(kind: str, path: str) -> None:
        if kind == "sync" and path.endswith(".log"):
            began.set()
            assert go.wait(10)

    monkeypatch.setattr(FailingFiles, "check", lambda _, kind, path: check(kind, path))
    kit.append(b"a")
    first = asyncio.create_task(kit.partition.flush())
    assert await asyncio.to_thread(began.wait, 10)
    kit.append(b"b")
    other_flushes = [asyncio.create_task(kit.partition.flush()) for _ in range(5)]
    await next_turn()
    assert not any(task.done() for task in other_flushes)
    go.set()
    await asyncio.gather(first, *other_flushes)
    assert kit.commits.rounds == 2
    assert kit.log.recovery_point == 2


async def test_sync_before_a_truncation_does_not_cover_later_records(kit, monkeypatch):
    began, go = threading.Event(), threading.Event()
    synced_at: list[int] = []

    def check(kind: str, path: str) -> None:
        if kind == "sync" and path.endswith(".log"):
            synced_at.append(kit.log.recovery_point)
            if not began.is_set():
                began.set()
                assert go.wait(10)

    monkeypatch.setattr(FailingFiles, "check", lambda _, kind, path: check(kind, path))
    lead(kit.partition, leader=2, replicas=(1, 2), leader_epoch=4)
    for offset in range(4):
        kit.follow(b"lost", offset=offset)
    flush = asyncio.create_task(kit.partition.flush())
    assert await asyncio.to_thread(began.wait, 10)
    await kit.partition.truncate_in_turn(1, leader_epoch=4, clock=SystemClock())
    for offset in (1, 2, 3):
        kit.follow(b"new", offset=offset)
    go.set()
    await flush
    assert synced_at[-1] == 1, (
        "the sync that began before the cut says nothing of what is behind it"
    )
    assert kit.log.recovery_point == 4
    kit.log.check()


async def test_flush_waits_for_an_append_in_a_thread(kit, monkeypatch):
    """Both would replace the file of the leader epochs."""
    kit.append(b"a")
    held_writes = HeldWrites(monkeypatch)
    append = asyncio.create_task(kit.append_in_turn(large()))
    await held_writes.wait_until_begun()
    flush = asyncio.create_task(kit.partition.flush())
    settled = asyncio.create_task(kit.partition.until_settled())
    await next_turn()
    assert kit.log.recovery_point == 0
    assert not settled.done()
    held_writes.go.set()
    await asyncio.gather(append, flush, settled)
    assert kit.log.recovery_point == 2


async def test_a_flush_of_a_retired_partition_is_no_disk_failure(kit):
    kit.append(b"a")
    kit.disk.fail(kit.log.directory, "sync")
    flush = asyncio.create_task(kit.partition.flush())
    await next_turn()
    kit.partition.retire()
    kit.partition.wake_watchers()
    with pytest.raises(KafkaError) as caught:
        await flush
    assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_flush_failing_with_emfile_is_retried_completely(kit):
    synced: list[str] = []

    kit.append(b"a")
    kit.disk.error_number = errno.EMFILE
    kit.disk.fail(f"{kit.log.directory}/0", "sync", times=1)
    check = kit.disk.check

    def note(kind: str, path: str) -> None:
        if kind == "sync":
            synced.append(path)
        check(kind, path)

    with mock.patch.object(FailingFiles, "check", lambda _, kind, path: note(kind, path)):
        await kit.partition.flush()
    assert kit.log.recovery_point == 1
    assert kit.commits.rounds == 2
    assert kit.failures == []
    # The second sync covers the directory's names that the first round had begun with.
    assert synced[-1] == kit.log.directory


async def test_nothing_counts_as_flushed_after_a_failed_sync(kit):
    kit.append(b"a")
    kit.disk.fail(kit.log.directory, "sync", times=1)
    for _ in range(2):
        with pytest.raises(KafkaError) as caught:
            await kit.partition.flush()
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    kit.commits.add(kit.partition)
    await kit.commits.until_idle()
    assert (kit.log.recovery_point, len(kit.failures)) == (0, 1)


async def test_sync_without_disk_space_is_a_disk_failure(kit):
    kit.append(b"a")
    kit.disk.error_number = errno.ENOSPC
    kit.disk.fail(kit.log.directory, "sync", times=1)
    with pytest.raises(KafkaError):
        await kit.partition.flush()
    assert [error.errno for error in kit.failures] == [errno.ENOSPC]


async def test_failed_sync_is_attributed_to_the_synced_directory(tmp_path):
    first_path, second_path = tmp_path / "one", tmp_path / "two"
    kit = Kit(first_path, is_always=True)
    other = DataDirectory(LogDirectory.open(str(second_path), kit.disk, node_id=NODE))
    kit.append(b"a")
    await next_turn()
    assert kit.commits.rounds == 1  # it has begun
    kit.disk.fail(first_path, "sync", times=1)
    kit.partition.move_to(other)
    await kit.commits.until_idle()
    assert [error.errno for error in kit.failures] == [errno.EIO]  # of the first, says the kit
    assert kit.commits.rounds == 2
    assert kit.log.recovery_point == 1
    kit.log.close(clean=False)
    for directory in (kit.directory, other):
        directory.files.close()
