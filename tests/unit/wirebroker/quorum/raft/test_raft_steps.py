"""Votes are on disk before they are sent, and the event loop does not wait for the disk."""

from __future__ import annotations

import asyncio
import errno
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.tools.waiting import PATIENCE_S
from tests.unit.wirebroker.quorum.raft.quorum_kit import (
    CLUSTER_ID,
    LISTENER,
    QuorumInMemory,
    directory_of,
)
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.messages import request_message
from wirebroker.coordinator.raft.model.replica_key import Destination
from wirebroker.coordinator.raft.protocol.events import ResponseReceived
from wirebroker.coordinator.raft.protocol.messages import NO_LEADER, RequestFailure
from wirebroker.quorum.log.metadata_store import DIRECTORY_NAME
from wirebroker.quorum.raft.raft_node import ELECTION_FILE, RaftNode
from wirebroker.quorum.raft.raft_steps import RaftSteps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.wirebroker.quorum.raft.quorum_kit import Member
    from wirebroker.coordinator.raft.protocol.actions import Persist

_LATER: int = 100


class SlowDisk:
    """Writes of `quorum-state` on one node wait until `release`; then they may fail."""

    def __init__(self) -> None:
        self.node: RaftNode | None = None
        self.error: OSError | None = None
        self.begun = threading.Event()
        self._is_released = threading.Event()
        self._write = RaftNode._write

    def release(self) -> None:
        self._is_released.set()

    def write(self, node: RaftNode, action: Persist) -> None:
        if node is self.node:
            self.begun.set()
            self._is_released.wait()
            if self.error is not None:
                raise self.error
        self._write(node, action)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowDisk]:
    slow = SlowDisk()

    def write(node: RaftNode, action: Persist) -> None:
        slow.write(node, action)

    monkeypatch.setattr(RaftNode, "_write", write)
    yield slow
    slow.release()


def _request_vote(member: Member, epoch: int) -> asyncio.Task[dict[str, Any]]:
    """Have a candidate with a complete log ask for the vote in an epoch."""
    candidate = 1 if member.node_id != 1 else 2
    partition = {
        "partition_index": 0,
        "replica_epoch": epoch,
        "replica_id": candidate,
        "replica_directory_id": directory_of(candidate),
        "voter_directory_id": directory_of(member.node_id),
        "last_offset_epoch": epoch - 1,
        "last_offset": 1_000,
    }
    body = request_message(ApiKey.VOTE).struct_class(
        cluster_id=CLUSTER_ID,
        voter_id=member.node_id,
        topics=[{"topic_name": "__cluster_metadata", "partitions": [partition]}],
    )
    assert member.node is not None
    return asyncio.create_task(member.node.respond(ApiKey.VOTE, 1, body, listener=LISTENER))


def _stored_epoch(member: Member) -> int:
    content = json.loads((member.directory / DIRECTORY_NAME / ELECTION_FILE).read_text())
    return int(content["leaderEpoch"])


def _only_partition(answer: dict[str, Any]) -> dict[str, Any]:
    partition: dict[str, Any] = answer["topics"][0]["partitions"][0]
    return partition


async def _follower(quorum: QuorumInMemory, disk: SlowDisk) -> Member:
    """Return a follower that is cut off, with its slow disk."""
    leader = await quorum.leader()
    await quorum.until_applied(leader.append("a"))
    follower = next(one for one in quorum.members.values() if one is not leader)
    quorum.cut(follower.node_id)
    disk.node = follower.node
    return follower


async def test_vote_is_sent_when_it_is_on_disk_and_later_requests_wait(
    tmp_path: Any, disk: SlowDisk
) -> None:
    async with QuorumInMemory(tmp_path, 3) as quorum:
        follower = await _follower(quorum, disk)
        before = _stored_epoch(follower)
        vote = _request_vote(follower, before + _LATER)
        await quorum.until(disk.begun.is_set)
        again = _request_vote(follower, before + _LATER - 1)
        await pause(0.1)  # the loop is free
        assert not vote.done()
        assert not again.done(), "events keep their order"
        assert _stored_epoch(follower) == before
        disk.release()
        assert _only_partition(await vote)["vote_granted"]
        assert _stored_epoch(follower) == before + _LATER
        refused = _only_partition(await again)
        assert (refused["vote_granted"], refused["leader_epoch"]) == (False, before + _LATER)


