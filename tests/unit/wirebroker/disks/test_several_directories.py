"""Two brokers with two log directories each, one of which fails."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.metadata_writes import give_remote_storage
from tests.support.brokers.servers import broker_of, client_of, config_of, running
from tests.support.protocol.requests import create_topic
from tests.support.records.batches import batch
from tests.support.storage.failing_files import FailingFiles
from tests.support.tools.ports import free_ports
from tests.support.tools.waiting import PATIENCE_S, until
from wirebroker.broker.server import Server
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.config import StartError
from wirebroker.coordinator.controller.image.cluster_image import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    ClusterImage,
    PartitionImage,
    TopicImage,
    directory_of,
)
from wirebroker.quorum.membership.own_lifecycle import OwnLifecycle
from wirebroker.replica.log_copies import sort_out
from wirebroker.storage.files import Files
from wirebroker.storage.log_directory import LogDirectory, PartitionDirectory

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from wirebroker.config import Config
    from wirebroker.disks.data_directory import DataDirectory

PARTITIONS = 4


@contextlib.asynccontextmanager
async def cluster(tmp_path: Path) -> AsyncIterator[dict[int, Server]]:
    port = free_ports(1)[0]
    servers: dict[int, Server] = {}
    metadata = {"metadata.log.dir": str(tmp_path / "metadata")}
    try:
        for node_id in (1, 2):
            servers[node_id] = Server(
                config_of(
                    *places(tmp_path, node_id),
                    settings={
                        "node.id": str(node_id),
                        "process.roles": "broker,controller" if node_id == 1 else "broker",
                        "listeners": "PLAINTEXT://127.0.0.1:0"
                        + (f",CONTROLLER://127.0.0.1:{port}" if node_id == 1 else ""),
                        "controller.listener.names": "CONTROLLER",
                        "controller.quorum.voters": f"1@127.0.0.1:{port}",
                        **(metadata if node_id == 1 else {}),
                    },
                )
            )
            await servers[node_id].start()
        yield servers
    finally:
        for server in reversed(servers.values()):
            await server.stop()


def places(tmp_path: Path, node_id: int) -> list[Path]:
    return [tmp_path / f"{node_id}-{name}" for name in ("one", "two")]


def partition(server: Server, index: int) -> PartitionImage:
    image = broker_of(server).metadata.image.partition("t", index)
    assert image is not None
    return image


def directory(server: Server, path: Path) -> DataDirectory:
    [match] = [
        candidate
        for candidate in broker_of(server).replicas.directories
        if candidate.path == str(path)
    ]
    return match


def led_by(server: Server, indexes: list[int]) -> set[int]:
    return {partition(server, index).leader for index in indexes}


async def create(server: Server, replicas: list[int]) -> None:
    topic = {
        "name": "t",
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": [
            {"partition_index": index, "broker_ids": replicas} for index in range(PARTITIONS)
        ],
    }
    async with client_of(server) as client:
        answer = await client.ask(
            ApiKey.CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 20_000}
        )
        assert not answer.topics[0].error_code, answer.topics[0]


async def produce(server: Server, index: int) -> int:
    data = {"name": "t", "partition_data": [{"index": index, "records": batch(b"v")}]}
    async with client_of(server) as client:
        answer = await client.ask(
            ApiKey.PRODUCE, 12, {"acks": -1, "timeout_ms": 20_000, "topic_data": [data]}
        )
    return int(answer.responses[0].partition_responses[0].error_code)


@pytest.mark.parametrize("failing", [1, 2])
async def test_replicas_of_a_failed_directory_are_led_by_the_other_broker(
    tmp_path: Path, failing: int
) -> None:
    async with asyncio.timeout(PATIENCE_S), cluster(tmp_path) as servers:
        other = 3 - failing
        await create(servers[1], [failing, other])
        path_by_id = {
            log_directory.files.directory_id: log_directory.path
            for log_directory in broker_of(servers[failing]).replicas.directories
        }

        def lies_in(index: int) -> str | None:
            return path_by_id.get(directory_of(partition(servers[1], index), failing))

        await until(lambda: all(map(lies_in, range(PARTITIONS))))
        online_directory, failed_directory = (str(path) for path in places(tmp_path, failing))
        lost = [index for index in range(PARTITIONS) if lies_in(index) == failed_directory]
        unaffected = [index for index in range(PARTITIONS) if lies_in(index) == online_directory]
        assert len(lost) == len(unaffected) == PARTITIONS // 2
        assert led_by(servers[1], [*lost, *unaffected]) == {failing}
        # Both know the topic by then.
        await until(lambda: "t" in broker_of(servers[other]).metadata.image.topics)

        manager = broker_of(servers[failing]).replicas
        error = OSError(errno.EIO, "the disk is gone")
        manager.directory_failed(directory(servers[failing], tmp_path / f"{failing}-two"), error)
        await until(lambda: led_by(servers[1], lost) == {other})
        await until(lambda: led_by(servers[other], lost) == {other})
        assert led_by(servers[1], unaffected) == {failing}
        assert {partition(servers[1], index).isr for index in lost} == {(other,)}
        assert await produce(servers[other], lost[0]) == 0
        assert await produce(servers[failing], unaffected[0]) == 0


async def restart(servers: dict[int, Server], node_id: int, files: Files | None = None) -> Server:
    stopped = servers.pop(node_id)
    await stopped.stop()
    return await start(servers, node_id, stopped.config, files)


async def start(
    servers: dict[int, Server], node_id: int, config: Config, files: Files | None = None
) -> Server:
    servers[node_id] = Server(config, files=files)
    await servers[node_id].start()
    return servers[node_id]


def places_of(server: Server, node_id: int) -> dict[int, bytes]:
    """Return the directories of a broker's replicas of t in the metadata."""
    return {index: directory_of(partition(server, index), node_id) for index in range(PARTITIONS)}


