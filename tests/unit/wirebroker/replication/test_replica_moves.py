"""Moves of replicas between log directories while the replicas are in use."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import broker_of, client_of, config_of, running
from tests.support.protocol.requests import append, create_topic, fetch
from tests.support.records.batches import batch, values_in
from tests.support.storage.failing_files import FailingFiles
from tests.support.tools.waiting import PATIENCE_S, until
from wirebroker.broker.server import Server
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.config import StartError
from wirebroker.coordinator.controller.image.cluster_image import directory_of
from wirebroker.storage.checkpoints import LOG_START_CHECKPOINT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.protocol.raw_client import RawClient
    from wirebroker.replica.partition import Partition

# Long enough for an unwanted early event to happen.
SOON_S = 0.2
# So slow that a move waits until the test changes the rate.
SLOW = {
    "replica.alter.log.dirs.io.max.bytes.per.second": "1",
    "alter.log.dirs.replication.quota.window.num": "1000",
}


class NamesMayFail(FailingFiles):
    """A disk that can also refuse names of directories."""

    def rename(self, old_path: str, new_path: str) -> None:
        self.check("rename", new_path)
        super().rename(old_path, new_path)

    def list_subdirectories(self, path: str) -> list[str]:
        return sorted(super().list_subdirectories(path))


class NoNameForLogs(FailingFiles):
    """A disk on which no renamed directory becomes a log."""

    def rename(self, old_path: str, new_path: str) -> None:
        if new_path.endswith("/t-0"):
            raise OSError(errno.EIO, os.strerror(errno.EIO), new_path)
        super().rename(old_path, new_path)


class SlowToMake(FailingFiles):
    """A disk that creates a copy's directory after its removal.

    Attributes:
        is_making: Whether the creation has been requested.
        removed: Set once a copy's directory was removed.
    """

    __slots__ = ("_target", "is_making", "removed")

    def __init__(self, target: Path) -> None:
        super().__init__()
        self._target = target
        self.is_making = threading.Event()
        self.removed = threading.Event()

    def make_directory(self, path: str) -> None:
        if path.startswith(str(self._target)) and path.endswith("-future"):
            self.is_making.set()
            self.removed.wait(SOON_S)
        super().make_directory(path)

    def remove_tree(self, path: str) -> None:
        super().remove_tree(path)
        if path.endswith("-future"):
            self.removed.set()


class DiskOfTheMove(FailingFiles):
    """Two disks, and the second's state when the first gives up the log's name.

    Attributes:
        synced: Directory names on the second disk that survive a power loss.
        names: The synced names at that time.
        log_starts: The log starts on the second disk once the first is synced.
        is_leaving_first: Whether the first disk fails then.
    """

    __slots__ = ("_source", "_target", "is_leaving_first", "log_starts", "names", "synced")

    def __init__(self, source: Path, target: Path) -> None:
        super().__init__()
        self._source = source
        self._target = target
        self.synced: list[str] = []
        self.names: list[str] | None = None
        self.log_starts = ""
        self.is_leaving_first = False

    def rename(self, old_path: str, new_path: str) -> None:
        if old_path == f"{self._source}/t-0":
            self.names = self.synced
            if self.is_leaving_first:
                self.fail(self._source, "sync")
        super().rename(old_path, new_path)

    def sync_directory(self, path: str) -> None:
        super().sync_directory(path)
        if path == str(self._target):
            self.synced = [entry.name for entry in self._target.iterdir()]
        if path == str(self._source) and self.names is not None and not self.log_starts:
            self.log_starts = (self._target / LOG_START_CHECKPOINT).read_text()


async def move(client: RawClient, path: Path, *, topic: str = "t", partition: int = 0) -> int:
    dirs = [{"path": str(path), "topics": [{"name": topic, "partitions": [partition]}]}]
    answer = await client.ask(ApiKey.ALTER_REPLICA_LOG_DIRS, 2, {"dirs": dirs})
    return int(answer.results[0].partitions[0].error_code)


async def described(client: RawClient) -> dict[tuple[str, bool], Any]:
    """Return t-0's description by directory name and whether it is a future replica."""
    answer = await client.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, {"topics": None})
    return {
        (result.log_dir.rpartition("/")[2], partition.is_future_key): partition
        for result in answer.results
        for topic in result.topics
        if topic.name == "t"
        for partition in topic.partitions
    }


