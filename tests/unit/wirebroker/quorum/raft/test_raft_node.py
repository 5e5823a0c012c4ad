"""Replicas with files and Kafka's messages: elections, replication, restarts, partitions."""

from __future__ import annotations

import errno
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.wirebroker.quorum.raft.quorum_kit import (
    CLUSTER_ID,
    LISTENER,
    QuorumInMemory,
    directory_of,
    voter,
)
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.messages import request_message
from wirebroker.codecs.records.control import KRaftVersion
from wirebroker.quorum.log.metadata_snapshot import FORMATTED, encode_first_snapshot
from wirebroker.quorum.log.metadata_store import DIRECTORY_NAME, TOPIC_ID, MetadataStore
from wirebroker.quorum.raft import raft_log, raft_replies
from wirebroker.quorum.raft.raft_log import RaftLog

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.wirebroker.quorum.raft.quorum_kit import Member

KINDS = pytest.mark.parametrize("is_dynamic", [False, True], ids=["static", "dynamic"])


@KINDS
async def test_records_reach_all_replicas_and_their_logs_are_equal(
    tmp_path: Path, is_dynamic: bool
) -> None:
    async with QuorumInMemory(tmp_path, 3, is_dynamic=is_dynamic) as quorum:
        leader = await quorum.leader()
        for name in ("a", "b", "c"):
            await quorum.until_applied(leader.append(name))
        members = list(quorum.members.values())
        assert all(set(member.follower.image.topics) == {"a", "b", "c"} for member in members)
        assert members[0].log == members[1].log == members[2].log


@KINDS
async def test_committed_records_survive_the_leader(tmp_path: Path, is_dynamic: bool) -> None:
    async with QuorumInMemory(tmp_path, 3, is_dynamic=is_dynamic) as quorum:
        first = await quorum.leader()
        await quorum.until_applied(first.append("a"))
        epoch = first.leaderships[-1].epoch
        await first.kill()
        second = await quorum.leader(after=epoch)
        assert second is not first
        end = second.append("b")
        await quorum.until_applied(end)
        await first.start()
        await quorum.until_applied(end)
        assert set(first.follower.image.topics) == {"a", "b"}
        assert first.log == second.log


@KINDS
async def test_uncommitted_records_of_a_separated_leader_are_truncated(
    tmp_path: Path, is_dynamic: bool
) -> None:
    async with QuorumInMemory(tmp_path, 3, is_dynamic=is_dynamic) as quorum:
        first = await quorum.leader()
        await quorum.until_applied(first.append("a"))
        epoch = first.leaderships[-1].epoch
        quorum.cut(first.node_id)
        first.append("lost")
        second = await quorum.leader(after=epoch)
        end = second.append("b")
        await quorum.until_applied(end, but=(first.node_id,))
        assert "lost" not in first.follower.image.topics
        quorum.cut()
        await quorum.until_applied(end)
        assert set(first.follower.image.topics) == {"a", "b"}
        assert first.log == second.log


async def test_follower_writes_and_syncs_many_small_batches_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[int] = []
    syncs: list[str] = []
    append, sync = MetadataStore.append, MetadataStore.sync

    def counted_append(store: MetadataStore, buffers: Any, headers: Any) -> None:
        append(store, buffers, headers)
        if store.directory.startswith(str(follower.directory)):
            writes.append(len(headers))

    def counted_sync(store: MetadataStore) -> None:
        sync(store)
        if store.directory.startswith(str(follower.directory)):
            syncs.append(store.directory)

    async with QuorumInMemory(tmp_path, 3) as quorum:
        leader = await quorum.leader()
        follower = next(one for one in quorum.members.values() if one is not leader)
        await quorum.until_applied(leader.append("first"))
        await follower.kill()
        for number in range(200):
            end = leader.append(f"topic-{number}")
        await quorum.until_applied(end)
        monkeypatch.setattr(MetadataStore, "append", counted_append)
        monkeypatch.setattr(MetadataStore, "sync", counted_sync)
        await follower.start()
        await quorum.until_applied(end)
    assert writes[0] >= 200
    # Another one is at the start: a killed process may have left unsynced records.
    assert len(syncs) <= 1 + len(writes)


@KINDS
async def test_a_whole_quorum_restarts_with_its_records(tmp_path: Path, is_dynamic: bool) -> None:
    async with QuorumInMemory(tmp_path, 3, is_dynamic=is_dynamic) as quorum:
        leader = await quorum.leader()
        await quorum.until_applied(leader.append("a"))
        epoch = leader.leaderships[-1].epoch
        for member in quorum.members.values():
            await member.kill()
        for member in quorum.members.values():
            await member.start()
        leader = await quorum.leader(after=epoch)
        assert set(leader.follower.image.topics) == {"a"}