async def divided(servers: dict[int, Server], node_id: int) -> tuple[list[int], list[int]]:
    """Create t; return its partitions in the node's first directory and in the other."""
    await create(servers[1], [node_id, 3 - node_id])
    await until(lambda: bytes(16) not in places_of(servers[1], node_id).values())
    first = broker_of(servers[node_id]).replicas.directories[0].directory_id
    directory_ids = places_of(servers[1], node_id)
    in_first = [index for index, directory_id in directory_ids.items() if directory_id == first]
    return in_first, [index for index in directory_ids if index not in in_first]


class Unreadable(FailingFiles):
    """A disk on which listing a given directory fails."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = str(directory)

    def list_directory(self, path: str) -> list[str]:
        if path.startswith(self._directory):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return super().list_directory(path)


@pytest.mark.parametrize("node_id", [pytest.param(1, marks=pytest.mark.nightly), 2])
async def test_start_continues_without_an_unusable_directory(
    tmp_path: Path, node_id: int, caplog: pytest.LogCaptureFixture
) -> None:
    other = 3 - node_id
    async with asyncio.timeout(PATIENCE_S), cluster(tmp_path) as servers:
        unaffected, lost = await divided(servers, node_id)
        stopped = servers.pop(node_id)
        await stopped.stop()
        failed = places(tmp_path, node_id)[1]
        away = failed.rename(tmp_path / "away")
        failed.write_text("no directory")
        server = await start(servers, node_id, stopped.config)
        assert f"the data directory {failed} cannot be used: Not a directory" in caplog.text
        await until(lambda: led_by(servers[1], lost) == {other})
        await until(lambda: all(partition(server, index).isr == (other,) for index in lost))
        await until(
            lambda: all(node_id in partition(servers[1], index).isr for index in unaffected)
        )
        assert not list(places(tmp_path, node_id)[0].glob(f"t-{lost[0]}*"))
        partitions = broker_of(server).replicas.find("t", b"", by_id=False)[0]
        assert {index: partitions[index].directory.is_online for index in partitions} == {
            index: index in unaffected for index in range(PARTITIONS)
        }
        assert await produce(servers[other], lost[0]) == 0
        async with client_of(server) as client:
            answer = await client.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, {"topics": None})
        assert [result.error_code for result in answer.results] == [
            0,
            ErrorCode.KAFKA_STORAGE_ERROR,
        ]

        stopped = servers.pop(node_id)
        await stopped.stop()
        failed.unlink()
        away.rename(failed)
        server = await start(servers, node_id, stopped.config)
        await until(lambda: all(node_id in partition(servers[1], index).isr for index in lost))
        log = broker_of(server).replicas.find("t", b"", by_id=False)[0][lost[0]].log
        await until(lambda: log.log_end_offset == 1)


async def test_disk_failing_during_log_loading_loses_only_its_replicas(
    tmp_path: Path,
) -> None:
    async with asyncio.timeout(PATIENCE_S), cluster(tmp_path) as servers:
        unaffected, lost = await divided(servers, 2)
        await restart(servers, 2, Unreadable(places(tmp_path, 2)[1] / "t-"))
        await until(lambda: led_by(servers[1], lost) == {1})
        await until(lambda: all(partition(servers[1], index).isr == (1,) for index in lost))
        await until(lambda: all(2 in partition(servers[1], index).isr for index in unaffected))
        assert await produce(servers[1], lost[0]) == 0


@pytest.mark.parametrize("damaged", ["no file of properties", "version=7\n"])
async def test_directory_without_valid_meta_properties_is_offline(
    tmp_path: Path, damaged: str
) -> None:
    first_path, second_path = tmp_path / "one", tmp_path / "two"
    async with running(first_path, second_path):
        pass
    (second_path / "meta.properties").write_text(damaged)
    async with running(first_path, second_path) as server, client_of(server) as client:
        assert [
            log_directory.is_online for log_directory in broker_of(server).replicas.directories
        ] == [True, False]
        await create_topic(client, "t", 3)
    assert (second_path / "meta.properties").read_text() == damaged


class ShutDown(FailingFiles):
    """A file system that refuses stat of a directory, as XFS does after its shutdown."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = str(directory)

    def exists(self, path: str) -> bool:
        self._check(path)
        return super().exists(path)

    def make_directory(self, path: str) -> None:
        self._check(path)
        super().make_directory(path)

    def _check(self, path: str) -> None:
        if path.startswith(self._directory):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)