def held(server: Server) -> Partition:
    return broker_of(server).replicas.find("t", b"", by_id=False)[0][0]


def known_place(server: Server) -> bytes:
    broker = broker_of(server)
    return directory_of(broker.metadata.image.topics["t"].partitions[0], broker.node_id)


def place(server: Server) -> str:
    return held(server).directory.path


async def started(
    source: Path, target: Path, client: RawClient, server: Server, count: int
) -> None:
    assert await move(client, source) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    await create_topic(client, "t", 1)
    assert place(server) == str(source)
    assert not _directory(server, target).partitions
    for number in range(count):
        assert await append(client, "t", batch(b"%d" % number)) == number


async def check(client: RawClient, count: int) -> None:
    values = values_in((await fetch(client, "t", 0)).records)
    assert values == [b"%d" % number for number in range(count)]


def futures(target: Path) -> list[str]:
    return [path.name for path in target.glob("*-future")]


async def test_replica_is_moved_during_writes_and_stays_moved(tmp_path: Path) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    settings = {"log.segment.bytes": "1048576", "file.delete.delay.ms": "60000"}
    async with asyncio.timeout(PATIENCE_S):
        async with (
            running(source, target, settings=settings) as server,
            client_of(server) as client,
        ):
            await started(source, target, client, server, 3)
            large = batch(b"x" * 700_000)
            for offset in range(3, 10):
                assert await append(client, "t", large) == offset
            writing = asyncio.create_task(_write_on(client, 10, 60))
            async with client_of(server) as other:
                assert await move(other, target) == ErrorCode.NONE
            await writing
            await until(lambda: place(server) == str(target))
            partition = held(server)
            assert partition.log.log_end_offset == 60
            assert await append(client, "t", batch(b"after")) == 60
            assert not futures(target)
            assert [path.name.endswith("-delete") for path in source.glob("t-0*")] == [True]
            assert {key[0] for key in await described(client)} == {"two"}
            broker = broker_of(server)
            await until(
                lambda: (
                    directory_of(
                        broker.metadata.image.topics["t"].partitions[0],
                        broker.node_id,
                    )
                    == partition.directory.files.directory_id
                )
            )
            stored = b"".join(path.read_bytes() for path in sorted((target / "t-0").glob("*.log")))
            assert len(stored) == partition.log.size_bytes
        async with (
            running(source, target, settings=settings) as server,
            client_of(server) as client,
        ):
            assert place(server) == str(target)
            assert await append(client, "t", batch(b"later")) == 61
            fetched = await fetch(client, "t", 59)
            assert values_in(fetched.records)[1:] == [b"after", b"later"]


async def _write_on(client: RawClient, first: int, end: int) -> None:
    for number in range(first, end):
        assert await append(client, "t", batch(b"%d" % number)) == number


async def test_move_in_progress_is_shown_and_can_be_cancelled(tmp_path: Path) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    async with (
        asyncio.timeout(PATIENCE_S),
        running(source, target, settings=SLOW) as server,
        client_of(server) as client,
    ):
        await started(source, target, client, server, 5)
        assert await move(client, target) == ErrorCode.NONE
        await until(lambda: list(broker_of(server).replica_moves.of(_directory(server, target))))
        await until(lambda: futures(target))
        assert await move(client, target) == ErrorCode.NONE  # a repetition changes nothing
        size = held(server).log.size_bytes
        await until(lambda: _copied(server, target) == size)
        descriptions = await described(client)
        assert {*descriptions} == {("one", False), ("two", True)}
        assert descriptions["two", True].partition_size == size
        assert await append(client, "t", batch(b"5")) == 5
        assert (await described(client))["two", True].offset_lag > 0
        assert await move(client, source) == ErrorCode.NONE
        await until(lambda: not futures(target))
        assert {*await described(client)} == {("one", False)}
        await check(client, 6)


