"""A partition over a real log: epochs, high watermark, appends in turn, flushes, waiters."""

from __future__ import annotations

import asyncio
import errno
import threading
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from tests.support.batches import TIMESTAMP_MS, batch
from tests.support.failing_files import FailingFiles
from wirebroker.clock import next_turn
from wirebroker.cluster.data_directory import DataDirectory
from wirebroker.cluster.group_commit import GroupCommit
from wirebroker.cluster.partition import LARGE_APPEND_BYTES, Partition
from wirebroker.codecs.compression import Codec
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.config import Config
from wirebroker.coordinator.cluster_image import PartitionImage
from wirebroker.storage.files import DataFile
from wirebroker.storage.log import Log
from wirebroker.storage.log_directory import LogDirectory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NODE = 1


def image(
    *,
    leader: int = NODE,
    leader_epoch: int = 3,
    replicas: tuple[int, ...] = (NODE,),
    isr: tuple[int, ...] = (NODE,),
):
    return PartitionImage(
        index=0,
        replicas=replicas,
        isr=isr,
        leader=leader,
        leader_epoch=leader_epoch,
        partition_epoch=0,
        directories=(bytes(16),) * len(replicas),
    )


class Kit:
    """A partition, its directory and its disk."""

    def __init__(self, path: Path, *, is_always: bool = False, **settings: str) -> None:
        self.disk = FailingFiles()
        self.directory = DataDirectory(LogDirectory.open(str(path), self.disk, node_id=NODE))
        topic_id = b"i" * 16
        where = self.directory.files.create_partition_directory("t", 0, topic_id)
        overrides = {name.replace("_", "."): value for name, value in settings.items()}
        log = Log(
            where,
            self.disk,
            topic="t",
            partition=0,
            topic_id=topic_id,
            settings=Config({}).topic_settings(overrides),
        )
        log.load(recovery_point=0, clean=True, now_ms=0)
        self.failures: list[OSError] = []
        self.commits = GroupCommit(is_always=is_always, on_failure=self._disk_failed)
        self.partition = Partition(
            log,
            image(),
            topic="t",
            node_id=NODE,
            directory=self.directory,
            commits=self.commits,
        )
        self.log = log

    def _disk_failed(self, directory: DataDirectory, error: OSError) -> None:
        directory.is_online = False
        self.failures.append(error)
        self.partition.wake_watchers()

    def append(self, *values: bytes) -> int:
        records = memoryview(bytearray(batch(*values)))
        now_ms = TIMESTAMP_MS
        return self.partition.append(records, now_ms=now_ms, request_version=12).base_offset

    async def append_in_turn(self, *values: bytes) -> int:
        records = memoryview(bytearray(batch(*values)))
        now_ms = TIMESTAMP_MS
        done = await self.partition.append_in_turn(records, now_ms=now_ms, request_version=12)
        return done.base_offset


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


def large(fill: bytes = b"x") -> bytes:
    return fill * (LARGE_APPEND_BYTES + 1)


class HeldWrites:
    """Writes of the log wait in their thread until they are let go."""

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


def test_the_leader_epoch_decides_who_is_served(kit):
    kit.partition.check_leader()
    kit.partition.check_leader(3)
    assert code_of(lambda: kit.partition.check_leader(2)) == ErrorCode.FENCED_LEADER_EPOCH
    assert code_of(lambda: kit.partition.check_leader(4)) == ErrorCode.UNKNOWN_LEADER_EPOCH
    kit.partition.update(image(leader=-1, leader_epoch=4))
    assert code_of(kit.partition.check_leader) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_too_few_in_sync_replicas_refuse_acks_all(tmp_path):
    kit = Kit(tmp_path, min_insync_replicas="2")
    kit.partition.check_in_sync()  # more than there are are never demanded
    kit.partition.update(image(replicas=(1, 2), isr=(1,)))
    assert code_of(kit.partition.check_in_sync) == ErrorCode.NOT_ENOUGH_REPLICAS
    kit.partition.update(image(replicas=(1, 2), isr=(1, 2)))
    kit.partition.check_in_sync()
    kit.directory.files.close()


