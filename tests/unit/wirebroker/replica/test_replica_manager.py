"""A node's partitions on its disks: creation, deletion, restarts, strays, failing disks."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.metadata_writes import give_remote_storage
from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.protocol.requests import append, create_topic, delete_topic, fetch, produce
from tests.support.records.batches import batch, values_in
from tests.support.records.clocks import MovedClock
from tests.support.storage.failing_files import FailingFiles
from wirebroker.base.clock import Slices, SystemClock, next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.config import Config, StartError
from wirebroker.coordinator.controller.image.cluster_image import (
    NO_LEADER,
    ClusterImage,
    ResourceType,
    TopicImage,
)
from wirebroker.maintenance.maintenance import Maintenance
from wirebroker.replica.topic_logs import MOST_SETTINGS, TopicLogs
from wirebroker.storage.files import Files
from wirebroker.storage.log_directory import LogDirectory

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.broker.server import Server
    from wirebroker.replica.partition import Partition
    from wirebroker.replica.replica_manager import ReplicaManager


def replicas_of(server: Server) -> ReplicaManager:
    return broker_of(server).replicas


def partition_of(server: Server, topic: str, index: int = 0) -> Partition:
    partitions, _ = replicas_of(server).find(topic, b"", by_id=False)
    return partitions[index]


def directories(path: Path) -> set[str]:
    """Return the partitions' directory names, with renamed ones as `…-suffix`."""
    names = set()
    for entry in path.iterdir():
        if entry.is_dir() and not entry.name.startswith("__cluster_metadata"):
            stem, dot, rest = entry.name.partition(".")
            names.add(f"{stem}-{rest.rpartition('-')[2]}" if dot else stem)
    return names


def maintenance_of(server: Server) -> Maintenance:
    return Maintenance(broker_of(server))


