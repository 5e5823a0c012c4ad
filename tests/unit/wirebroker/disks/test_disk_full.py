"""A full disk: refused writes leave nothing, reads continue, no restart is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import (
    broker_of,
    client_of,
    controller_of,
    memory_directory,
    running,
)
from tests.support.protocol.requests import append, create_topic, fetch, produce
from tests.support.records.batches import batch, values_in
from tests.support.storage.failing_files import FailingFiles
from tests.support.tools.waiting import until
from wirebroker.base.clock import next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.coordinator.operation import ControllerResult
from wirebroker.maintenance.maintenance import Maintenance

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.protocol.raw_client import RawClient
    from wirebroker.broker.server import Server
    from wirebroker.replica.partition import Partition

SETTINGS = {"offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "1"}
# Rolls every third record, and indexes each of them.
TOPIC = {"segment_bytes": str(1 << 20), "index_interval_bytes": "0"}
RECORD_BYTES = 400_000
RECORD_COUNT = 8

NO_ROOM = {
    ErrorCode.KAFKA_STORAGE_ERROR,
    # Groups' clients get this error instead.
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    with memory_directory(tmp_path) as path:
        yield path


def partition_of(server: Server, topic: str, index: int = 0) -> Partition:
    partitions, _ = broker_of(server).replicas.find(topic, b"", by_id=False)
    return partitions[index]


def value_of(number: int) -> bytes:
    return b"%d" % number + bytes(RECORD_BYTES)


class Workload:
    """Steps on a broker, each of which is retried until it succeeds."""

    def __init__(self, server: Server, client: RawClient) -> None:
        self.server = server
        self.client = client
        self.maintenance = Maintenance(broker_of(server))
        self.acknowledged: list[bytes] = []
        self.committed = -1
        self.topics = 0

    async def step(self, number: int) -> ErrorCode:
        """Run the next step; return its response."""
        kind = number % 4
        if kind in {0, 1} and len(self.acknowledged) < RECORD_COUNT:
            return await self._produce()
        if kind == 2:
            return await self._commit()
        if kind == 3 and self.topics < 2:
            return await self._create_topic()
        await self.maintenance.checkpoint()
        return ErrorCode.NONE

    async def _produce(self) -> ErrorCode:
        sequence = len(self.acknowledged)
        value = value_of(sequence)
        fields: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0, "base_sequence": sequence}
        result = await produce(self.client, "t", batch(value, **fields))
        if result.error_code == ErrorCode.NONE:
            assert result.base_offset == sequence
            self.acknowledged.append(value)
        return ErrorCode(result.error_code)

    async def _commit(self) -> ErrorCode:
        offset = self.committed + 1
        partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
        request = {
            "group_id": "g",
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "group_instance_id": None,
            "topics": [{"name": "t", "partitions": [partition]}],
        }
        answer = await self.client.ask(ApiKey.OFFSET_COMMIT, 8, request)
        code = ErrorCode(answer.topics[0].partitions[0].error_code)
        if code == ErrorCode.NONE:
            self.committed = offset
        return code

    async def _create_topic(self) -> ErrorCode:
        topic = {"name": f"new{self.topics}", "num_partitions": 2, "replication_factor": 1}
        request = {"topics": [{**topic, "configs": []}], "timeout_ms": 30_000}
        answer = await self.client.ask(ApiKey.CREATE_TOPICS, 7, request)
        code = ErrorCode(answer.topics[0].error_code)
        if code == ErrorCode.NONE:
            self.topics += 1
        return code

    async def check(self) -> None:
        """Check that all acknowledged records, and no others, can be read."""
        check_log(partition_of(self.server, "t"), len(self.acknowledged))
        values: list[Any] = []
        while len(values) < len(self.acknowledged):
            fetched = await fetch(self.client, "t", len(values))
            assert fetched.error_code == ErrorCode.NONE
            values += values_in(fetched.records)
        assert values == self.acknowledged
        assert await self.committed_offset() == self.committed

    async def committed_offset(self) -> int:
        topic = {"name": "t", "partition_indexes": [0]}
        request = {"groups": [{"group_id": "g", "topics": [topic]}]}
        answer = await self.client.ask(ApiKey.OFFSET_FETCH, 8, request)
        assert answer.groups[0].error_code == ErrorCode.NONE
        offset: int = answer.groups[0].topics[0].partitions[0].committed_offset
        return offset


def check_log(partition: Partition, count: int) -> None:
    log = partition.log
    log.check()
    assert log.log_end_offset == count
    for segment in log.segments:
        assert segment.log.size() == segment.size
        assert segment.offset_index.file.size() == segment.offset_index.entry_count * 8
        assert segment.time_index.file.size() == segment.time_index.entry_count * 12


async def prepare(server: Server, client: RawClient) -> Workload:
    await create_topic(client, "t", **TOPIC)
    await append(client, "t", batch(value_of(0), producer_id=5, producer_epoch=0, base_sequence=0))
    find = {"key_type": 0, "coordinator_keys": ["g"]}
    while (await client.ask(ApiKey.FIND_COORDINATOR, 4, find)).coordinators[0].error_code:
        await next_turn()
    workload = Workload(server, client)
    workload.acknowledged.append(value_of(0))
    assert await workload.step(2) == ErrorCode.NONE
    return workload


STEPS = range(24)


async def test_full_disk_at_any_write_loses_nothing_and_recovers(directory, caplog):
    async def run(number: int) -> int:
        disk = FailingFiles()
        path = directory / str(number)
        async with (
            running(path, settings=SETTINGS, files=disk) as server,
            client_of(server) as client,
        ):
            workload = await prepare(server, client)
            changes_before = disk.changes
            disk.fill(after_changes=number)
            for step in STEPS:
                code = await workload.step(step)
                assert code in NO_ROOM or code == ErrorCode.NONE, code
            changes = disk.changes - changes_before
            assert disk.refused == max(0, changes - number)
            assert broker_of(server).replicas.directories[0].is_online
            await workload.check()
            disk.free()
            await workload.maintenance.check_free_space()
            for step in STEPS:
                assert await workload.step(step) == ErrorCode.NONE
            await workload.check()
            for index in range(2):
                for topic in ("new0", "new1"):
                    assert await append(client, topic, batch(b"a"), partition=index) == 0
        async with running(path, settings=SETTINGS) as server, client_of(server) as client:
            again = Workload(server, client)
            again.acknowledged, again.committed = workload.acknowledged, workload.committed
            await until(lambda: list(broker_of(server).groups.shards()))
            await again.check()
        return changes

    number = 0
    while number < (await run(number)):
        caplog.clear()
        number += 1
    assert number > 25


async def test_full_disk_and_its_end_are_logged_in_one_line_each(tmp_path, caplog):
    disk = FailingFiles()

    caplog.set_level("INFO", "wirebroker")
    async with running(tmp_path, files=disk) as server, client_of(server) as client:
        maintenance = Maintenance(broker_of(server))
        await create_topic(client, "t")
        await append(client, "t", batch(b"a"))
        disk.fill()
        for _ in range(10):
            result = await produce(client, "t", batch(b"b"))
            assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert values_in((await fetch(client, "t", 0)).records) == [b"a"]
        await maintenance.check_free_space()
        disk.free()
        assert await append(client, "t", batch(b"b")) == 1
        for _ in range(2):
            await maintenance.check_free_space()
    assert caplog.text.count("is full") == 1
    assert caplog.text.count("accepts writes again") == 1


async def test_partitions_are_created_on_disks_with_space_and_later_on_others(tmp_path):
    disk = FailingFiles()
    first_path, second_path = tmp_path / "one", tmp_path / "two"

    async with running(first_path, second_path, files=disk) as server, client_of(server) as client:
        replicas = broker_of(server).replicas
        disk.error_number = 28
        disk.fail(second_path / "t-", "write", "create")
        await create_topic(client, "t", 2)
        assert {partition_of(server, "t", index).directory.path for index in range(2)} == {
            str(first_path)
        }
        disk.fail(first_path / "u-", "create")
        disk.fail(second_path / "u-", "write")
        await create_topic(client, "u", 2)
        result = await produce(client, "u", batch(b"a"))
        assert result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        disk.broken.clear()
        await replicas.create_missing()
        for index in range(2):
            assert await append(client, "u", batch(b"a"), partition=index) == 0
        assert all(directory.is_online for directory in replicas.directories)
    async with running(first_path, second_path) as server, client_of(server) as client:
        assert values_in((await fetch(client, "u", 0)).records) == [b"a"]


async def test_stop_with_a_full_disk_closes_other_disks_cleanly(tmp_path):
    full, other = tmp_path / "full", tmp_path / "other"
    disk = FailingFiles()

    async with running(full, other, files=disk) as server, client_of(server) as client:
        await create_topic(client, "t", 2)
        for index in range(2):
            assert await append(client, "t", batch(b"a"), partition=index) == 0
        disk.error_number = 28
        disk.fail(full, "create", "write")
    assert not (full / ".kafka_cleanshutdown").exists()
    assert (other / ".kafka_cleanshutdown").exists()
    async with running(full, other) as server, client_of(server) as client:
        for index in range(2):
            assert values_in((await fetch(client, "t", 0, partition=index)).records) == [b"a"]


async def test_full_metadata_log_continues_once_space_is_free(tmp_path):
    disk = FailingFiles()
    no_op = metadata_record(RecordType.NO_OP)

    def operation(image, now):
        yield
        return ControllerResult(image.offset, [no_op])

    async with running(tmp_path, files=disk) as server:
        metadata = controller_of(server)
        disk.fill()
        for _ in range(3):
            with pytest.raises(KafkaError) as caught:
                await metadata.submit(operation)
            assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        disk.free()
        before = await metadata.submit(operation)
        assert metadata.follower.image.offset == before + 1