async def test_leader_is_not_named_while_it_is_written(
    tmp_path: Any, disk: SlowDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with QuorumInMemory(tmp_path, 3) as quorum:
        node = (await _follower(quorum, disk)).node
        assert node is not None
        named = node.known_leader
        assert named.leader_id != NO_LEADER
        with monkeypatch.context() as writing:
            writing.setattr(RaftSteps, "is_writing", property(lambda _: True))
            assert node.known_leader == (NO_LEADER, named.epoch, ())
            assert node._replies._leader() == node.known_leader
        assert node.known_leader.leader_id == named.leader_id
        disk.release()


async def test_event_that_waits_for_a_write_is_not_performed(tmp_path: Any, disk: SlowDisk) -> None:
    """`until_caught_up` looks at the state when a response is handled, not when it arrives."""
    async with QuorumInMemory(tmp_path, 3) as quorum:
        follower = await _follower(quorum, disk)
        assert follower.node is not None
        steps = follower.node._steps
        vote = _request_vote(follower, _stored_epoch(follower) + _LATER)
        await quorum.until(disk.begun.is_set)
        steps.performed.clear()
        failure = RequestFailure(ErrorCode.BROKER_NOT_AVAILABLE)
        steps.handle(ResponseReceived(0, Destination(1, "localhost", 1), failure))
        assert not steps.performed.is_set()
        disk.release()
        await asyncio.wait_for(steps.performed.wait(), PATIENCE_S)
        assert _only_partition(await vote)["vote_granted"]


async def test_leader_that_steps_down_appends_nothing_while_it_writes(
    tmp_path: Any, disk: SlowDisk
) -> None:
    async with QuorumInMemory(tmp_path, 3) as quorum:
        leader = await quorum.leader()
        await quorum.until_applied(leader.append("a"))
        assert leader.node is not None
        disk.node = leader.node
        vote = _request_vote(leader, leader.node.leadership.epoch + _LATER)
        await quorum.until(disk.begun.is_set)
        end_offset = leader.node.end_offset
        with pytest.raises(KafkaError) as raised:
            leader.append("b")
        assert raised.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        with pytest.raises(KafkaError) as raised:
            leader.node.upgrade(leader.node.leadership.epoch, 1, is_dry_run=False)
        assert raised.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert leader.node.end_offset == end_offset
        disk.release()
        assert _only_partition(await vote)["vote_granted"]


async def test_failed_write_of_a_vote_ends_the_replica(tmp_path: Any, disk: SlowDisk) -> None:
    async with QuorumInMemory(tmp_path, 3) as quorum:
        follower = await _follower(quorum, disk)
        disk.error = OSError(errno.EIO, "disk on fire")
        vote = _request_vote(follower, _LATER)
        await quorum.until(disk.begun.is_set)
        assert follower.node is not None
        question = asyncio.create_task(follower.node.describe())
        await pause(0.02)
        disk.release()
        assert await vote == {"error_code": ErrorCode.BROKER_NOT_AVAILABLE}
        with pytest.raises(KafkaError) as raised:
            await question
        assert raised.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert "disk on fire" in follower.failures[0]
        assert follower.node.is_ended


async def test_killed_replica_ends_after_its_write(tmp_path: Any, disk: SlowDisk) -> None:
    async with QuorumInMemory(tmp_path, 3) as quorum:
        follower = await _follower(quorum, disk)
        vote = _request_vote(follower, _LATER)
        await quorum.until(disk.begun.is_set)
        killing = asyncio.create_task(follower.kill())
        assert await vote == {"error_code": ErrorCode.BROKER_NOT_AVAILABLE}
        await pause(0.02)
        assert not killing.done(), "its directory must not be used by another one yet"
        disk.release()
        await killing
        assert _stored_epoch(follower) == _LATER