def test_what_is_appended_is_committed_and_watchers_are_told(kit):
    told: list[int] = []

    def on_advance() -> None:
        told.append(kit.log.high_watermark)

    kit.partition.watch(on_advance)
    assert kit.append(b"a", b"b") == 0
    assert kit.append(b"c") == 2
    assert told == [2, 3]
    kit.partition.unwatch(on_advance)
    kit.partition.unwatch(on_advance)
    kit.append(b"d")
    assert told == [2, 3]
    kit.log.check()


def test_a_new_leader_commits_what_its_log_holds(kit):
    kit.partition.update(image(leader=-1, leader_epoch=4))
    kit.append(b"a")
    kit.log.set_high_watermark(0)
    kit.partition.update(image(leader_epoch=5))
    assert kit.log.high_watermark == 1


def test_an_epoch_without_records_ends_where_the_log_does(kit):
    partition = kit.partition
    assert partition.end_offset_for_epoch(3) == (3, 0)
    assert partition.end_offset_for_epoch(1) == (1, 0), "older than all: what follows begins here"
    assert partition.end_offset_for_epoch(4) == (-1, -1)
    assert partition.end_offset_for_epoch(-1) == (-1, -1)
    assert partition.earliest() == (0, 3)
    kit.append(b"a", b"b")
    partition.update(image(leader_epoch=7))
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
        ({}, 20_000, {}, False),
        ({}, 1, {"codec": Codec.ZSTD}, False),
        ({"cleanup_policy": "compact"}, 1, {}, False),
        ({"cleanup_policy": "compact"}, 2_000, {}, True),
        ({"cleanup_policy": "compact"}, 1, {"codec": Codec.ZSTD}, True),
        ({"compression_type": "lz4"}, 2_000, {}, True),
        ({}, 2_000, {"timestamp_ms": TIMESTAMP_MS + 7_200_000}, True),
        ({"message_timestamp_before_max_ms": "1000"}, 2_000, {"timestamp_ms": 1}, True),
    ],
)
def test_batches_whose_records_are_walked_take_long(tmp_path, settings, values, fields, expected):
    kit = Kit(tmp_path, **settings)
    records = memoryview(batch(*[b"12345678"] * values, **fields))
    assert kit.partition.takes_long(records, now_ms=TIMESTAMP_MS) is expected
    kit.directory.files.close()


def test_a_large_append_leaves_the_loop_and_the_next_one_waits_its_turn(kit, monkeypatch):
    async def run() -> None:
        held = HeldWrites(monkeypatch)
        assert not kit.partition.is_appending
        first = asyncio.create_task(kit.append_in_turn(large()))
        await held.wait_until_begun()
        assert kit.partition.is_appending
        second = asyncio.create_task(kit.append_in_turn(b"small"))
        await next_turn()
        assert kit.log.log_end_offset == 0
        held.go.set()
        assert (await first, await second) == (0, 1)
        assert not kit.partition.is_appending
        kit.log.check()

    asyncio.run(run())


def test_a_large_append_that_fails_leaves_nothing_behind(kit):
    async def run() -> None:
        kit.append(b"before")
        kit.disk.fail(kit.log.directory, "write")
        with pytest.raises(OSError, match="Input/output"):
            await kit.append_in_turn(large())
        kit.disk.broken.clear()
        assert await kit.append_in_turn(b"after") == 1
        kit.log.check()

    asyncio.run(run())


def test_an_append_is_not_acknowledged_if_the_directory_fails_meanwhile(kit, monkeypatch):
    async def run() -> None:
        held = HeldWrites(monkeypatch)
        append = asyncio.create_task(kit.append_in_turn(large()))
        behind = asyncio.create_task(kit.append_in_turn(b"small"))
        await held.wait_until_begun()
        kit.directory.is_online = False
        held.go.set()
        for task in (append, behind):
            with pytest.raises(KafkaError) as caught:
                await task
            assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert kit.log.log_end_offset == 0

    asyncio.run(run())