@pytest.mark.parametrize("lifted", [(0, "300000000"), (1, None)], ids=["raised", "deleted"])
async def test_throttled_move_continues_after_its_rate_is_changed(
    tmp_path: Path, lifted: tuple[int, str | None]
) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    name, window = SLOW
    async with (
        asyncio.timeout(PATIENCE_S),
        running(source, target, settings={window: SLOW[window]}) as server,
        client_of(server) as client,
    ):
        await started(source, target, client, server, 1)
        large = batch(b"x" * 700_000)
        for offset in range(1, 6):
            assert await append(client, "t", large) == offset
        await set_config(client, name, 0, "1")
        await until(lambda: broker_of(server).replication_quotas.moves.is_set)
        assert await move(client, target) == ErrorCode.NONE
        await until(lambda: _copied(server, target))
        assert place(server) == str(source)
        await set_config(client, name, *lifted)
        await until(lambda: place(server) == str(target))


async def set_config(client: RawClient, name: str, operation: int, value: str | None) -> None:
    config = {"name": name, "config_operation": operation, "value": value}
    resource = {"resource_type": 4, "resource_name": "", "configs": [config]}
    answer = await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource]})
    assert answer.responses[0].error_code == ErrorCode.NONE


def _directory(server: Server, path: Path) -> Any:
    return next(
        directory
        for directory in broker_of(server).replicas.directories
        if directory.path == str(path)
    )


def _copied(server: Server, path: Path) -> int:
    moves = broker_of(server).replica_moves.of(_directory(server, path))
    return sum(copied for _, copied, _ in moves)


async def test_move_interrupted_by_a_stop_starts_again(tmp_path: Path) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    async with asyncio.timeout(PATIENCE_S):
        async with running(source, target, settings=SLOW) as server, client_of(server) as client:
            await started(source, target, client, server, 5)
            assert await move(client, target) == ErrorCode.NONE
            await until(lambda: _copied(server, target))
        copies = futures(target)
        assert len(copies) == 1
        async with running(source, target) as server, client_of(server) as client:
            await until(lambda: place(server) == str(target))
            await check(client, 5)
            await until(lambda: not futures(target))


@pytest.mark.parametrize("is_twice", [False, True])
async def test_complete_copy_left_by_a_kill_becomes_the_log(tmp_path: Path, is_twice: bool) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    async with asyncio.timeout(PATIENCE_S):
        async with running(source, target) as server, client_of(server) as client:
            await started(source, target, client, server, 5)
            await move(client, target)
            await until(lambda: place(server) == str(target))
        if is_twice:
            shutil.copytree(target / "t-0", source / "t-0", dirs_exist_ok=True)
        else:
            (target / "t-0").rename(target / f"t-0.{'0' * 32}-future")
        async with running(source, target) as server, client_of(server) as client:
            assert place(server) == str(target)
            await check(client, 5)
        assert len(list(source.glob("t-0.*-stray"))) == is_twice


@pytest.mark.parametrize("is_twice", [False, True])
async def test_disk_failing_during_copy_recovery_is_offline_and_the_other_serves(
    tmp_path: Path, is_twice: bool
) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    settings = {"metadata.log.dir": str(tmp_path / "metadata")}
    disk = NamesMayFail()
    async with asyncio.timeout(PATIENCE_S):
        async with (
            running(source, target, settings=settings) as server,
            client_of(server) as client,
        ):
            await started(source, target, client, server, 5)
            await move(client, target)
            await until(lambda: place(server) == str(target))
        if is_twice:
            shutil.copytree(target / "t-0", source / "t-0", dirs_exist_ok=True)
        else:
            (target / "t-0").rename(target / f"t-0.{'0' * 32}-future")
        disk.fail((source if is_twice else target) / "t-", "rename")
        async with (
            running(source, target, settings=settings, files=disk) as server,
            client_of(server) as client,
        ):
            assert _directory(server, source).is_online != is_twice
            assert _directory(server, target).is_online == is_twice
            assert place(server) == str(target)
            if is_twice:
                await check(client, 5)
            assert (source / "t-0").exists() == is_twice, "it is not created again"
        disk.broken.clear()
        async with (
            running(source, target, settings=settings) as server,
            client_of(server) as client,
        ):
            assert place(server) == str(target)
            await check(client, 5)


