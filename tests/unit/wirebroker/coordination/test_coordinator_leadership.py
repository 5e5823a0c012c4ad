"""Coordinators follow their partitions: two nodes over one log alternate as leader."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

from tests.support.tools.waiting import until
from tests.unit.wirebroker.coordination.group_server_kit import (
    ListPartition,
    commit_batch,
    group_broker,
)
from wirebroker.codecs.coordinator_records import CommittedOffset, offset_commit_record
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordination.coordinator_partitions import CoordinatorPartitions
from wirebroker.coordinator.groups.classic.join import Join, join
from wirebroker.coordinator.outcome import Outcome
from wirebroker.coordinator.transactions.settings import TransactionSettings
from wirebroker.coordinator.transactions.shard import TransactionShard
from wirebroker.replica.leadership import Leadership, LeadershipChange

NOT_COORDINATOR = {"error_code": ErrorCode.NOT_COORDINATOR}


def error_of(code):
    return {"error_code": code}


class SharedPartition(ListPartition):
    """One node's replica of a partition with a shared log, as if all were in sync."""

    def __init__(self, batches: list[bytes]) -> None:
        super().__init__(batches)
        self.is_leader = False
        self.leader_epoch = 0

    def catch_up(self) -> None:
        """Copy the leader's records; all of them are committed."""
        self.log.log_end_offset = self.log.high_watermark = self._end()


class Nodes:
    """Two nodes with one replica each; at most one of them leads."""

    def __init__(self, *batches: bytes) -> None:
        shared = list(batches)
        self.replicas = [SharedPartition(shared) for _ in range(2)]
        self.brokers = [
            group_broker(partitions={0: replica}, is_led=False, is_started=False)
            for replica in self.replicas
        ]
        for broker in self.brokers:
            broker.groups.start()
        self.epoch = 0
        self.leader: int | None = None

    def elect(self, leader: int | None) -> None:
        """Make a node the leader in the next epoch; it has all committed records."""
        self.epoch += 1
        if self.leader is not None and self.leader != leader:
            former = self.replicas[self.leader]
            former.is_leader = False
            former.leader_epoch = self.epoch
            self.brokers[self.leader].replicas.resign(former)
        self.leader = leader
        if leader is not None:
            replica = self.replicas[leader]
            replica.catch_up()
            replica.is_leader = True
            replica.leader_epoch = self.epoch
            self.brokers[leader].replicas.elect(replica)

    def submit(self, node: int, operation: Any) -> Any:
        return self.brokers[node].groups.submit("g", operation, on_error=error_of)

    def commit(self, node: int, offset: int) -> Any:
        record = offset_commit_record("g", "t", 0, CommittedOffset(offset, 1, "", 1_000_000))

        def operation(shard, token, now):
            outcome = Outcome([record])
            outcome.answer(token, {"error_code": ErrorCode.NONE})
            return outcome

        return self.submit(node, operation)

    def read(self, node: int) -> Any:
        def operation(shard, token, now):
            outcome = Outcome()
            committed = shard.offsets.find("g", "t", 0)
            outcome.answer(token, {"offset": None if committed is None else committed.offset})
            return outcome

        return self.submit(node, operation)

    async def loaded(self, node: int) -> None:
        await until(lambda: "offset" in self.read(node))

    async def stop(self) -> None:
        for broker in self.brokers:
            await broker.groups.stop()


@asynccontextmanager
async def two_nodes() -> AsyncIterator[Nodes]:
    nodes = Nodes(commit_batch(("g", 0, 5)))
    try:
        yield nodes
    finally:
        await nodes.stop()


async def test_unelected_node_coordinates_nothing():
    async with two_nodes() as nodes:
        nodes.elect(0)
        await nodes.loaded(0)
        assert nodes.read(0) == {"offset": 5}
        assert nodes.read(1) == NOT_COORDINATOR
        assert nodes.commit(1, 6) == NOT_COORDINATOR
        assert nodes.brokers[1].groups.partitions() == []


