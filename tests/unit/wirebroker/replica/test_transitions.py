"""What begins and ends with a partition's role, and the order of notifications."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.protocol.requests import (
    append,
    create_topic,
    delete_topic,
    fetch,
    fetch_request,
    produce_request,
)
from tests.support.records.batches import TIMESTAMP_MS, batch, values_in
from tests.support.replicas.roles import partition_image
from tests.support.storage.failing_files import FailingFiles
from tests.support.tools.waiting import until
from tests.unit.wirebroker.replica.test_partition import HeldWrites, large
from wirebroker.base.clock import Slices, SystemClock
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.replica.replica_manager import ReplicaManager
from wirebroker.replica.transitions import Transitions
from wirebroker.storage.files import Files
from wirebroker.storage.log_directory import LogDirectory

if TYPE_CHECKING:
    from wirebroker.broker.server import Server
    from wirebroker.replica.leadership import LeadershipChange
    from wirebroker.replica.partition import Partition

VERSION = 12
LONG_MS = 2**31 - 1


class Listener:
    """Records its notifications, and the partitions at that time."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __call__(self, change: LeadershipChange) -> None:
        for partition, epoch in change.resigned:
            assert not partition.is_leader
            self.told.append(f"-{partition}@{epoch}")
        for partition, epoch in change.elected:
            assert partition.is_leader
            assert partition.leader_epoch == epoch
            self.told.append(f"+{partition}@{epoch}")

    def take(self) -> list[str]:
        events, self.told = self.told, []
        return events


def partition_of(server: Server, topic: str = "t", index: int = 0) -> Partition:
    return broker_of(server).replicas.find(topic, b"", by_id=False)[0][index]


async def enter(server: Server, partition: Partition, **fields: Any) -> None:
    """Give a partition another role in the metadata's next epoch."""
    role = partition.role
    image = partition_image(
        index=partition.index,
        leader_epoch=role.leader_epoch + 1,
        partition_epoch=role.partition_epoch + 1,
        **fields,
    )
    transitions = Transitions(broker_of(server).replicas.leaderships)
    await transitions.enter_in_turn(partition, image)
    transitions.tell()


async def test_leaderships_are_reported_at_creation_deletion_and_stop(tmp_path):
    listener = Listener()
    async with running(tmp_path) as server, client_of(server) as client:
        broker_of(server).replicas.leaderships.subscribe(listener)
        await create_topic(client, "t", 2)
        assert sorted(listener.take()) == ["+t-0@0", "+t-1@0"]
        await create_topic(client, "u")
        await delete_topic(client, "t")
        assert sorted(listener.take()) == ["+u-0@0", "-t-0@0", "-t-1@0"]
        late = Listener()
        broker_of(server).replicas.leaderships.subscribe(late)
        assert late.take() == ["+u-0@0"]
    assert listener.take() == late.take() == ["-u-0@0"]
    async with running(tmp_path) as server:
        broker_of(server).replicas.leaderships.subscribe(listener)
        assert listener.take() == ["+u-0@2"], "each term has its own epoch"


async def test_failed_disk_resigns_its_leaderships(tmp_path, caplog):
    disk, listener = FailingFiles(), Listener()
    async with running(tmp_path, files=disk) as server, client_of(server) as client:
        await create_topic(client, "t", 2)
        broker_of(server).replicas.leaderships.subscribe(listener)
        listener.take()
        disk.fail(tmp_path / "t-0", "write")
        answer: Any = await client.ask(
            ApiKey.PRODUCE, VERSION, produce_request({("t", 0): batch(b"a")})
        )
        code = answer.responses[0].partition_responses[0].error_code
        assert code == ErrorCode.KAFKA_STORAGE_ERROR
        assert sorted(listener.take()) == ["-t-0@0", "-t-1@0"]
        await enter(server, partition_of(server))
        assert not partition_of(server).is_leader, "an offline partition no longer leads"
        disk.broken.clear()
    assert listener.take() == []
    assert caplog.text.count("is offline until a restart") == 1


async def test_later_epoch_of_the_same_leader_is_reported_as_an_election(tmp_path):
    listener = Listener()
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        broker_of(server).replicas.leaderships.subscribe(listener)
        listener.take()
        await enter(server, partition_of(server))
        await enter(server, partition_of(server), leader=2, replicas=(1, 2))
        await enter(server, partition_of(server), leader=2, replicas=(1, 2))
        await enter(server, partition_of(server), replicas=(1, 2), isr=(1,))
        assert listener.take() == ["+t-0@1", "-t-0@1", "+t-0@4"]