@pytest.mark.parametrize("failing", ["t-0", "u-0"])  # before and after the log exists
async def test_promoted_copy_becomes_the_log_if_the_source_disk_fails_to_load(
    tmp_path: Path, failing: str
) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    settings = {"metadata.log.dir": str(tmp_path / "metadata")}
    disk = NamesMayFail()
    async with asyncio.timeout(PATIENCE_S):
        async with (
            running(source, target, settings=settings) as server,
            client_of(server) as client,
        ):
            await started(source, target, client, server, 5)
            await move(client, source, topic="u")
            await create_topic(client, "u", 1)
            assert await append(client, "u", batch(b"u")) == 0
            await move(client, target)
            await until(lambda: place(server) == str(target))
            await until(lambda: known_place(server) == held(server).directory.directory_id)
        shutil.copytree(target / "t-0", source / "t-0", dirs_exist_ok=True)
        (target / "t-0").rename(target / f"t-0.{'0' * 32}-future")
        for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint"):
            (source / name).unlink()
        disk.fail(source / failing, "read")
        async with (
            running(source, target, settings=settings, files=disk) as server,
            client_of(server) as client,
        ):
            assert not _directory(server, source).is_online
            assert place(server) == str(target)
            await check(client, 5)
            assert await append(client, "t", batch(b"5")) == 5
            assert not futures(target)


async def test_copy_recovery_requires_the_disk_of_the_metadata_log(
    tmp_path: Path,
) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    disk = NamesMayFail()
    async with asyncio.timeout(PATIENCE_S):
        async with running(source, target) as server, client_of(server) as client:
            await started(source, target, client, server, 5)
            await move(client, target)
            await until(lambda: place(server) == str(target))
        shutil.copytree(target / "t-0", source / "t-0", dirs_exist_ok=True)
        disk.fail(source / "t-", "rename")
        with pytest.raises(StartError, match=f"the data directory {source} cannot be read"):
            await Server(config_of(source, target), files=disk).start()


@pytest.mark.parametrize("is_replaced", [True, False])
async def test_missing_source_disk_does_not_promote_a_copy(
    tmp_path: Path, is_replaced: bool
) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    settings = {**SLOW, "metadata.log.dir": str(tmp_path / "metadata")}
    async with asyncio.timeout(PATIENCE_S):
        async with (
            running(source, target, settings=settings) as server,
            client_of(server) as client,
        ):
            await started(source, target, client, server, 5)
            await until(lambda: known_place(server) == held(server).directory.directory_id)
            assert await move(client, target) == ErrorCode.NONE
            await until(lambda: _copied(server, target))
        copies = futures(target)
        away = source.rename(tmp_path / "away")
        source.mkdir()
        if not is_replaced:
            (source / "meta.properties").mkdir()  # unreadable
        async with (
            running(source, target, settings=settings) as server,
            client_of(server) as client,
        ):
            if is_replaced:
                await check(client, 0)
                assert len(list(target.glob("t-0.*-stray"))) == 1  # a new copy may have begun
                return
            assert not held(server).directory.is_online
            assert futures(target) == copies
        shutil.rmtree(source)
        away.rename(source)
        del settings["replica.alter.log.dirs.io.max.bytes.per.second"]
        async with (
            running(source, target, settings=settings) as server,
            client_of(server) as client,
        ):
            await until(lambda: place(server) == str(target))
            await check(client, 5)


async def test_failed_move_to_an_unwritable_directory_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    disk = NamesMayFail()
    async with (
        asyncio.timeout(PATIENCE_S),
        running(source, target, files=disk) as server,
        client_of(server) as client,
    ):
        await started(source, target, client, server, 5)
        for kind in ("write", "rename"):
            disk.fail(target / "t-", kind)
            caplog.clear()
            assert await move(client, target) == ErrorCode.NONE
            await until(lambda: "cannot move t-0" in caplog.text)
            await until(lambda: not futures(target))
            disk.broken.clear()
        await check(client, 5)
        assert place(server) == str(source)
        assert await append(client, "t", batch(b"5")) == 5