async def test_a_replica_that_is_far_behind_loads_a_snapshot(tmp_path: Path) -> None:
    interval = {"metadata.log.max.record.bytes.between.snapshots": "300"}
    async with QuorumInMemory(tmp_path, 3, settings=interval) as quorum:
        leader = await quorum.leader()
        late = next(one for one in quorum.members.values() if one is not leader)
        await late.kill()
        end = 0
        for number in range(12):
            end = leader.append(f"t{number}")
            await quorum.until_applied(end)
        assert leader.node is not None
        await quorum.until(lambda: bool(leader.snapshots))
        await late.start()
        await quorum.until_applied(end)
        assert late.snapshots, "the log that it lacks is deleted"
        assert set(late.follower.image.topics) == {f"t{number}" for number in range(12)}
        await quorum.until_applied(leader.append("last"))


async def test_voters_are_added_and_removed(tmp_path: Path) -> None:
    async with QuorumInMemory(tmp_path, 3, is_dynamic=True) as quorum:
        leader = await quorum.leader()
        await quorum.until_applied(leader.append("a"))
        added = await quorum.add(4)
        await quorum.until_applied(leader.follower.image.offset)
        # Until the leader has seen that it is caught up.
        while (error := await _change(leader, ApiKey.ADD_RAFT_VOTER, 4)) is not ErrorCode.NONE:
            assert error is ErrorCode.REQUEST_TIMED_OUT
        assert await _change(leader, ApiKey.ADD_RAFT_VOTER, 4) is ErrorCode.DUPLICATE_VOTER
        assert await _voters(leader) == {1, 2, 3, 4}
        other = next(one for one in (1, 2, 3) if one != leader.node_id)
        assert await _change(leader, ApiKey.REMOVE_RAFT_VOTER, other) is ErrorCode.NONE
        assert await _voters(leader) == {1, 2, 3, 4} - {other}
        epoch = leader.leaderships[-1].epoch
        await leader.kill()
        successor = await quorum.leader(after=epoch)
        assert successor.node_id != other
        await quorum.until_applied(successor.append("b"))
        assert set(added.follower.image.topics) == {"a", "b"}


async def _change(leader: Member, key: ApiKey, node_id: int) -> ErrorCode:
    body = {
        "cluster_id": CLUSTER_ID,
        "voter_id": node_id,
        "voter_directory_id": directory_of(node_id),
    }
    if key is ApiKey.ADD_RAFT_VOTER:
        listeners = [endpoint._asdict() for endpoint in voter(node_id).endpoints]
        body |= {"timeout_ms": 10_000, "listeners": listeners}
    assert leader.node is not None
    request = request_message(key).struct_class(**body)
    answer = await leader.node.respond(key, 0, request, listener=LISTENER)
    return ErrorCode(answer["error_code"])


async def _voters(leader: Member) -> set[int]:
    assert leader.node is not None
    return {replica.key.replica_id for replica in (await leader.node.describe()).voters}


async def test_only_the_leader_describes_the_quorum_and_appends(tmp_path: Path) -> None:
    async with QuorumInMemory(tmp_path, 3) as quorum:
        leader = await quorum.leader()
        follower = next(one for one in quorum.members.values() if one is not leader)
        assert follower.node is not None
        with pytest.raises(KafkaError) as raised:
            await follower.node.describe()
        assert raised.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        with pytest.raises(KafkaError) as raised:
            follower.append("a")
        assert raised.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_requests_about_other_partitions_or_clusters_are_refused(tmp_path: Path) -> None:
    async with QuorumInMemory(tmp_path, 1) as quorum:
        leader = await quorum.leader()
        assert leader.node is not None
        vote = request_message(ApiKey.VOTE)
        answer = await leader.node.respond(ApiKey.VOTE, 2, vote.struct_class(), listener=LISTENER)
        assert answer == {"error_code": ErrorCode.INVALID_REQUEST}
        partition = {"partition_index": 0, "replica_epoch": 9, "replica_id": 2}
        topics = [{"topic_name": "__cluster_metadata", "partitions": [partition]}]
        foreign = vote.struct_class(cluster_id="another", topics=topics)
        answer = await leader.node.respond(ApiKey.VOTE, 2, foreign, listener=LISTENER)
        assert answer == {"error_code": ErrorCode.INCONSISTENT_CLUSTER_ID}
        assert leader.node.leadership.epoch == 1