async def test_leader_change_answers_waiting_requests(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        partition = partition_of(server)
        await enter(server, partition, replicas=(1, 2))
        async with client_of(server) as reader:
            # A client that sends no epoch may continue to read from a follower.
            request = fetch_request({("t", 0): 0}, max_wait_ms=LONG_MS, current_leader_epoch=1)
            fetching = await reader.send(ApiKey.FETCH, VERSION, request)
            producing = await client.send(
                ApiKey.PRODUCE, VERSION, produce_request({("t", 0): batch(b"a")})
            )
            await until(lambda: partition.watcher_count == 2)
            await enter(server, partition, leader=2, replicas=(1, 2))
            answer: Any = await client.receive(ApiKey.PRODUCE, VERSION, producing)
            (partition_result,) = answer.responses[0].partition_responses
            assert partition_result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            current_leader = partition_result.current_leader
            assert (current_leader.leader_id, current_leader.leader_epoch) == (2, 2)
            fetched: Any = await reader.receive(ApiKey.FETCH, VERSION, fetching)
            (part,) = fetched.responses[0].partitions
            assert part.error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert partition.watcher_count == 0


async def test_role_change_waits_for_an_append_in_a_thread(tmp_path, monkeypatch):
    listener = Listener()
    settings = {"message.max.bytes": str(8 << 20)}
    async with running(tmp_path, settings=settings) as server, client_of(server) as client:
        await create_topic(client, "t")
        partition = partition_of(server)
        leaderships = broker_of(server).replicas.leaderships
        leaderships.subscribe(listener)
        listener.take()
        held_writes = HeldWrites(monkeypatch)
        records = memoryview(bytearray(batch(large())))
        writing = asyncio.create_task(
            partition.append_in_turn(
                records, now_ms=TIMESTAMP_MS, request_version=12, slices=Slices(SystemClock())
            )
        )
        await held_writes.wait_until_begun()
        entering = asyncio.create_task(enter(server, partition, leader=2, replicas=(1, 2)))
        late_append = asyncio.create_task(append_error(server))
        assert await late_append == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert listener.take() == []
        held_writes.go.set()
        assert (await writing).base_offset == 0
        await entering
        assert listener.take() == ["-t-0@0"]
        assert partition.log.log_end_offset == 1
        assert partition.log.leader_epochs.entries == [(0, 0)]


async def append_error(server: Server) -> int:
    async with client_of(server) as client:
        answer: Any = await client.ask(
            ApiKey.PRODUCE, VERSION, produce_request({("t", 0): batch(b"b")})
        )
        code: int = answer.responses[0].partition_responses[0].error_code
        return code


async def test_each_role_or_config_change_raises_the_serving_epoch(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        partition = partition_of(server)
        epochs = [partition.serving_epoch]
        await enter(server, partition, replicas=(1, 2))
        epochs.append(partition.serving_epoch)
        leading = partition.leading
        assert leading is not None
        change = partition.ask_for_isr({1})
        epochs.append(partition.serving_epoch)
        partition.isr_refused(change)
        epochs.append(partition.serving_epoch)
        partition.ask_for_isr({1})
        epochs.append(partition.serving_epoch)
        partition.isr_accepted({1}, partition_epoch=9)
        epochs.append(partition.serving_epoch)
        partition.use_settings(partition.log.settings)
        epochs.append(partition.serving_epoch)
        await enter(server, partition, leader=2, replicas=(1, 2))
        epochs.append(partition.serving_epoch)
        assert all(before < after for before, after in pairwise(epochs)), epochs


async def test_follower_starts_at_the_checkpoint_and_sole_leader_at_the_log_end(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        await append(client, "t", batch(b"a", b"b", b"c"))
        image = broker_of(server).replicas.image
        config = server.config
    checkpoint = tmp_path / "replication-offset-checkpoint"
    assert "t 0 3" in checkpoint.read_text()
    checkpoint.write_text(checkpoint.read_text().replace("t 0 3", "t 0 2"))
    topic = image.topics["t"]
    follower = partition_image(leader=2, leader_epoch=5, replicas=(1, 2))
    topics = {"t": topic._replace(partitions={0: follower})}
    files = Files()
    directory = LogDirectory.open(str(tmp_path), files, node_id=1)
    replicas = ReplicaManager([directory], files, config=config, clock=SystemClock(), node_id=1)
    await replicas.load(replace(image, topics=topics, topics_by_id={topic.topic_id: topics["t"]}))
    (partition,) = replicas
    assert (partition.log.high_watermark, partition.log.log_end_offset) == (2, 3)
    replicas.close(broker_epoch=-1)
    directory.close()
    assert "t 0 2" in checkpoint.read_text()
    async with running(tmp_path) as server, client_of(server) as client:
        assert partition_of(server).log.high_watermark == 3
        fetched = await fetch(client, "t", 0)
        assert values_in(fetched.records) == [b"a", b"b", b"c"]


async def test_reassigned_partition_is_removed(tmp_path):
    listener = Listener()
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t", 2)
        replicas = broker_of(server).replicas
        replicas.leaderships.subscribe(listener)
        listener.take()
        topic = replicas.image.topics["t"]
        moved = partition_image(index=1, leader=2, leader_epoch=1, replicas=(2, 3))
        topic = topic._replace(partitions={**topic.partitions, 1: moved})
        await replicas._follow_topic(replicas.image, topic, [moved], Slices(SystemClock()))
        assert listener.take() == ["-t-1@0"]
        assert set(replicas.find("t", b"", by_id=False)[0]) == {0}
        assert not (tmp_path / "t-1").exists()
        assert (tmp_path / "t-0").exists()
