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
from wirebroker.replica.found_copies import sort_out
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
    found = broker_of(server).metadata.image.partition("t", index)
    assert found is not None
    return found


def directory(server: Server, path: Path) -> DataDirectory:
    [found] = [each for each in broker_of(server).replicas.directories if each.path == str(path)]
    return found


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
async def test_what_lay_in_a_directory_that_fails_is_led_by_the_other_broker(
    tmp_path: Path, failing: int
) -> None:
    async with asyncio.timeout(PATIENCE_S), cluster(tmp_path) as servers:
        other = 3 - failing
        await create(servers[1], [failing, other])
        where = {
            each.files.directory_id: each.path
            for each in broker_of(servers[failing]).replicas.directories
        }

        def lies_in(index: int) -> str | None:
            return where.get(directory_of(partition(servers[1], index), failing))

        await until(lambda: all(map(lies_in, range(PARTITIONS))))
        one, two = (str(each) for each in places(tmp_path, failing))
        lost = [index for index in range(PARTITIONS) if lies_in(index) == two]
        kept = [index for index in range(PARTITIONS) if lies_in(index) == one]
        assert len(lost) == len(kept) == PARTITIONS // 2
        assert led_by(servers[1], [*lost, *kept]) == {failing}
        # Both know the topic by then.
        await until(lambda: "t" in broker_of(servers[other]).metadata.image.topics)

        manager = broker_of(servers[failing]).replicas
        error = OSError(errno.EIO, "the disk is gone")
        manager.directory_failed(directory(servers[failing], tmp_path / f"{failing}-two"), error)
        await until(lambda: led_by(servers[1], lost) == {other})
        await until(lambda: led_by(servers[other], lost) == {other})
        assert led_by(servers[1], kept) == {failing}
        assert {partition(servers[1], index).isr for index in lost} == {(other,)}
        assert await produce(servers[other], lost[0]) == 0
        assert await produce(servers[failing], kept[0]) == 0


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
    return {each: directory_of(partition(server, each), node_id) for each in range(PARTITIONS)}


async def divided(servers: dict[int, Server], node_id: int) -> tuple[list[int], list[int]]:
    """Create t; return its partitions in the node's first directory and in the other."""
    await create(servers[1], [node_id, 3 - node_id])
    await until(lambda: bytes(16) not in places_of(servers[1], node_id).values())
    first = broker_of(servers[node_id]).replicas.directories[0].directory_id
    told = places_of(servers[1], node_id)
    one = [index for index, place in told.items() if place == first]
    return one, [index for index in told if index not in one]