async def test_start_continues_without_an_unclean_unreadable_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_path, second_path = tmp_path / "one", tmp_path / "two"
    async with running(first_path, second_path):
        pass
    registered_epochs: list[int] = []
    register = OwnLifecycle.register

    async def noted(self: OwnLifecycle, **arguments: Any) -> None:
        registered_epochs.append(arguments["previous_broker_epoch"])
        await register(self, **arguments)

    monkeypatch.setattr(OwnLifecycle, "register", noted)
    server = Server(config_of(first_path, second_path), files=ShutDown(second_path))
    async with asyncio.timeout(PATIENCE_S):
        await server.start()
        assert [
            log_directory.is_online for log_directory in broker_of(server).replicas.directories
        ] == [True, False]
        await server.stop()
    assert registered_epochs == [-1]  # Kafka's brokers also report this for a missing directory


async def test_new_directory_gets_the_cluster_id_of_the_metadata_log(tmp_path: Path) -> None:
    first_path, second_path = tmp_path / "one", tmp_path / "two"
    settings = {"metadata.log.dir": str(second_path)}
    async with running(second_path, settings=settings) as server:
        cluster_id = broker_of(server).cluster_id
    async with running(first_path, second_path, settings=settings) as server:
        assert broker_of(server).cluster_id == cluster_id
        assert [log_directory.path for log_directory in broker_of(server).replicas.directories] == [
            str(first_path),
            str(second_path),
        ]


def test_copy_is_promoted_only_after_all_directories_were_searched(
    tmp_path: Path,
) -> None:
    """In a cluster whose metadata does not record directories."""
    log_directory = LogDirectory.open(str(tmp_path / "one"), Files(), node_id=1)
    topic_id = b"t" * 16
    path = log_directory.future_path("t", 0)
    log_directory.create_future_directory(path, topic_id)
    log_directory.futures.append(PartitionDirectory("t", 0, path, topic_id))
    placed = PartitionImage(0, (1,), (1,), 1, 0, 0, (MIGRATING_DIRECTORY,))
    topic = TopicImage("t", topic_id, {0: placed})
    image = ClusterImage(
        topics={"t": topic}, topics_by_id={topic_id: topic}, features={"metadata.version": 16}
    )
    assert not sort_out([log_directory], image, node_id=1, is_whole=False).promoted
    assert [copy_path.suffix for copy_path in (tmp_path / "one").glob("t-0.*")] == [
        Path(path).suffix
    ]
    assert sort_out([log_directory], image, node_id=1, is_whole=True).promoted == {
        log_directory.partition_path("t", 0)
    }
    log_directory.close()


