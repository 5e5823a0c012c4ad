"""Flushes of a partition: fsync, shared syncs, and syncs that fail."""

from __future__ import annotations

import asyncio
import errno
import threading
from unittest import mock

import pytest

from tests.support.replicas.roles import lead
from tests.support.storage.failing_files import FailingFiles
from tests.unit.wirebroker.replica.partition_kit import NODE, HeldWrites, Kit, large
from wirebroker.base.clock import SystemClock, next_turn
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.disks.data_directory import DataDirectory
from wirebroker.storage.log_directory import LogDirectory


@pytest.fixture
def kit(tmp_path):
    kit = Kit(tmp_path, max_message_bytes=str(64 << 20))
    yield kit
    kit.disk.broken.clear()
    kit.log.close(clean=False)
    kit.directory.files.close()


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