class Unreadable(FailingFiles):
    """A disk on which listing a given directory fails."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = str(directory)

    def list_directory(self, path: str) -> list[str]:
        if path.startswith(self._directory):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return super().list_directory(path)


@pytest.mark.parametrize("node_id", [1, 2])
async def test_a_start_goes_on_without_a_directory_that_cannot_be_opened(
    tmp_path: Path, node_id: int, caplog: pytest.LogCaptureFixture
) -> None:
    other = 3 - node_id
    async with asyncio.timeout(PATIENCE_S), cluster(tmp_path) as servers:
        kept, lost = await divided(servers, node_id)
        stopped = servers.pop(node_id)
        await stopped.stop()
        failed = places(tmp_path, node_id)[1]
        away = failed.rename(tmp_path / "away")
        failed.write_text("no directory")
        server = await start(servers, node_id, stopped.config)
        assert f"the data directory {failed} cannot be used: Not a directory" in caplog.text
        await until(lambda: led_by(servers[1], lost) == {other})
        await until(lambda: all(partition(server, each).isr == (other,) for each in lost))
        await until(lambda: all(node_id in partition(servers[1], each).isr for each in kept))
        assert not list(places(tmp_path, node_id)[0].glob(f"t-{lost[0]}*"))
        held = broker_of(server).replicas.find("t", b"", by_id=False)[0]
        assert {each: held[each].directory.is_online for each in held} == {
            each: each in kept for each in range(PARTITIONS)
        }
        assert await produce(servers[other], lost[0]) == 0
        async with client_of(server) as client:
            answer = await client.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, {"topics": None})
        assert [each.error_code for each in answer.results] == [0, ErrorCode.KAFKA_STORAGE_ERROR]

        stopped = servers.pop(node_id)
        await stopped.stop()
        failed.unlink()
        away.rename(failed)
        server = await start(servers, node_id, stopped.config)
        await until(lambda: all(node_id in partition(servers[1], each).isr for each in lost))
        log = broker_of(server).replicas.find("t", b"", by_id=False)[0][lost[0]].log
        await until(lambda: log.log_end_offset == 1)


async def test_a_disk_that_fails_while_its_logs_are_opened_costs_what_lies_there(
    tmp_path: Path,
) -> None:
    async with asyncio.timeout(PATIENCE_S), cluster(tmp_path) as servers:
        kept, lost = await divided(servers, 2)
        await restart(servers, 2, Unreadable(places(tmp_path, 2)[1] / "t-"))
        await until(lambda: led_by(servers[1], lost) == {1})
        await until(lambda: all(partition(servers[1], each).isr == (1,) for each in lost))
        await until(lambda: all(2 in partition(servers[1], each).isr for each in kept))
        assert await produce(servers[1], lost[0]) == 0


@pytest.mark.parametrize("damaged", ["no file of properties", "version=7\n"])
async def test_a_directory_that_nobody_knows_is_one_that_has_failed(
    tmp_path: Path, damaged: str
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    async with running(one, two):
        pass
    (two / "meta.properties").write_text(damaged)
    async with running(one, two) as server, client_of(server) as client:
        assert [each.is_online for each in broker_of(server).replicas.directories] == [True, False]
        await create_topic(client, "t", 3)
    assert (two / "meta.properties").read_text() == damaged


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


async def test_a_start_goes_on_without_a_disk_that_says_nothing_and_was_not_left_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    async with running(one, two):
        pass
    told: list[int] = []
    register = OwnLifecycle.register

    async def noted(self: OwnLifecycle, **said: Any) -> None:
        told.append(said["previous_broker_epoch"])
        await register(self, **said)

    monkeypatch.setattr(OwnLifecycle, "register", noted)
    server = Server(config_of(one, two), files=ShutDown(two))
    async with asyncio.timeout(PATIENCE_S):
        await server.start()
        assert [each.is_online for each in broker_of(server).replicas.directories] == [True, False]
        await server.stop()
    assert told == [-1]  # Kafka's brokers also report this for a missing directory


async def test_a_new_directory_belongs_to_the_cluster_of_the_metadata_log(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    settings = {"metadata.log.dir": str(two)}
    async with running(two, settings=settings) as server:
        cluster_id = broker_of(server).cluster_id
    async with running(one, two, settings=settings) as server:
        assert broker_of(server).cluster_id == cluster_id
        assert [each.path for each in broker_of(server).replicas.directories] == [
            str(one),
            str(two),
        ]


def test_a_copy_may_be_half_where_nobody_is_told_and_the_log_cannot_be_looked_for(
    tmp_path: Path,
) -> None:
    """In a cluster whose metadata does not record directories."""
    one = LogDirectory.open(str(tmp_path / "one"), Files(), node_id=1)
    topic_id = b"t" * 16
    path = one.future_path("t", 0)
    one.create_future_directory(path, topic_id)
    one.futures.append(PartitionDirectory("t", 0, path, topic_id))
    placed = PartitionImage(0, (1,), (1,), 1, 0, 0, (MIGRATING_DIRECTORY,))
    topic = TopicImage("t", topic_id, {0: placed})
    image = ClusterImage(
        topics={"t": topic}, topics_by_id={topic_id: topic}, features={"metadata.version": 16}
    )
    assert not sort_out([one], image, node_id=1, is_whole=False).promoted
    assert [each.suffix for each in (tmp_path / "one").glob("t-0.*")] == [Path(path).suffix]
    assert sort_out([one], image, node_id=1, is_whole=True).promoted == {one.partition_path("t", 0)}
    one.close()


class Unrenamed(FailingFiles):
    def rename(self, old_path: str, new_path: str) -> None:
        self.check("rename", old_path)
        super().rename(old_path, new_path)


@pytest.mark.parametrize("is_first", [False, True])
def test_a_promised_copy_is_used_where_the_disk_of_its_log_fails_meanwhile(
    tmp_path: Path, *, is_first: bool
) -> None:
    files = Unrenamed()
    old, new = (LogDirectory.open(str(tmp_path / each), files, node_id=1) for each in "ab")
    topic_id = b"t" * 16
    for index in (0, 1):
        path = old.create_partition_directory("t", index, topic_id)
        old.partitions.append(PartitionDirectory("t", index, path, topic_id))
    # The rest of another copy whose log is deleted has to be renamed there.
    for directory, index in ((new, 0), (old, 2)):
        path = directory.future_path("t", index)
        directory.create_future_directory(path, topic_id)
        directory.futures.append(PartitionDirectory("t", index, path, topic_id))
    places = {0: new, 1: old, 2: new}
    placed = {
        index: PartitionImage(index, (1,), (1,), 1, 0, 0, (where.directory_id,))
        for index, where in places.items()
    }
    topic = TopicImage("t", topic_id, placed)
    image = ClusterImage(
        topics={"t": topic}, topics_by_id={topic_id: topic}, features={"metadata.version": 25}
    )
    files.fail(old.path, "rename")
    directories = [old, new] if is_first else [new, old]
    found = sort_out(directories, image, node_id=1, is_whole=True)
    assert list(found.failed) == [old]
    assert found.promoted == {new.partition_path("t", 0)}
    assert new.to_delete == []
    assert [each.path for each in new.partitions] == [new.partition_path("t", 0)]
    assert found.unfinished == []
    for directory in directories:
        directory.close()


@pytest.mark.parametrize("failing", [["one"], ["one", "two"], ["other"]])
async def test_a_start_needs_a_directory_and_the_metadata(
    tmp_path: Path, failing: list[str]
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    async with running(one, two):
        pass
    for name in failing:
        if name == "other":  # it does not exist and cannot be created: a mistake in log.dirs
            two = one / "meta.properties" / "two"
            continue
        (tmp_path / name / "meta.properties").unlink()
        (tmp_path / name / "meta.properties").mkdir()
    with pytest.raises(StartError, match=r"cannot use the data directory|is no regular file"):
        await Server(config_of(one, two)).start()


async def test_a_topic_with_remote_storage_is_led_by_whoever_has_some(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE_S), cluster(tmp_path) as servers:
        await create(servers[1], [2, 1])
        await until(lambda: led_by(servers[1], [*range(PARTITIONS)]) == {2})
        await give_remote_storage(servers[1], "t")
        # Broker 1 simulates one with remote storage: it opened the topic earlier.
        await restart(servers, 2)
        await until(lambda: led_by(servers[1], [*range(PARTITIONS)]) == {1})
        assert set(places_of(servers[1], 2).values()) == {LOST_DIRECTORY}
        assert {partition(servers[1], each).isr for each in range(PARTITIONS)} == {(1,)}
        assert await produce(servers[1], 0) == 0


async def test_a_replica_is_made_again_where_the_metadata_says_that_it_lies(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE_S), cluster(tmp_path) as servers:
        await create(servers[1], [2])

        def told() -> list[bytes]:
            return [directory_of(partition(servers[1], each), 2) for each in range(PARTITIONS)]

        def found() -> list[bytes]:
            here = broker_of(servers[2]).replicas.find("t", b"", by_id=False)[0]
            return [here[each].directory.files.directory_id for each in range(PARTITIONS)]

        await until(lambda: bytes(16) not in told())
        before = told()
        assert found() == before
        stopped = servers.pop(2)
        await stopped.stop()
        for folder in (tmp_path / "2-two").glob("t-*"):
            shutil.rmtree(folder)
        servers[2] = Server(stopped.config)
        await servers[2].start()
        assert told() == found() == before