def test_who_waits_for_a_turn_finds_the_partition_retired(kit, monkeypatch):
    async def run() -> None:
        held = HeldWrites(monkeypatch)
        append = asyncio.create_task(kit.append_in_turn(large()))
        behind = asyncio.create_task(kit.append_in_turn(b"small"))
        await held.wait_until_begun()
        kit.partition.retire()
        held.go.set()
        await append
        with pytest.raises(KafkaError) as caught:
            await behind
        assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    asyncio.run(run())


def test_an_offline_directory_comes_before_everything_else(kit):
    kit.directory.is_online = False
    assert code_of(lambda: kit.partition.check_leader(2)) == ErrorCode.KAFKA_STORAGE_ERROR


def test_flush_messages_holds_the_high_watermark_until_the_records_are_on_the_disk(tmp_path):
    async def run() -> None:
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

    asyncio.run(run())


def test_with_fsync_nothing_is_committed_that_is_not_on_the_disk(tmp_path):
    async def run() -> None:
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

    asyncio.run(run())


def test_a_leader_syncs_what_an_unclean_stop_left_before_it_counts(tmp_path):
    async def run() -> None:
        kit = Kit(tmp_path, is_always=True)
        kit.partition.resign()
        kit.append(b"a")
        await kit.commits.until_idle()
        kit.log.high_watermark = kit.log.recovery_point = 0
        kit.partition.update(image(leader_epoch=4))
        assert kit.log.high_watermark == 0
        await kit.partition.until_committed(1)
        kit.directory.files.close()

    asyncio.run(run())


def test_flushes_that_come_together_share_one_sync(kit, monkeypatch):
    async def run() -> None:
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
        others = [asyncio.create_task(kit.partition.flush()) for _ in range(5)]
        await next_turn()
        assert not any(task.done() for task in others)
        go.set()
        await asyncio.gather(first, *others)
        assert kit.commits.rounds == 2
        assert kit.log.recovery_point == 2

    asyncio.run(run())


def test_a_flush_waits_for_the_thread_that_writes(kit, monkeypatch):
    """Both would replace the file of the leader epochs."""

    async def run() -> None:
        kit.append(b"a")
        held = HeldWrites(monkeypatch)
        append = asyncio.create_task(kit.append_in_turn(large()))
        await held.wait_until_begun()
        flush = asyncio.create_task(kit.partition.flush())
        settled = asyncio.create_task(kit.partition.until_settled())
        await next_turn()
        assert kit.log.recovery_point == 0
        assert not settled.done()
        held.go.set()
        await asyncio.gather(append, flush, settled)
        assert kit.log.recovery_point == 2

    asyncio.run(run())


def test_a_flush_of_a_retired_partition_is_no_disk_failure(kit):
    async def run() -> None:
        kit.append(b"a")
        kit.disk.fail(kit.log.directory, "sync")
        flush = asyncio.create_task(kit.partition.flush())
        await next_turn()
        kit.partition.retire()
        with pytest.raises(KafkaError) as caught:
            await flush
        assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    asyncio.run(run())


def test_a_flush_that_failed_for_a_shortage_leaves_all_to_the_next_round(kit):
    synced: list[str] = []

    async def run() -> None:
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
        # The names in the directory, which the first round had in hand, are the second one's.
        assert synced[-1] == kit.log.directory

    asyncio.run(run())


def test_after_a_failed_sync_a_later_one_counts_for_nothing(kit):
    async def run() -> None:
        kit.append(b"a")
        kit.disk.fail(kit.log.directory, "sync", times=1)
        for _ in range(2):
            with pytest.raises(KafkaError) as caught:
                await kit.partition.flush()
            assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        kit.commits.add(kit.partition)
        await kit.commits.until_idle()
        assert (kit.log.recovery_point, len(kit.failures)) == (0, 1)

    asyncio.run(run())


def test_a_sync_that_finds_no_room_has_lost_records(kit):
    async def run() -> None:
        kit.append(b"a")
        kit.disk.error_number = errno.ENOSPC
        kit.disk.fail(kit.log.directory, "sync", times=1)
        with pytest.raises(KafkaError):
            await kit.partition.flush()
        assert [error.errno for error in kit.failures] == [errno.ENOSPC]

    asyncio.run(run())
