"""A broker with two directories that moves a replica, and disks that fail meanwhile."""

from __future__ import annotations

import errno
import os
import threading
from typing import TYPE_CHECKING, Any

from tests.support.brokers.servers import broker_of
from tests.support.protocol.requests import append, create_topic, fetch
from tests.support.records.batches import batch, values_in
from tests.support.storage.failing_files import FailingFiles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.controller.image.cluster_image import directory_of
from wirebroker.storage.checkpoints import LOG_START_CHECKPOINT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.protocol.raw_client import RawClient
    from wirebroker.broker.server import Server
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
    assert not data_directory(server, target).partitions
    for number in range(count):
        assert await append(client, "t", batch(b"%d" % number)) == number


async def check(client: RawClient, count: int) -> None:
    values = values_in((await fetch(client, "t", 0)).records)
    assert values == [b"%d" % number for number in range(count)]


def futures(target: Path) -> list[str]:
    return [path.name for path in target.glob("*-future")]


def data_directory(server: Server, path: Path) -> Any:
    return next(
        directory
        for directory in broker_of(server).replicas.directories
        if directory.path == str(path)
    )


def copied_so_far(server: Server, path: Path) -> int:
    moves = broker_of(server).replica_moves.of(data_directory(server, path))
    return sum(copied for _, copied, _ in moves)
