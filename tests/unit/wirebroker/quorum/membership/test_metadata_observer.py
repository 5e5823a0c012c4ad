"""An observer of a remote quorum: applied, stored, truncated and rejected records."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from tests.support.coordinators.kit import topic
from tests.support.records.clocks import HandClock
from tests.support.tools.waiting import until
from tests.unit.wirebroker.quorum.membership.quorum_kit import (
    LISTENER,
    NODE_ID,
    PATIENCE_S,
    Leader,
    Observer,
    Servers,
)
from wirebroker.base.clock import next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.codecs.records.batch import write_crc
from wirebroker.config import StartError
from wirebroker.coordinator.raft.model.election_state import ElectionState, encode_election_state
from wirebroker.quorum.log.metadata_snapshot import snapshot_ids
from wirebroker.quorum.log.metadata_store import DIRECTORY_NAME
from wirebroker.quorum.raft.raft_log import RaftLog
from wirebroker.quorum.raft.raft_node import ELECTION_FILE, RaftNode
from wirebroker.storage.files import Files

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.codecs.metadata_records import MetadataRecord

BEGIN = metadata_record(RecordType.BEGIN_TRANSACTION)
END = metadata_record(RecordType.END_TRANSACTION)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


async def test_only_committed_records_are_applied(folder):
    leader = Leader()
    observer = Observer(folder, Servers(leader))
    await observer.start()
    leader.write(topic("a", 1))
    leader.write(topic("b", 2), commit=False)
    image = await observer.until(2)
    assert sorted(image.topics) == ["a"]
    assert await observer.parts.until_caught_up(PATIENCE_S)
    leader.commit(4)
    assert sorted((await observer.until(4)).topics) == ["a", "b"]
    await observer.stop()
    assert observer.servers.is_closed


async def test_observer_has_caught_up_when_all_that_is_committed_is_applied(folder):
    leader = Leader()
    observer = Observer(folder, Servers(leader))
    leader.high_watermark = 4
    await observer.start()
    assert not await observer.parts.until_caught_up(0.05)
    leader.write(topic("a", 1), commit=False)
    leader.tell()
    await observer.until(2)
    assert not await observer.parts.until_caught_up(0.05)
    leader.write(topic("b", 2))
    assert await observer.parts.until_caught_up(PATIENCE_S)
    assert observer.follower.image.offset == 4
    await observer.stop()


async def test_observer_that_had_caught_up_counts_although_more_is_committed_at_once(
    folder, monkeypatch
):
    until_caught_up = RaftNode.until_caught_up

    async def until_more_is_committed(node: RaftNode) -> bool:
        is_complete = await until_caught_up(node)
        node._replica.core.state.leader_high_watermark += 1  # type: ignore[union-attr]
        return is_complete

    monkeypatch.setattr(RaftNode, "until_caught_up", until_more_is_committed)
    leader = Leader()
    leader.write(topic("a", 1))
    observer = Observer(folder, Servers(leader))
    await observer.start()
    assert await observer.parts.until_caught_up(PATIENCE_S)
    await observer.stop()


async def test_records_of_a_transaction_apply_at_its_end(folder):
    leader = Leader()
    observer = Observer(folder, Servers(leader))
    await observer.start()
    leader.write([BEGIN, *topic("a", 1)])
    assert (await observer.until(3)).topics == {}
    leader.write([*topic("b", 2), END])
    image = await observer.until(6)
    assert sorted(image.topics) == ["a", "b"]
    assert image.open_transaction is None
    await observer.stop()


@pytest.mark.parametrize("has_state", [True, False], ids=["own", "of an earlier version"])
async def test_restart_continues_at_the_log_end(folder, has_state):
    leader = Leader()
    first = Observer(folder, Servers(leader))
    await first.start()
    leader.write(topic("a", 1), topic("b", 2))
    await first.until(4)
    await first.stop()
    if not has_state:
        (folder / DIRECTORY_NAME / ELECTION_FILE).unlink()
    second = Observer(folder, Servers(leader))
    loaded = await second.start()
    # Only the quorum knows the high watermark.
    assert loaded.topics == {}
    assert second.parts.node.end_offset == 4
    assert sorted((await second.until(4)).topics) == ["a", "b"]
    assert [request.topics[0].partitions[0].fetch_offset for request in leader.asked[-1:]] == [4]
    await second.stop()


async def test_new_leader_epoch_is_followed_and_diverging_records_cut(folder):
    old, new = Leader(epoch=3), Leader(node_id=102, epoch=4)
    new.is_down = True
    observer = Observer(folder, Servers(old, new))
    await observer.start()
    old.write(topic("a", 1))
    old.write(topic("lost", 2), commit=False)
    await observer.until(2)
    new.batches, new.end_offset = old.batches[:1], 2
    new.write(topic("b", 3))
    old.is_down, new.is_down = True, False
    old.tell()
    image = await observer.until(4)
    assert sorted(image.topics) == ["a", "b"]
    assert observer.parts.node.leadership.epoch == 4
    await observer.stop()


async def test_snapshot_replaces_records_the_leader_no_longer_has(folder):
    leader = Leader()
    full = Observer(folder / "full", Servers(leader))
    (folder / "full").mkdir()
    await full.start()
    leader.write(topic("a", 1), topic("b", 2))
    await leader.condense(await full.until(4))
    await full.stop()
    (folder / "late").mkdir()
    late = Observer(folder / "late", Servers(leader))
    await late.start()
    leader.write(topic("c", 3))
    image = await late.until(6)
    assert sorted(image.topics) == ["a", "b", "c"]
    await late.stop()
    again = Observer(folder / "late", Servers(leader))
    loaded = await again.start()
    assert (loaded.offset, sorted(loaded.topics)) == (4, ["a", "b"])
    assert sorted((await again.until(6)).topics) == ["a", "b", "c"]
    await again.stop()


async def test_own_snapshots_truncate_the_log(folder):
    leader = Leader()
    settings = {"metadata.log.max.record.bytes.between.snapshots": "1000"}
    observer = Observer(folder, Servers(leader), settings)
    await observer.start()
    for number in range(1, 30):
        leader.write(topic(f"topic-{number}", number))
        await observer.until(2 * number)
    await observer.stop()
    names = Files().list_directory(f"{folder}/__cluster_metadata-0")
    (snapshot,) = snapshot_ids(names)
    assert snapshot.end_offset > 10
    assert "00000000000000000000.log" not in names
    again = Observer(folder, Servers(leader), settings)
    assert (await again.start()).offset == snapshot.end_offset
    assert len((await again.until(58)).topics) == 29
    await again.stop()


async def test_unknown_record_ends_the_observer_with_one_log_line(folder):
    leader = Leader()
    observer = Observer(folder, Servers(leader))
    await observer.start()
    leader.write(topic("a", 1))
    await observer.until(2)
    leader.batches.append((2, 1, _batch_of_kind(leader, 99)))
    leader.end_offset = 3
    leader.commit(3)
    assert "cannot be applied" in await observer.failure()
    assert sorted(observer.follower.image.topics) == ["a"]
    await observer.stop()


def _batch_of_kind(leader: Leader, kind: int) -> bytes:
    """Return a batch with a record of an unknown kind."""
    scratch = Leader()
    scratch.end_offset = leader.end_offset
    scratch.tell = lambda: None  # type: ignore[method-assign]
    scratch.write([metadata_record(RecordType.NO_OP)])
    raw = bytearray(scratch.batches[0][2])
    # frame version 1, kind 20 (NoOp), version 0
    index = raw.index(bytes((1, int(RecordType.NO_OP), 0)))
    raw[index + 1] = kind

    write_crc(raw, 0)
    return bytes(raw)


async def test_damaged_batch_is_fetched_again(folder, caplog):
    leader = Leader()
    observer = Observer(folder, Servers(leader))
    await observer.start()
    leader.write(topic("a", 1), commit=False)
    base, epoch, raw = leader.batches[0]
    leader.batches[0] = base, epoch, raw[:-1] + b"\x7f"
    leader.commit(2)
    await until(lambda: "CRC-32C" in caplog.text)
    assert observer.follower.image.offset == 0
    leader.batches[0] = base, epoch, raw
    assert sorted((await observer.until(2)).topics) == ["a"]
    await observer.stop()


async def test_another_cluster_is_not_followed(folder):
    observer = Observer(folder, Servers(Leader()))
    await observer.start("AAAAAAAAAAAAAAAAAAAAAA")
    assert not await observer.parts.until_caught_up(0.2)
    assert observer.follower.image.offset == 0
    await observer.stop()


REFUSALS = [ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.INCONSISTENT_CLUSTER_ID]


@pytest.mark.parametrize("error", REFUSALS, ids=lambda error: error.name)
async def test_leader_that_keeps_refusing_ends_the_observer(folder, error):
    leader, clock = Leader(), HandClock()
    observer = Observer(folder, Servers(leader), clock=clock)
    leader.write(topic("a", 1))
    await observer.start()
    await observer.until(2)
    for _ in range(5):
        await refused(leader, error)
        assert observer.parts.failure is None
        clock.passed_ms += 2_000
    failure = await observer.failure()
    assert f"refused this node for 10 s: {error.name}" in failure
    is_denied = error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert ("User:ANONYMOUS lacks CLUSTER_ACTION on CLUSTER" in failure) == is_denied
    assert not await observer.parts.until_caught_up(PATIENCE_S)
    await observer.stop()


@pytest.mark.parametrize("error", REFUSALS, ids=lambda error: error.name)
async def test_leader_that_refuses_for_a_moment_is_followed_again(folder, error):
    leader, clock = Leader(), HandClock()
    observer = Observer(folder, Servers(leader), clock=clock)
    await observer.start()
    for number in range(1, 4):
        leader.write(topic(f"topic-{number}", number))
        await observer.until(leader.end_offset)
        await refused(leader, error)
        leader.error = ErrorCode.NONE
        clock.passed_ms += 9_000
    leader.write(topic("last", 4))
    await observer.until(leader.end_offset)
    assert observer.parts.failure is None
    await observer.stop()


async def test_observer_that_no_controller_lets_in_ends_with_the_missing_right(folder):
    leader, other, clock = Leader(), Leader(node_id=102), HandClock()
    leader.error = other.error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    settings = {
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required"
            ' username="joiner" password="a-secret";'
        ),
    }
    observer = Observer(folder, Servers(leader, other), settings, clock=clock)
    await observer.start()
    for _ in range(8):
        count = len(leader.asked) + len(other.asked)
        await until(lambda: len(leader.asked) + len(other.asked) > count)  # noqa: B023
        assert observer.parts.failure is None
        clock.passed_ms += 2_000
    assert "User:joiner lacks CLUSTER_ACTION on CLUSTER" in await observer.failure()
    assert "wirebroker acl create --allow User:joiner" in str(observer.parts.remedy)
    await observer.stop()


async def test_observer_waits_for_controllers_that_have_no_leader(folder):
    """Without a leader a controller may not have loaded the ACLs."""
    leader, clock = Leader(), HandClock()
    leader.error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    observer = Observer(folder, Servers(leader), clock=clock)
    await observer.start()
    for _ in range(7):
        count = len(leader.asked)
        await until(lambda: len(leader.asked) > count)  # noqa: B023 - awaited here
        clock.passed_ms += 2_000
    leader.error = ErrorCode.NONE
    leader.write(topic("a", 1))
    await observer.until(2)
    assert observer.parts.failure is None
    await observer.stop()


async def test_observer_waits_if_one_controller_has_not_loaded_its_acls(folder):
    leader, other, clock = Leader(), Leader(node_id=102), HandClock()
    leader.error = ErrorCode.UNKNOWN_SERVER_ERROR
    other.error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    observer = Observer(folder, Servers(leader, other), clock=clock)
    await observer.start()
    for _ in range(10):
        counts = len(leader.asked), len(other.asked)
        await until(
            lambda: len(leader.asked) > counts[0] and len(other.asked) > counts[1]  # noqa: B023
        )
        clock.passed_ms += 2_000
    assert observer.parts.failure is None
    leader.error = ErrorCode.NONE
    leader.write(topic("a", 1))
    await observer.until(2)
    await observer.stop()


@pytest.mark.parametrize("error", REFUSALS, ids=lambda error: error.name)
async def test_refusals_of_other_controllers_do_not_end_the_observer(folder, error):
    leader, other, clock = Leader(), Leader(node_id=102), HandClock()
    other.error = error
    observer = Observer(folder, Servers(leader, other), clock=clock)
    await observer.start()
    leader.write(topic("a", 1))
    await observer.until(2)
    leader.is_down = True
    leader.tell()
    for _ in range(3):
        count = len(other.asked)
        clock.passed_ms += 10_000
        await until(lambda: len(other.asked) > count)  # noqa: B023 - awaited here
    leader.is_down = False
    leader.write(topic("b", 2))
    clock.passed_ms += 10_000
    await observer.until(4)
    assert observer.parts.failure is None
    await observer.stop()


async def refused(leader: Leader, error: ErrorCode) -> None:
    """Let the leader refuse at least one request of an observer."""
    count = len(leader.asked)
    leader.error = error
    # The fetch that waits gets its response first.
    leader.commit(leader.high_watermark)
    leader.write([metadata_record(RecordType.NO_OP)])
    await until(lambda: len(leader.asked) > count)


async def test_committed_records_are_never_cut(folder):
    leader, other = Leader(epoch=2), Leader(node_id=102, epoch=3)
    other.is_down = True
    observer = Observer(folder, Servers(leader, other))
    await observer.start()
    leader.write(topic("a", 1), topic("b", 2))
    await observer.until(4)
    other.batches, other.end_offset = leader.batches[:1], 2
    other.write(topic("c", 3))
    leader.is_down, other.is_down = True, False
    leader.tell()
    assert "before the committed offset 4" in await observer.failure()
    assert sorted(observer.follower.image.topics) == ["a", "b"]
    await observer.stop()
    # The files do not say what was committed, so a start follows the leader again.
    restarted = Observer(folder, Servers(other))
    await restarted.start()
    assert sorted((await restarted.until(4)).topics) == ["a", "c"]
    await restarted.stop()


async def test_leader_is_looked_for_at_registered_controllers(folder):
    """The broker knows one address, and that controller is gone when another one leads."""
    old, new = Leader(epoch=3), Leader(node_id=102, epoch=4)
    servers = Servers(old, new)
    servers.addresses = [old.address]
    observer = Observer(folder, servers)
    await observer.start()
    old.write([_registration(new)])
    await observer.until(1)
    new.batches, new.end_offset = old.batches, 1
    new.write(topic("a", 1))
    old.is_down = True
    old.tell()
    assert sorted((await observer.until(3)).topics) == ["a"]
    await observer.stop()


def _registration(leader: Leader) -> MetadataRecord:
    endpoint = {"name": LISTENER, "security_protocol": 0, **leader.address._asdict()}
    return metadata_record(
        RecordType.REGISTER_CONTROLLER, controller_id=leader.node_id, end_points=[endpoint]
    )


async def test_directory_of_a_voter_observes_without_voting(folder):
    """A node that gave up the controller role, and led its epoch before."""
    leader = Leader(epoch=3)
    servers = Servers(leader)
    observer = Observer(folder, servers, {"controller.quorum.election.timeout.ms": "10"})
    state = ElectionState(2, NODE_ID, None, (NODE_ID,))
    (folder / DIRECTORY_NAME).mkdir()
    (folder / DIRECTORY_NAME / ELECTION_FILE).write_bytes(encode_election_state(state, 0))
    leader.write([metadata_record(RecordType.NO_OP)])
    await observer.start()
    await observer.until(1)
    leader.is_down = True
    leader.tell()
    await until(lambda: not observer.parts.node.has_working_leader)
    assert servers.kinds == {ApiKey.FETCH}
    assert observer.parts.node.state_name == "Follower"
    await observer.stop()


async def test_unreadable_election_state_is_reported_with_its_remedy(folder):
    (folder / DIRECTORY_NAME).mkdir()
    (folder / DIRECTORY_NAME / ELECTION_FILE).write_bytes(b"{}")
    observer = Observer(folder, Servers(Leader()))
    with pytest.raises(StartError, match=r"quorum-state cannot be read.*remove that folder"):
        await observer.start()
    await observer.stop()


async def test_silence_begins_when_the_leader_stops_to_respond(folder):
    leader = Leader()
    clock = HandClock()
    observer = Observer(folder, Servers(leader), clock=clock)
    await observer.start()
    leader.write(topic("a", 1))
    await observer.until(2)
    assert observer.parts.silence([leader.address]) is None
    clock.passed_ms += 3_500
    said = observer.parts.silence([leader.address])
    assert said is not None
    assert said.startswith("no controller has responded for 4 s, since ")
    assert said.endswith(f"tried {leader.address}")
    await observer.stop()


async def test_failed_disk_ends_the_observer(folder, monkeypatch):
    def fail(_log: object, _batch: object) -> None:
        raise OSError(errno.EIO, "disk on fire")

    leader = Leader()
    observer = Observer(folder, Servers(leader))
    await observer.start()
    monkeypatch.setattr(RaftLog, "append", fail)
    leader.write(topic("a", 1))
    assert "cannot be written: [Errno 5] disk on fire" in await observer.failure()
    await observer.stop()


class CountingClock(HandClock):
    def monotonic(self) -> float:
        self.passed_ms += 1
        return super().monotonic()


async def test_replaying_a_large_cluster_does_not_block_the_loop(folder):
    leader = Leader()
    observer = Observer(folder, Servers(leader), clock=CountingClock())
    await observer.start()
    leader.write(topic("large", 1, partitions=2_000))
    turns = 0
    while observer.follower.image.offset < 2_001:
        await next_turn()
        turns += 1
    # A slice takes at most six clock readings, one per record.
    assert turns >= 2_000 / 6
    assert len(observer.follower.image.topics["large"].partitions) == 2_000
    await observer.stop()