async def test_fetch_of_records_that_a_snapshot_replaces_meanwhile_gets_a_response(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with QuorumInMemory(tmp_path, 1) as quorum:
        leader = await quorum.leader()
        await quorum.until_applied(leader.append("a"))
        assert leader.node is not None
        partition = {"partition": 0, "current_leader_epoch": 1, "fetch_offset": 0}
        partition |= {"last_fetched_epoch": 0, "partition_max_bytes": 1 << 20}
        topics = [{"topic_id": TOPIC_ID, "partitions": [partition]}]
        fields = {"cluster_id": CLUSTER_ID, "max_bytes": 1 << 20, "topics": topics}
        request = request_message(ApiKey.FETCH).struct_class(**fields)

        async def fetched_error() -> int:
            assert leader.node is not None
            answer = await leader.node.respond(ApiKey.FETCH, 17, request, listener=LISTENER)
            return int(answer["responses"][0]["partitions"][0]["error_code"])

        assert await fetched_error() == ErrorCode.NONE
        monkeypatch.setattr(raft_replies, "read_batches", _missing)
        assert await fetched_error() == ErrorCode.UNKNOWN_SERVER_ERROR


def _missing(_piece: object) -> bytes:
    raise FileNotFoundError(errno.ENOENT, "it was deleted")


async def test_a_failed_disk_ends_the_replica(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with QuorumInMemory(tmp_path, 3) as quorum:
        first = await quorum.leader()
        assert first.node is not None
        epoch = first.leaderships[-1].epoch
        with monkeypatch.context() as patch:
            _fail_sync(patch, first.node._log)
            first.append("a")
            await quorum.until(lambda: bool(first.failures))
        assert "disk on fire" in first.failures[0]
        with pytest.raises(KafkaError) as raised:
            first.append("b")
        assert raised.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert await quorum.leader(after=epoch) is not first


def _fail_sync(patch: pytest.MonkeyPatch, failing: Any) -> None:
    """Let the sync of one log fail, and not those of the other members."""
    sync = type(failing).sync

    async def sync_or_fail(log: Any) -> None:
        if log is failing:
            raise OSError(errno.EIO, "disk on fire")
        await sync(log)

    patch.setattr(type(failing), "sync", sync_or_fail)


async def test_log_that_cannot_be_read_ends_the_replica(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with QuorumInMemory(tmp_path, 1) as quorum:
        only = await quorum.leader()
        assert only.node is not None
        node, log = only.node, only.node._log

        async def fail(_log: RaftLog, _high_watermark: int) -> None:
            raise OSError(errno.EIO, "disk on fire")

        with monkeypatch.context() as patch:
            patch.setattr(type(log), "take_committed", fail)
            only.append("a")
            await quorum.until(lambda: bool(only.failures))
        assert node.is_ended
        assert str(node.failure).startswith("the metadata log cannot be read: ")
        assert "disk on fire" in only.failures[0]


async def test_read_that_returns_no_whole_batch_is_a_damaged_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raft_log, "read_batches", lambda _piece: memoryview(b""))
    piece = SimpleNamespace(length=100)
    with pytest.raises(KafkaError) as raised:
        raft_log._read_checked(piece)  # type: ignore[arg-type]
    assert raised.value.code is ErrorCode.CORRUPT_MESSAGE


async def test_a_replica_whose_disk_failed_stops_without_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with QuorumInMemory(tmp_path, 1) as quorum:
        only = await quorum.leader()
        assert only.node is not None
        with monkeypatch.context() as patch:
            _fail_sync(patch, only.node._log)
            only.append("a")
            await quorum.until(lambda: bool(only.failures))
        await only.node.settle()
        await only.node.stop(timeout_ms=1_000)


@pytest.mark.parametrize("error", [ValueError, KafkaError])
async def test_an_unexpected_error_ends_the_replica(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """The machine and the files may no longer agree, so it must not vote or lead."""

    def raise_error(_leadership: object) -> None:
        raise error(ErrorCode.CORRUPT_MESSAGE)

    async with QuorumInMemory(tmp_path, 3) as quorum:
        first = await quorum.leader()
        assert first.node is not None
        actions = first.node._actions
        listener = actions._listener._replace(on_leadership=raise_error)
        monkeypatch.setattr(actions, "_listener", listener)
        first.node.resign(first.leaderships[-1].epoch)
        await quorum.until(lambda: bool(first.failures))
        assert first.node.is_ended


async def test_a_directory_formatted_to_join_has_no_voters(tmp_path: Path) -> None:
    """Not even if the configuration names this node alone: another quorum would begin."""
    quorum = QuorumInMemory(tmp_path, 1)
    only = quorum.members[1]
    path = tmp_path / "1" / DIRECTORY_NAME / FORMATTED.file_name
    path.write_bytes(encode_first_snapshot(1, [], voters=[KRaftVersion(1)]))
    async with quorum:
        assert only.node is not None
        assert not only.node.is_only_voter
        assert not only.node.voters.ids


async def test_records_of_a_killed_voter_are_synced_before_they_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    sync = RaftLog.sync

    async def counted(log: RaftLog) -> None:
        synced.append(log.end_offset)
        await sync(log)

    async with QuorumInMemory(tmp_path, 3) as quorum:
        leader = await quorum.leader()
        await quorum.until_applied(leader.append("a"))
        (other, *_) = (one for one in quorum.members.values() if one is not leader)
        await other.kill()
        monkeypatch.setattr(RaftLog, "sync", counted)
        await other.start()
        assert synced
        assert other.node is not None
        assert synced[0] <= other.node.end_offset