async def test_created_topic_exists_when_the_request_is_answered(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        topic_id = await create_topic(client, "t", 3)
        replicas = replicas_of(server)
        by_name, missing = replicas.find("t", b"", by_id=False)
        assert sorted(by_name) == [0, 1, 2]
        assert missing == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert replicas.find("", topic_id, by_id=True)[0] is by_name
        assert replicas.find("", b"?" * 16, by_id=True)[1] == ErrorCode.UNKNOWN_TOPIC_ID
        assert replicas.find("nowhere", b"", by_id=False)[0] == {}
        assert directories(tmp_path) == {"t-0", "t-1", "t-2"}
        assert len(list(replicas)) == 3


async def test_partitions_are_added(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t", 1)
        await append(client, "t", batch(b"a"))
        topic_update = {"name": "t", "count": 3, "assignments": None}
        request = {"topics": [topic_update], "timeout_ms": 1_000}
        await client.ask(ApiKey.CREATE_PARTITIONS, 3, request)
        assert directories(tmp_path) == {"t-0", "t-1", "t-2"}
        assert await append(client, "t", batch(b"b")) == 1
        assert await append(client, "t", batch(b"b"), partition=2) == 0


async def test_partitions_are_spread_over_directories(tmp_path):
    first_path, second_path = tmp_path / "one", tmp_path / "two"

    async with running(first_path, second_path) as server, client_of(server) as client:
        await create_topic(client, "t", 5)
        await create_topic(client, "u", 3)
        assert len(directories(first_path)) == len(directories(second_path)) == 4
        for index in range(5):
            await append(client, "t", batch(b"%d" % index), partition=index)
    async with running(first_path, second_path) as server, client_of(server) as client:
        assert len(list(replicas_of(server))) == 8
        for index in range(5):
            fetched = await fetch(client, "t", 0, partition=index)
            assert values_in(fetched.records) == [b"%d" % index]


async def test_deleted_topic_disappears_and_its_files_are_deleted_later(tmp_path):
    clock = MovedClock()

    async with running(tmp_path, clock=clock) as server, client_of(server) as client:
        await create_topic(client, "t", 2, file_delete_delay_ms="60000")
        await append(client, "t", batch(b"a"))
        partition = partition_of(server, "t")
        await delete_topic(client, "t")
        assert list(replicas_of(server)) == []
        assert partition.is_retired
        assert directories(tmp_path) == {"t-0-delete", "t-1-delete"}
        maintenance = maintenance_of(server)
        await maintenance.remove_deleted()
        assert directories(tmp_path) == {"t-0-delete", "t-1-delete"}
        clock.passed_ms = 61_000
        await maintenance.remove_deleted()
        assert directories(tmp_path) == set()


async def test_recreated_topic_is_empty(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        for _ in range(3):
            await create_topic(client, "t")
            assert await append(client, "t", batch(b"a")) == 0
            await delete_topic(client, "t")
        await create_topic(client, "t")
        assert (await fetch(client, "t", 0)).high_watermark == 0


async def test_leftover_deleted_directories_are_removed_after_a_restart(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        await delete_topic(client, "t")
    assert directories(tmp_path) == {"t-0-delete"}
    async with running(tmp_path) as server:
        await maintenance_of(server).remove_deleted()
        assert directories(tmp_path) == set()


async def test_restart_keeps_everything(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        topic_id = await create_topic(client, "t", 2, max_message_bytes="5000")
        await append(client, "t", batch(b"a", b"b"))
    async with running(tmp_path) as server, client_of(server) as client:
        partition = partition_of(server, "t")
        assert partition.topic_id == topic_id
        assert partition.log.settings.max_message_bytes == 5000
        assert (partition.log.high_watermark, partition.log.recovery_point) == (2, 2)
        assert await append(client, "t", batch(b"c")) == 2
        assert values_in((await fetch(client, "t", 0)).records) == [b"a", b"b", b"c"]
        assert partition_of(server, "t", 1).log.log_end_offset == 0


async def test_directory_unknown_to_the_metadata_becomes_stray(tmp_path, caplog):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        await append(client, "t", batch(b"a"))
    (tmp_path / "t-0").rename(tmp_path / "t-7")
    (tmp_path / "alien-0").mkdir()
    async with running(tmp_path) as server, client_of(server) as client:
        assert directories(tmp_path) == {"t-0", "t-7-stray", "alien-0-stray"}
        assert (await fetch(client, "t", 0)).high_watermark == 0
    assert "t-7" in caplog.text
    assert "alien-0" in caplog.text


async def test_lost_topic_id_is_restored(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        await append(client, "t", batch(b"a"))
    path = tmp_path / "t-0" / "partition.metadata"
    before = path.read_bytes()
    path.unlink()
    async with running(tmp_path) as server, client_of(server) as client:
        assert values_in((await fetch(client, "t", 0)).records) == [b"a"]
    assert path.read_bytes() == before


async def test_replica_in_two_unregistered_directories_stops_the_start(tmp_path):
    first_path, second_path = tmp_path / "one", tmp_path / "two"

    async with running(first_path, second_path) as server, client_of(server) as client:
        await create_topic(client, "t")
    (home,) = [path for path in (first_path, second_path) if (path / "t-0").exists()]
    (other,) = {first_path, second_path} - {home}
    (other / "t-0").mkdir()
    for file in (home / "t-0").iterdir():
        (other / "t-0" / file.name).write_bytes(file.read_bytes())
    for log_dir in (first_path, second_path):  # directories with other ids than in the metadata
        path = log_dir / "meta.properties"
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if not line.startswith("directory.id")))
    with pytest.raises(StartError, match=r"exists in two of log\.dirs"):
        async with running(first_path, second_path):
            pass


async def test_changed_configs_apply_immediately(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t", 2)
        entry = {"name": "max.message.bytes", "config_operation": 0, "value": "100"}
        resource = {"resource_type": 2, "resource_name": "t", "configs": [entry]}
        request = {"resources": [resource], "validate_only": False}
        await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
        result = await produce(client, "t", batch(b"x" * 200), partition=1)
        assert result.error_code == ErrorCode.MESSAGE_TOO_LARGE


async def test_checkpoints_contain_what_a_start_needs(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t", flush_messages="1")
        await append(client, "t", batch(b"a", b"b"))
        partition_of(server, "t").log.increment_log_start_offset(1)
        maintenance = maintenance_of(server)
        await maintenance.checkpoint()
        for name, offset in (
            ("recovery-point-offset-checkpoint", 2),
            ("replication-offset-checkpoint", 2),
            ("log-start-offset-checkpoint", 1),
        ):
            path = tmp_path / name
            assert path.read_text() == f"0\n1\nt 0 {offset}\n"
            path.write_text("untouched")
        await maintenance.checkpoint()
        assert path.read_text() == "untouched", "nothing has changed"
        await append(client, "t", batch(b"c"))
        await maintenance.checkpoint()
        assert (tmp_path / "replication-offset-checkpoint").read_text() == "0\n1\nt 0 3\n"


async def test_flush_ms_syncs_when_it_has_elapsed(tmp_path):
    clock = MovedClock()

    async with running(tmp_path, clock=clock) as server, client_of(server) as client:
        await create_topic(client, "t", flush_ms="10000")
        await create_topic(client, "never")
        for topic in ("t", "never"):
            await append(client, topic, batch(b"a"))
        maintenance = maintenance_of(server)
        await maintenance.flush_by_time()
        assert partition_of(server, "t").log.recovery_point == 1
        await append(client, "t", batch(b"b"))
        await maintenance.flush_by_time()
        assert partition_of(server, "t").log.recovery_point == 1
        clock.passed_ms = 11_000
        await maintenance.flush_by_time()
        assert partition_of(server, "t").log.recovery_point == 2
        assert partition_of(server, "never").log.recovery_point == 0


async def test_unwritable_checkpoint_takes_the_directory_offline(tmp_path, caplog):
    disk = FailingFiles()

    async with running(tmp_path, files=disk) as server, client_of(server) as client:
        await create_topic(client, "t")
        disk.fail(tmp_path / "replication-offset", "write")
        await maintenance_of(server).checkpoint()
        result = await produce(client, "t", batch(b"a"))
        assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        disk.broken.clear()
    offline = [record for record in caplog.records if "is offline" in record.message]
    assert len(offline) == 1
    assert offline[0].levelno == logging.ERROR


async def test_topics_created_on_a_failed_disk_return_storage_errors(tmp_path):
    disk = FailingFiles()
    home, broken = tmp_path / "home", tmp_path / "broken"
    settings = {"metadata.log.dir": str(home)}

    async with (
        running(broken, settings=settings, files=disk) as server,
        client_of(server) as client,
    ):
        disk.fail(broken / "t-1", "create")
        await create_topic(client, "t", 3)
        assert not replicas_of(server).directories[0].is_online
        for index in range(3):
            result = await produce(client, "t", batch(b"a"), partition=index)
            assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            fetched = await fetch(client, "t", 0, partition=index)
            assert fetched.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        await delete_topic(client, "t")
        disk.broken.clear()


async def test_disk_failing_at_the_stop_is_recovered_at_the_next_start(tmp_path, caplog):
    disk = FailingFiles()

    async with running(tmp_path, files=disk) as server, client_of(server) as client:
        await create_topic(client, "t")
        await append(client, "t", batch(b"a"))
        disk.fail(tmp_path / "t-0", "sync", "write")
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    async with running(tmp_path) as server, client_of(server) as client:
        assert values_in((await fetch(client, "t", 0)).records) == [b"a"]
    assert "was not closed cleanly" in caplog.text


async def test_appends_are_refused_before_the_logs_close(tmp_path):
    """Records after the clean end would share their offsets with those appended after a restart."""
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        partition = partition_of(server, "t")
        records = memoryview(bytearray(batch(b"late")))
        await replicas_of(server).until_settled()
        slices = Slices(SystemClock())
        with pytest.raises(KafkaError) as caught:
            await partition.append_in_turn(records, now_ms=0, request_version=12, slices=slices)
        assert caught.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_checkpoints_are_written_sequentially(tmp_path, monkeypatch):
    """A write abandoned at the stop may still be running in its thread."""
    began, go = threading.Event(), threading.Event()
    order: list[str] = []

    def write(files: LogDirectory, offsets: dict[tuple[str, int], int]) -> None:
        [offset] = offsets.values()
        order.append(f"{offset} begins")
        if offset == 0:
            began.set()
            assert go.wait(10)
        order.append(f"{offset} ends")

    monkeypatch.setattr(LogDirectory, "write_recovery_points", write)

    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        directory = replicas_of(server).directories[0]
        given_up = asyncio.create_task(directory.checkpoint(SystemClock()))
        assert await asyncio.to_thread(began.wait, 10)
        given_up.cancel()
        partition_of(server, "t").log.recovery_point = 1
        last = asyncio.create_task(directory.checkpoint(SystemClock()))
        for _ in range(1_000):  # its thread would have begun by now
            await next_turn()
        go.set()
        await last
    assert order[:4] == ["0 begins", "0 ends", "1 begins", "1 ends"]


async def test_deleted_topic_is_removed_from_a_checkpoint_being_written(tmp_path, monkeypatch):
    """A new topic of the same name would begin at the deleted one's offsets."""
    began, go = threading.Event(), threading.Event()
    write = LogDirectory.write_log_start_offsets

    def write_slowly(files: LogDirectory, offsets: dict[tuple[str, int], int]) -> None:
        began.set()
        assert go.wait(10)
        write(files, offsets)

    monkeypatch.setattr(LogDirectory, "write_log_start_offsets", write_slowly)

    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        await append(client, "t", batch(b"a", b"b"))
        partition = partition_of(server, "t")
        partition.log.increment_log_start_offset(1)
        checkpoint = asyncio.create_task(partition.directory.checkpoint(SystemClock()))
        assert await asyncio.to_thread(began.wait, 10)
        partition.directory.partitions.discard(partition)
        forgotten = asyncio.create_task(partition.directory.forget([partition], SystemClock()))
        for _ in range(10):
            await next_turn()
        go.set()
        await asyncio.gather(checkpoint, forgotten)
        assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n0\n"


def test_unused_topic_settings_are_forgotten():
    logs = TopicLogs(Files(), Config({}), on_roll=lambda log: None)
    topic = TopicImage("t", bytes(16), {})
    for number in range(3 * MOST_SETTINGS):
        configs = {(ResourceType.TOPIC, "t"): {"retention.ms": str(number)}}
        settings = logs.settings(ClusterImage(configs=configs), topic)
        assert settings.retention_ms == number
        assert logs.settings(ClusterImage(configs=configs), topic) is settings
    assert len(logs) <= MOST_SETTINGS


async def test_topic_with_remote_storage_is_offline_and_keeps_its_files(tmp_path, caplog):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        await append(client, "t", batch(b"a"))
        await give_remote_storage(server, "t")
    async with running(tmp_path) as server, client_of(server) as client:
        fetched = await fetch(client, "t", 0)
        assert fetched.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert caplog.text.count("topic t has remote.storage.enable=true") == 1
        # The controller knows: the partition has no leader.
        image = broker_of(server).metadata.image
        assert image.topics["t"].partitions[0].leader == NO_LEADER
        await create_topic(client, "other")
        assert await append(client, "other", batch(b"b")) == 0
    assert batch(b"a")[61:] in (tmp_path / "t-0" / f"{0:020d}.log").read_bytes()