async def test_swap_that_cannot_be_undone_is_completed_at_the_next_start(
    tmp_path: Path,
) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    disk = NoNameForLogs()
    async with asyncio.timeout(PATIENCE_S):
        async with running(source, target, files=disk) as server, client_of(server) as client:
            await started(source, target, client, server, 5)
            assert await move(client, target) == ErrorCode.NONE
            first, second = _directory(server, source), _directory(server, target)
            await until(lambda: not (first.is_online or second.is_online))
            assert len(futures(target)) == 1
            assert not (source / "t-0").exists()
        async with running(source, target) as server, client_of(server) as client:
            assert place(server) == str(target)
            await check(client, 5)


async def test_cancelled_move_waits_for_its_thread_before_cleanup(tmp_path: Path) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    disk = SlowToMake(target)
    async with asyncio.timeout(PATIENCE_S):
        async with running(source, target, files=disk) as server, client_of(server) as client:
            await started(source, target, client, server, 5)
            assert await move(client, target) == ErrorCode.NONE
            await until(disk.is_making.is_set)
            taken_back = broker_of(server).replica_moves
            assert await move(client, source) == ErrorCode.NONE
            await until(disk.removed.is_set)
            assert not futures(target)
            assert not list(taken_back.of(_directory(server, target)))
        async with running(source, target) as server, client_of(server) as client:
            assert place(server) == str(source)
            await check(client, 5)
            assert not futures(target)


async def test_power_loss_leaves_no_unnamed_log_or_deleted_records(
    tmp_path: Path,
) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    disk = DiskOfTheMove(source, target)
    async with (
        asyncio.timeout(PATIENCE_S),
        running(source, target, files=disk) as server,
        client_of(server) as client,
    ):
        await started(source, target, client, server, 5)
        topics = [{"name": "t", "partitions": [{"partition_index": 0, "offset": 3}]}]
        await client.ask(ApiKey.DELETE_RECORDS, 2, {"topics": topics, "timeout_ms": 1000})
        assert held(server).log.log_start_offset == 3
        assert await move(client, target) == ErrorCode.NONE
        await until(lambda: disk.log_starts)
        assert [name.endswith("-future") for name in disk.names or () if name.startswith("t-0")]
        assert disk.log_starts.endswith("\nt 0 3\n")
        await until(lambda: held(server).log.recovery_point == 5)


async def test_source_disk_failing_at_the_end_does_not_affect_the_target(tmp_path: Path) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    disk = DiskOfTheMove(source, target)
    disk.is_leaving_first = True
    async with (
        asyncio.timeout(PATIENCE_S),
        running(source, target, files=disk) as server,
        client_of(server) as client,
    ):
        await started(source, target, client, server, 5)
        assert await move(client, target) == ErrorCode.NONE
        first, second = _directory(server, source), _directory(server, target)
        await until(lambda: not (first.is_online and second.is_online))
        assert (first.is_online, second.is_online) == (False, True)
        await check(client, 5)
        assert await append(client, "t", batch(b"5")) == 5


async def test_cancelled_directory_assignment_is_corrected_despite_late_metadata(
    tmp_path: Path,
) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    async with (
        asyncio.timeout(PATIENCE_S),
        running(source, target) as server,
        client_of(server) as client,
    ):
        await started(source, target, client, server, 1)
        broker, partition = broker_of(server), held(server)
        replicas = broker.replicas
        assert server.replication is not None
        directories = server.replication.directories

        def recorded_directory() -> bytes:
            image = broker.metadata.image
            return directory_of(image.topics["t"].partitions[0], broker.node_id)

        await until(lambda: recorded_directory() == partition.directory.files.directory_id)
        before = replicas.image
        await directories.tell(partition, _directory(server, target).files.directory_id)
        await until(lambda: recorded_directory() == _directory(server, target).files.directory_id)
        newest, replicas.image = replicas.image, before
        directories.forget(partition)
        replicas.image = newest
        await until(lambda: recorded_directory() == _directory(server, source).files.directory_id)