async def test_new_leader_knows_the_records_of_former_leaders():
    async with two_nodes() as nodes:
        for offset in range(10, 16):
            node = offset % 2
            nodes.elect(node)
            await nodes.loaded(node)
            assert nodes.read(node) == {"offset": 5 if offset == 10 else offset - 1}
            assert nodes.commit(node, offset) == {"error_code": ErrorCode.NONE}
            assert nodes.read(1 - node) == NOT_COORDINATOR


async def test_pending_commit_gets_not_coordinator_after_a_leader_change():
    async with two_nodes() as nodes:
        nodes.elect(0)
        await nodes.loaded(0)
        nodes.replicas[0].commits_at_once = False
        waiting = nodes.commit(0, 6)
        nodes.elect(1)
        assert waiting.result() == NOT_COORDINATOR
        nodes.replicas[0].commit()
        await nodes.loaded(1)
        assert nodes.read(1) == {"offset": 6}, "it was committed all the same"


async def test_leader_change_answers_waiting_members_and_clears_soft_state():
    async with two_nodes() as nodes:
        nodes.elect(0)
        await nodes.loaded(0)
        body = _join_body()
        request = Join.of(body, version=3, client_id="c", client_host="/h")
        joining = nodes.submit(0, lambda shard, *more: join(shard, request, *more))
        [shard] = nodes.brokers[0].groups.shards()
        assert shard.groups["g"].members
        nodes.elect(1)
        assert (await joining)["error_code"] is ErrorCode.NOT_COORDINATOR
        nodes.elect(0)
        await nodes.loaded(0)
        [anew] = nodes.brokers[0].groups.shards()
        assert anew is not shard
        assert not anew.groups["g"].members


async def test_resignation_cancels_loading():
    async with two_nodes() as nodes:
        nodes.elect(0)
        assert nodes.read(0) == {"error_code": ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
        nodes.elect(1)
        assert nodes.read(0) == NOT_COORDINATOR
        await nodes.loaded(1)
        assert list(nodes.brokers[0].groups.shards()) == []


async def test_reelected_leader_reloads_the_partition():
    async with two_nodes() as nodes:
        nodes.elect(0)
        await nodes.loaded(0)
        nodes.replicas[0].commits_at_once = False
        waiting = nodes.commit(0, 6)
        [former] = nodes.brokers[0].groups.shards()
        nodes.elect(0)
        assert waiting.result() == NOT_COORDINATOR
        await nodes.loaded(0)
        [shard] = nodes.brokers[0].groups.shards()
        assert shard is not former
        assert nodes.read(0) == {"offset": 6}


async def test_timers_of_an_ended_term_do_nothing():
    async with two_nodes() as nodes:
        nodes.elect(0)
        await nodes.loaded(0)

        def setting(shard, token, now):
            shard.timers.set("k", now.monotonic_ms, "an event that would raise")
            outcome = Outcome()
            outcome.answer(token, {})
            return outcome

        assert nodes.submit(0, setting) == {}
        nodes.elect(1)
        await nodes.loaded(1)


async def test_shard_gets_the_epoch_of_its_election():
    epochs = []

    def new_shard(log):
        epochs.append(log.leader_epoch)
        return TransactionShard(
            TransactionSettings(),
            coordinator_epoch=log.leader_epoch,
            take_producer_id=lambda: 1,
            transaction_version=lambda: 2,
        )

    partition: Any = ListPartition()
    partitions = CoordinatorPartitions(
        partition.topic,
        new_shard=new_shard,
        clock=group_broker().clock,
        on_disk_failure=lambda *_: None,
    )
    for change in (
        LeadershipChange(elected=[Leadership(partition, 3)]),
        LeadershipChange(elected=[Leadership(partition, 4)]),
        LeadershipChange(resigned=[Leadership(partition, 4)]),
        LeadershipChange(elected=[Leadership(partition, 9)]),
    ):
        partitions.follow(change)
        led = [engine.machine.coordinator_epoch for engine in partitions.active()]
        assert led == [epoch for _, epoch in change.elected]
    assert epochs == [3, 4, 9]
    await partitions.stop()


def _join_body() -> Any:
    return SimpleNamespace(
        group_id="g",
        member_id="",
        group_instance_id=None,
        protocol_type="consumer",
        protocols=[SimpleNamespace(name="range", metadata=b"")],
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
    )