class Unrenamed(FailingFiles):
    def rename(self, old_path: str, new_path: str) -> None:
        self.check("rename", old_path)
        super().rename(old_path, new_path)


@pytest.mark.parametrize("is_first", [False, True])
def test_promoted_copy_is_used_if_the_disk_of_its_log_fails(
    tmp_path: Path, *, is_first: bool
) -> None:
    files = Unrenamed()
    old, new = (LogDirectory.open(str(tmp_path / name), files, node_id=1) for name in "ab")
    topic_id = b"t" * 16
    for index in (0, 1):
        path = old.create_partition_directory("t", index, topic_id)
        old.partitions.append(PartitionDirectory("t", index, path, topic_id))
    # The rest of another copy whose log is deleted has to be renamed there.
    for directory, index in ((new, 0), (old, 2)):
        path = directory.future_path("t", index)
        directory.create_future_directory(path, topic_id)
        directory.futures.append(PartitionDirectory("t", index, path, topic_id))
    log_directories = {0: new, 1: old, 2: new}
    placed = {
        index: PartitionImage(index, (1,), (1,), 1, 0, 0, (log_directory.directory_id,))
        for index, log_directory in log_directories.items()
    }
    topic = TopicImage("t", topic_id, placed)
    image = ClusterImage(
        topics={"t": topic}, topics_by_id={topic_id: topic}, features={"metadata.version": 25}
    )
    files.fail(old.path, "rename")
    directories = [old, new] if is_first else [new, old]
    copies = sort_out(directories, image, node_id=1, is_whole=True)
    assert list(copies.failed) == [old]
    assert copies.promoted == {new.partition_path("t", 0)}
    assert new.to_delete == []
    assert [partition_directory.path for partition_directory in new.partitions] == [
        new.partition_path("t", 0)
    ]
    assert copies.unfinished == []
    for directory in directories:
        directory.close()


@pytest.mark.parametrize("failing", [["one"], ["one", "two"], ["other"]])
async def test_start_requires_a_data_directory_and_the_metadata(
    tmp_path: Path, failing: list[str]
) -> None:
    first_path, second_path = tmp_path / "one", tmp_path / "two"
    async with running(first_path, second_path):
        pass
    for name in failing:
        if name == "other":  # it does not exist and cannot be created: a mistake in log.dirs
            second_path = first_path / "meta.properties" / "two"
            continue
        (tmp_path / name / "meta.properties").unlink()
        (tmp_path / name / "meta.properties").mkdir()
    with pytest.raises(StartError, match=r"cannot use the data directory|is not a regular file"):
        await Server(config_of(first_path, second_path)).start()


async def test_remote_storage_topic_is_led_by_the_broker_that_supports_it(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE_S), cluster(tmp_path) as servers:
        await create(servers[1], [2, 1])
        await until(lambda: led_by(servers[1], [*range(PARTITIONS)]) == {2})
        await give_remote_storage(servers[1], "t")
        # Broker 1 simulates one with remote storage: it opened the topic earlier.
        await restart(servers, 2)
        await until(lambda: led_by(servers[1], [*range(PARTITIONS)]) == {1})
        assert set(places_of(servers[1], 2).values()) == {LOST_DIRECTORY}
        assert {partition(servers[1], index).isr for index in range(PARTITIONS)} == {(1,)}
        assert await produce(servers[1], 0) == 0


async def test_replica_is_recreated_in_the_directory_named_by_the_metadata(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE_S), cluster(tmp_path) as servers:
        await create(servers[1], [2])

        def metadata_directories() -> list[bytes]:
            return [directory_of(partition(servers[1], index), 2) for index in range(PARTITIONS)]

        def broker_directories() -> list[bytes]:
            partitions = broker_of(servers[2]).replicas.find("t", b"", by_id=False)[0]
            return [partitions[index].directory.files.directory_id for index in range(PARTITIONS)]

        await until(lambda: bytes(16) not in metadata_directories())
        before = metadata_directories()
        assert broker_directories() == before
        stopped = servers.pop(2)
        await stopped.stop()
        for folder in (tmp_path / "2-two").glob("t-*"):
            shutil.rmtree(folder)
        servers[2] = Server(stopped.config)
        await servers[2].start()
        assert metadata_directories() == broker_directories() == before
