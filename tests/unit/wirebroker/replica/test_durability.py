"""wirebroker.durability=fsync and flush.messages: acknowledged or visible records are on disk."""

from __future__ import annotations

import asyncio
import errno
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.protocol.requests import (
    PRODUCE_VERSION,
    append,
    create_topic,
    delete_topic,
    fetch,
    produce,
    produce_request,
)
from tests.support.records.batches import batch, values_in
from tests.support.storage.failing_files import FailingFiles
from tests.support.tools.waiting import until
from wirebroker.api.data import delayed_produce
from wirebroker.base.clock import next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.replica.group_commit import MANY_FILES
from wirebroker.storage.descriptors import Volume
from wirebroker.storage.files import DataFile, Files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.protocol.raw_client import RawClient
    from wirebroker.broker.server import Server
    from wirebroker.replica.partition import Partition

FSYNC = {"wirebroker.durability": "fsync", "offsets.topic.replication.factor": "1"}


class SlowDisk:
    """Block syncs of log files below a name until the test releases them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.waiting = 0
        self.go = threading.Event()
        self._sync = DataFile.sync

    def sync(self, file: DataFile) -> None:
        if f"/{self.name}" in file.path:
            self.waiting += 1
            assert self.go.wait(10)
        self._sync(file)


@contextmanager
def slow_disk(name: str) -> Iterator[SlowDisk]:
    disk = SlowDisk(name)

    def sync(file: DataFile) -> None:
        disk.sync(file)

    with mock.patch.object(DataFile, "sync", sync):
        try:
            yield disk
        finally:
            disk.go.set()


def partition_of(server: Server, topic: str, index: int = 0) -> Partition:
    partitions, _ = broker_of(server).replicas.find(topic, b"", by_id=False)
    return partitions[index]


async def send(client: RawClient, *values: bytes, acks: int = -1, topic: str = "t", **fields: Any):
    request = {**produce_request({(topic, 0): batch(*values, **fields)}, acks=acks)}
    return await client.send(ApiKey.PRODUCE, PRODUCE_VERSION, request)


async def receive(client: RawClient, correlation_id: int) -> Any:
    answer = await client.receive(ApiKey.PRODUCE, PRODUCE_VERSION, correlation_id)
    return answer.responses[0].partition_responses[0]


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("config", ["fsync", "flush.messages"])
async def test_records_are_acknowledged_and_visible_once_flushed(tmp_path, acks, config):
    settings = FSYNC if config == "fsync" else {"log.flush.interval.messages": "1"}

    async with running(tmp_path, settings=settings) as server, client_of(server) as client:
        await create_topic(client, "t")
        async with client_of(server) as reader:
            with slow_disk("t-0") as disk:
                first = await send(client, b"a", acks=acks)
                await until(lambda: disk.waiting)
                fetched = await fetch(reader, "t", 0)
                assert (fetched.records, fetched.high_watermark) == (b"", 0)
                disk.go.set()
                assert (await receive(client, first)).base_offset == 0
                partition = partition_of(server, "t")
                assert partition.log.recovery_point == 1
            fetched = await fetch(reader, "t", 0)
            assert values_in(fetched.records) == [b"a"]


async def test_acks_0_does_not_wait_for_the_disk(tmp_path):
    async with running(tmp_path, settings=FSYNC) as server, client_of(server) as client:
        await create_topic(client, "t")
        with slow_disk("t-0") as disk:
            for value in (b"a", b"b", b"c"):
                await send(client, value, acks=0)
            await until(lambda: partition_of(server, "t").log.log_end_offset == 3)
            assert partition_of(server, "t").log.high_watermark == 0
            disk.go.set()
            await until(lambda: partition_of(server, "t").log.high_watermark == 3)


async def test_sync_round_covers_all_writes_during_the_previous_round(tmp_path):
    async def self_contained(server: Server, value: bytes) -> None:
        async with client_of(server) as client:
            await append(client, "t", batch(value))

    async with running(tmp_path, settings=FSYNC) as server:
        async with client_of(server) as client:
            await create_topic(client, "t")
            await append(client, "t", batch(b"first"))
        commits = broker_of(server).replicas.commits
        before = commits.rounds
        with slow_disk("t-0") as disk:
            async with asyncio.TaskGroup() as group:
                for number in range(50):
                    group.create_task(self_contained(server, b"%d" % number))
                await until(lambda: partition_of(server, "t").log.log_end_offset == 51)
                disk.go.set()
        # One for the first, one for all others.
        assert commits.rounds - before <= 2


async def test_retry_is_acknowledged_with_the_original_batch(tmp_path):
    fields: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}

    async with running(tmp_path, settings=FSYNC) as server, client_of(server) as client:
        await create_topic(client, "t")
        async with client_of(server) as other:
            with slow_disk("t-0") as disk:
                ids = [await send(connection, b"a", **fields) for connection in (client, other)]
                await until(lambda: disk.waiting)
                answers = [
                    asyncio.create_task(receive(connection, number))
                    for connection, number in zip((client, other), ids, strict=True)
                ]
                for _ in range(20):
                    await next_turn()
                assert not any(answer.done() for answer in answers)
                disk.go.set()
                assert [(await answer).base_offset for answer in answers] == [0, 0]
        assert partition_of(server, "t").log.log_end_offset == 1


async def test_slow_disk_times_out_the_request(tmp_path, monkeypatch):
    monkeypatch.setattr(delayed_produce, "LEAST_WAIT_MS", 0)

    async with running(tmp_path, settings=FSYNC) as server, client_of(server) as client:
        await create_topic(client, "t")
        with slow_disk("t-0") as disk:
            request = {**produce_request({("t", 0): batch(b"a")}), "timeout_ms": 1}
            answer = await client.ask(ApiKey.PRODUCE, PRODUCE_VERSION, request)
            result = answer.responses[0].partition_responses[0]
            assert (result.error_code, result.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, 0)
            disk.go.set()
            await until(lambda: partition_of(server, "t").log.high_watermark == 1)
        assert partition_of(server, "t")._watchers == {}


async def test_produce_waiting_for_the_disk_fails_when_the_topic_is_deleted(tmp_path):
    async with running(tmp_path, settings=FSYNC) as server, client_of(server) as client:
        await create_topic(client, "t")
        async with client_of(server) as admin:
            with slow_disk("t-0") as disk:
                number = await send(client, b"a")
                await until(lambda: disk.waiting)
                await delete_topic(admin, "t")
                result = await receive(client, number)
                assert result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                disk.go.set()
        # A failed sync of moved files says nothing about the disk.
        await broker_of(server).replicas.commits.until_idle()
        assert broker_of(server).replicas.directories[0].is_online


async def test_directory_entries_are_synced_before_the_first_acknowledgement(tmp_path):
    synced: list[str] = []

    class Watched(FailingFiles):
        def sync_directory(self, path: str) -> None:
            super().sync_directory(path)
            synced.append(path)

    files = Watched()
    async with (
        running(tmp_path, settings=FSYNC, files=files) as server,
        client_of(server) as client,
    ):
        await create_topic(client, "t")
        synced.clear()
        await append(client, "t", batch(b"a"))
        assert set(synced) == {str(tmp_path), str(tmp_path / "t-0")}
        synced.clear()
        await append(client, "t", batch(b"a"))
        assert synced == []


# -- offsets --


def commit(group: int) -> dict[str, Any]:
    partition = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
    return {
        "group_id": f"g{group}",
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "group_instance_id": None,
        "topics": [{"name": "t", "partitions": [partition]}],
    }


async def find_coordinator(client: RawClient) -> None:
    find = {"key_type": 0, "coordinator_keys": ["g0"]}
    while (await client.ask(ApiKey.FIND_COORDINATOR, 4, find)).coordinators[0].error_code:
        await next_turn()


async def test_offset_commit_with_a_failed_sync_is_refused(tmp_path):
    disk = FailingFiles()

    async with (
        running(tmp_path, settings=FSYNC, files=disk) as server,
        client_of(server) as client,
    ):
        await create_topic(client, "t")
        await find_coordinator(client)
        disk.fail(tmp_path / "__consumer_offsets", "sync", times=1)
        for _ in range(2):
            answer = await client.ask(ApiKey.OFFSET_COMMIT, 8, commit(0))
            assert answer.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR
        topics = [{"name": "t", "partition_indexes": [0]}]
        fetch_offsets = {"groups": [{"group_id": "g0", "topics": topics}]}
        answer = await client.ask(ApiKey.OFFSET_FETCH, 8, fetch_offsets)
        assert answer.groups[0].error_code != ErrorCode.NONE


async def test_offset_commits_are_answered_once_synced_and_share_a_sync(tmp_path):
    async def commits_of(server: Server, groups: range) -> None:
        async with client_of(server) as client:
            for group in groups:
                answer = await client.ask(ApiKey.OFFSET_COMMIT, 8, commit(group))
                assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE

    settings = {**FSYNC, "offsets.topic.num.partitions": "2"}
    async with running(tmp_path, settings=settings) as server, client_of(server) as client:
        await create_topic(client, "t")
        await find_coordinator(client)
        with slow_disk("__consumer_offsets") as disk:
            number = await client.send(ApiKey.OFFSET_COMMIT, 8, commit(0))
            await until(lambda: disk.waiting)
            answer = asyncio.create_task(client.receive(ApiKey.OFFSET_COMMIT, 8, number))
            for _ in range(20):
                await next_turn()
            assert not answer.done()
            disk.go.set()
            assert (await answer).topics[0].partitions[0].error_code == ErrorCode.NONE
        commits = broker_of(server).replicas.commits
        before = commits.rounds
        async with asyncio.TaskGroup() as group:
            for first in range(0, 1000, 50):
                group.create_task(commits_of(server, range(first, first + 50)))
        assert commits.rounds - before < 500
        for index in range(2):
            log = partition_of(server, "__consumer_offsets", index).log
            assert log.high_watermark == log.recovery_point == log.log_end_offset


# -- failing disks --


async def test_nothing_is_acknowledged_after_a_failed_sync(tmp_path):
    disk = FailingFiles()
    first_path, second_path = tmp_path / "one", tmp_path / "two"

    async with (
        running(first_path, second_path, settings=FSYNC, files=disk) as server,
        client_of(server) as client,
    ):
        await create_topic(client, "t", 2)
        broken = next(
            index
            for index in range(2)
            if partition_of(server, "t", index).directory.path == str(second_path)
        )
        await append(client, "t", batch(b"before"), partition=broken)
        disk.fail(second_path / "t-", "sync", times=1)
        for value in (b"lost", b"after"):
            result = await produce(client, "t", batch(value), partition=broken)
            assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert result.base_offset == -1
        assert partition_of(server, "t", broken).log.high_watermark == 1
        fetched = await fetch(client, "t", 0, partition=broken)
        assert fetched.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert await append(client, "t", batch(b"a"), partition=1 - broken) == 0
        fetched = await fetch(client, "t", 0, partition=1 - broken)
        assert values_in(fetched.records) == [b"a"]
    assert not (second_path / ".kafka_cleanshutdown").exists()
    assert (first_path / ".kafka_cleanshutdown").exists()


async def test_failed_metadata_disk_goes_offline_and_others_serve(tmp_path):
    disk = FailingFiles()
    first_path, second_path = tmp_path / "one", tmp_path / "two"

    async with running(first_path, second_path, files=disk) as server, client_of(server) as client:
        await create_topic(client, "t", 2)
        sound = next(
            index
            for index in range(2)
            if partition_of(server, "t", index).directory.path == str(second_path)
        )
        for index in range(2):
            await append(client, "t", batch(b"a"), partition=index)
        disk.fail(first_path / "__cluster_metadata-0", "sync")
        topic = {"name": "new", "num_partitions": 1, "replication_factor": 1, "configs": []}
        for _ in range(2):
            request = {"topics": [topic], "timeout_ms": 30_000}
            answer = await client.ask(ApiKey.CREATE_TOPICS, 7, request)
            assert answer.topics[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        result = await produce(client, "t", batch(b"b"), partition=1 - sound)
        assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert await append(client, "t", batch(b"b"), partition=sound) == 1
        fetched = await fetch(client, "t", 0, partition=sound)
        assert values_in(fetched.records) == [b"a", b"b"]


# -- many partitions at once --


class FakeVolume(Volume):
    def __init__(self) -> None:
        self.syncs = 0
        self.error: OSError | None = None

    def sync(self) -> None:
        self.syncs += 1
        if self.error is not None:
            error, self.error = self.error, None
            raise error


class OneVolume(FailingFiles):
    """Files on such a file system, whose own syncs fail."""

    def __init__(self) -> None:
        super().__init__()
        self.volume = FakeVolume()

    def open_volume(self, path: str) -> Any:
        return self.volume


async def test_many_dirty_partitions_share_one_volume_sync(tmp_path):
    disk = OneVolume()

    async with (
        running(tmp_path, settings=FSYNC, files=disk) as server,
        client_of(server) as client,
    ):
        await create_topic(client, "t", MANY_FILES)
        disk.fail(tmp_path / "t-", "sync")
        records = {("t", index): batch(b"a") for index in range(MANY_FILES)}
        for round_number in range(2):
            answer = await client.ask(ApiKey.PRODUCE, PRODUCE_VERSION, produce_request(records))
            results = answer.responses[0].partition_responses
            assert {result.error_code for result in results} == {ErrorCode.NONE}
            assert disk.volume.syncs == round_number + 1
        disk.volume.error = OSError(errno.EIO, "lost")
        for _ in range(2):
            answer = await client.ask(ApiKey.PRODUCE, PRODUCE_VERSION, produce_request(records))
            results = answer.responses[0].partition_responses
            assert {result.error_code for result in results} == {ErrorCode.KAFKA_STORAGE_ERROR}
        disk.broken.clear()


def test_volume_sync_is_offered_only_where_it_reports_errors(tmp_path):
    volume = Files().open_volume(str(tmp_path))
    (tmp_path / "a").write_bytes(b"a")
    if volume is not None:
        volume.sync()
    assert volume is None or isinstance(volume, Volume)
    with mock.patch("os.uname", return_value=mock.Mock(sysname="Linux", release="5.4.0-1")):
        # Before Linux 5.8 syncfs does not report failed writeback.
        assert Files().open_volume(str(tmp_path)) is None
