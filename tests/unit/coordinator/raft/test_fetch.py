"""Fetch and FetchSnapshot at leaders and followers."""

from __future__ import annotations

import pytest

from tests.support.coordinators.raft_kit import (
    CLUSTER,
    EPOCH,
    LOG_END,
    STATES,
    Machine,
    batch,
    endpoints,
    key,
    machine_in,
    voter_set,
)
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.control import KRaftVersion
from wirebroker.coordinator.raft.model.election_state import ElectionState
from wirebroker.coordinator.raft.model.log_point import LogPoint, LogSlice, RaftBatch
from wirebroker.coordinator.raft.model.log_view import LogView
from wirebroker.coordinator.raft.protocol.actions import (
    Append,
    DiscardSnapshot,
    HighWatermarkAdvanced,
    InstallSnapshot,
    Respond,
    Sync,
    Truncate,
    Violation,
    VotersChanged,
    WriteSnapshot,
)
from wirebroker.coordinator.raft.protocol.events import (
    LogSynced,
    RequestCancelled,
    RequestReceived,
    ResponseReceived,
    SnapshotCreated,
    SnapshotInstalled,
    SnapshotRejected,
)
from wirebroker.coordinator.raft.protocol.messages import (
    NO_LEADER,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    KnownLeader,
    LogFetchRequest,
    LogFetchResponse,
    RequestFailure,
)

SNAPSHOT = LogPoint(4, 8)


def data_batch(machine: Machine, count: int) -> RaftBatch:
    """Return a batch for the end of a machine's log."""
    end_offset = machine.core.log.end_offset
    return RaftBatch(end_offset, end_offset + count, machine.epoch, (), "data")


def fetch(machine, *, epoch=None, end=LOG_END, replica=2, wait_ms=0, high_watermark=1 << 40):
    at_epoch = machine.epoch if epoch is None else epoch
    return LogFetchRequest(CLUSTER, key(replica), at_epoch, end, high_watermark, 1_000, wait_ms)


def fetch_snapshot(machine, *, epoch=None, snapshot=SNAPSHOT, position=0):
    at_epoch = machine.epoch if epoch is None else epoch
    return FetchSnapshotRequest(CLUSTER, key(2), at_epoch, snapshot, position, 40)


def from_leader(machine, **contents):
    return LogFetchResponse(ErrorCode.NONE, KnownLeader(2, machine.epoch, endpoints(2)), **contents)


@pytest.mark.parametrize("make", [fetch, fetch_snapshot])
@pytest.mark.parametrize("state", STATES)
def test_only_the_leader_of_the_epoch_serves_fetches(state, make):
    machine = machine_in(state)
    assert machine.ask(make(machine, epoch=machine.epoch - 1)).error is (
        ErrorCode.INVALID_REQUEST
        if make is fetch and LOG_END.epoch > machine.epoch - 1
        else ErrorCode.FENCED_LEADER_EPOCH
    )
    error = machine.ask(make(machine, epoch=machine.epoch + 1)).error
    assert error is ErrorCode.UNKNOWN_LEADER_EPOCH
    error = machine.ask(make(machine)).error
    if state != "leader":
        assert error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    else:
        is_fetch = make is fetch
        assert error is (ErrorCode.NONE if is_fetch else ErrorCode.SNAPSHOT_NOT_FOUND)
    refused = make(machine)._replace(cluster_id="another")
    assert machine.ask(refused) == RequestFailure(ErrorCode.INCONSISTENT_CLUSTER_ID)


@pytest.mark.parametrize(
    "changes",
    [
        {"end": LogPoint(4, -1)},
        {"end": LogPoint(-1, 10)},
        {"end": LogPoint(7, 10), "epoch": 6},
        {"wait_ms": -1},
    ],
)
def test_impossible_fetch_is_invalid(changes):
    machine = machine_in("leader")
    assert machine.ask(fetch(machine, **changes)).error is ErrorCode.INVALID_REQUEST


def test_fetch_under_the_leaders_own_id_does_not_count():
    machine = machine_in("leader")
    response = machine.ask(fetch(machine, replica=1))
    assert response.error is ErrorCode.UNKNOWN_SERVER_ERROR


def test_records_are_committed_when_a_majority_has_them_on_disk():
    machine = machine_in("leader")
    end = machine.core.log.end
    machine.fetch_as(2)
    assert machine.core.high_watermark is None  # its own disk does not have them yet
    machine.step(LogSynced(end))
    assert machine.of(HighWatermarkAdvanced) == [HighWatermarkAdvanced(end.offset)]


def test_records_of_earlier_epochs_are_committed_only_with_one_of_this_epoch():
    machine = machine_in("leader")
    machine.sync()
    assert machine.fetch_as(2, LOG_END.offset).high_watermark == -1
    assert machine.fetch_as(3, LOG_END.offset).high_watermark == -1
    assert machine.core.high_watermark is None
    assert machine.fetch_as(3).high_watermark == LOG_END.offset + 1


def test_observer_does_not_commit():
    machine = machine_in("leader")
    machine.sync()
    machine.fetch_as(9)
    assert machine.core.high_watermark is None
    assert key(9) in machine.core.state.observers


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (LogPoint(0, 0), {"records": LogSlice(0, 11, 1_000)}),
        (LogPoint(1, 3), {"records": LogSlice(3, 11, 1_000)}),
        (LogPoint(1, 6), {"diverging": LogPoint(1, 5)}),
        (LogPoint(2, 7), {"diverging": LogPoint(1, 5)}),
        (LogPoint(4, 10), {"records": LogSlice(10, 11, 1_000)}),
        (LogPoint(4, 12), {"diverging": LogPoint(4, 10)}),
        (LogPoint(5, 10), {"diverging": LogPoint(4, 10)}),
        (LogPoint(6, 11), {}),
        (LogPoint(6, 13), {"diverging": LogPoint(6, 11)}),
    ],
)
def test_fetch_compares_logs_by_epoch(end, expected):
    machine = machine_in("leader")  # epochs 1 from 0, 4 from 5, 6 from 10
    response = machine.ask(fetch(machine, end=end))
    found = {
        name: value
        for name in ("records", "diverging", "snapshot")
        if (value := getattr(response, name)) is not None
    }
    assert (response.error, found) == (ErrorCode.NONE, expected)


def test_fetch_waits_for_records():
    machine = machine_in("leader")
    assert machine.ask(fetch(machine, end=machine.core.log.end, wait_ms=500)) is None
    step = machine.replica.append(machine.epoch, [data_batch(machine, 2)], machine.now_ms)
    machine.actions = step.actions
    (respond,) = machine.of(Respond)
    assert respond.response.records == LogSlice(11, 13, 1_000)


def test_fetch_waits_for_a_higher_high_watermark():
    machine = machine_in("leader")
    machine.sync()
    waiting = fetch(machine, end=machine.core.log.end, wait_ms=500, high_watermark=-1)
    assert machine.ask(waiting).high_watermark == 11  # committed by this fetch itself
    waiting = waiting._replace(high_watermark=11, replica=key(3))
    assert machine.ask(waiting) is None
    machine.pass_time(499)
    assert not machine.of(Respond)
    machine.pass_time(1)
    (respond,) = machine.of(Respond)
    assert (respond.response.error, respond.response.records) == (ErrorCode.NONE, None)


def test_waiting_fetch_ends_with_its_connection_or_the_leader():
    machine = machine_in("leader")
    for token in ("first", "second"):
        request = fetch(machine, end=machine.core.log.end, wait_ms=500)
        machine.step(RequestReceived(token, request))
    machine.step(RequestCancelled("first"))
    machine.pass_time(0)
    machine.core.state.resign_is_requested = True
    machine.pass_time(0)
    (respond,) = machine.of(Respond)
    assert respond.token == "second"
    assert respond.response.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_append_needs_the_leader_of_the_epoch():
    machine = machine_in("leader")
    with pytest.raises(KafkaError) as error:
        machine.replica.append(machine.epoch - 1, [data_batch(machine, 1)], machine.now_ms)
    assert error.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("state", sorted(set(STATES) - {"leader"}))
def test_append_is_refused_in_other_states(state):
    machine = machine_in(state)
    with pytest.raises(KafkaError):
        machine.replica.append(machine.epoch, [data_batch(machine, 1)], machine.now_ms)


def test_follower_fetches_again_when_its_disk_has_the_records():
    machine = machine_in("follower")
    (send,) = machine.sent(LogFetchRequest)
    assert send.request == LogFetchRequest(CLUSTER, key(1), EPOCH, LOG_END, -1, 1 << 20, 500)
    records = (batch(10, 5), batch(11, 5))
    machine.answer(send, from_leader(machine, high_watermark=11, batches=records))
    assert machine.of(Append) == [Append(records)]
    assert machine.of(HighWatermarkAdvanced) == [HighWatermarkAdvanced(11)]
    assert not machine.sent(LogFetchRequest)
    machine.sync()
    (send,) = machine.sent(LogFetchRequest)
    assert send.request.log_end == LogPoint(5, 12)


def test_many_batches_of_one_response_are_one_append_and_one_sync():
    machine = machine_in("follower")
    (send,) = machine.sent(LogFetchRequest)
    voters = voter_set(1, 2, 3, 4).to_record()
    records = [batch(offset, 5) for offset in range(10, 60)]
    records[20] = records[20]._replace(controls=(voters,))
    machine.answer(send, from_leader(machine, high_watermark=60, batches=tuple(records)))
    assert machine.of(Append) == [Append(tuple(records))]
    assert machine.of(Sync) == [Sync(LogPoint(5, 60))]
    assert machine.of(VotersChanged) == [VotersChanged(voter_set(1, 2, 3, 4))]


def test_change_of_several_batches_is_one_append_and_one_sync():
    machine = machine_in("leader")
    machine.commit_everything()
    first = data_batch(machine, 2)
    second = first._replace(base_offset=first.end_offset, end_offset=first.end_offset + 3)
    step = machine.replica.append(machine.epoch, (first, second), machine.now_ms)
    actions = [action for action in step.actions if isinstance(action, Append | Sync)]
    assert actions == [Append((first, second)), Sync(LogPoint(machine.epoch, second.end_offset))]


def test_sync_of_truncated_records_does_not_count():
    log = LogView(end_offset=10, epochs=[(4, 0)])
    log.append(batch(10, 5))
    stale = log.end
    log.truncate(10)
    log.append(batch(10, 6))
    log.is_synced(stale)
    assert log.synced_offset == 10
    log.is_synced(log.end)
    assert log.synced_offset == 11


def test_follower_truncates_by_epoch():
    machine = machine_in("follower")  # epochs 1 from 0, 4 from 5
    (send,) = machine.sent(LogFetchRequest)
    machine.answer(send, from_leader(machine, diverging=LogPoint(3, 7)))
    # Epoch 3 is unknown here, and epoch 1 ends at 5.
    assert machine.of(Truncate) == [Truncate(5)]
    (send,) = machine.sent(LogFetchRequest)
    assert send.request.log_end == LogPoint(1, 5)


def test_follower_never_truncates_committed_records():
    machine = machine_in("follower")
    machine.core.commit(9)
    (send,) = machine.sent(LogFetchRequest)
    machine.answer(send, from_leader(machine, diverging=LogPoint(4, 8)))
    assert machine.of(Violation)
    assert machine.core.log.end == LOG_END


@pytest.mark.parametrize(
    "records",
    [
        (batch(11, 5),),  # a gap
        (batch(9, 5),),  # a repetition
        (batch(10, 3),),  # an earlier epoch
        (batch(10, 6),),  # an epoch after the leader's
        (RaftBatch(10, 10, 5),),  # no record
    ],
)
def test_impossible_records_are_refused(records):
    machine = machine_in("follower")
    (send,) = machine.sent(LogFetchRequest)
    machine.answer(send, from_leader(machine, high_watermark=10, batches=records))
    assert machine.of(Violation)
    assert machine.core.log.end == LOG_END


def test_follower_keeps_and_syncs_the_batches_before_an_invalid_one():
    machine = machine_in("follower")
    (send,) = machine.sent(LogFetchRequest)
    machine.answer(send, from_leader(machine, batches=(batch(10, 5), batch(12, 5))))
    assert machine.of(Violation)
    assert not machine.sent(LogFetchRequest)
    machine.sync()
    (send,) = machine.sent(LogFetchRequest)
    assert send.request.log_end == LogPoint(5, 11)


def test_follower_of_static_voters_repeats_a_failed_fetch_after_the_backoff():
    machine = Machine(election=ElectionState(EPOCH, 2), is_static=True, bootstrap=())
    (send,) = machine.sent(LogFetchRequest)
    failure = RequestFailure(ErrorCode.BROKER_NOT_AVAILABLE)
    failed = ResponseReceived(send.request_id, send.destination, failure)
    step = machine.replica.step(failed, machine.now_ms)
    assert step.wake_ms == machine.now_ms + 20
    machine.pass_time(20)
    assert machine.sent(LogFetchRequest)


def test_high_watermark_of_a_follower_ends_with_its_log_and_never_falls():
    machine = machine_in("follower")
    (send,) = machine.sent(LogFetchRequest)
    machine.answer(send, from_leader(machine, high_watermark=50))
    assert machine.core.high_watermark == LOG_END.offset
    (send,) = machine.sent(LogFetchRequest)
    machine.answer(send, from_leader(machine, high_watermark=7))
    assert machine.core.high_watermark == LOG_END.offset


def test_refused_fetch_is_not_repeated_at_once():
    machine = machine_in("unattached")
    (send,) = machine.sent(LogFetchRequest)
    refused = LogFetchResponse(
        ErrorCode.NOT_LEADER_OR_FOLLOWER, KnownLeader(NO_LEADER, machine.epoch)
    )
    machine.answer(send, refused)
    (other,) = machine.sent(LogFetchRequest)
    assert other.destination.node_id != send.destination.node_id
    machine.answer(other, refused)
    assert not machine.sent(LogFetchRequest)
    machine.pass_time(20)
    assert machine.sent(LogFetchRequest)


def test_late_response_does_not_count():
    machine = machine_in("follower")
    machine.core.state.fetch_deadline_ms += 10_000
    machine.pass_time(2_000)
    (late,) = machine.sent(LogFetchRequest)
    assert late.destination.node_id < 0  # a bootstrap server, because the leader is silent
    machine.pass_time(2_000)
    (send,) = machine.sent(LogFetchRequest)
    assert send.destination.node_id == 2
    machine.answer(send, from_leader(machine, batches=(batch(10, 5),)))
    assert machine.of(Append)
    machine.answer(late, from_leader(machine, batches=(batch(10, 5),)))
    assert not machine.of(Violation)


def test_observer_finds_the_leader_at_a_bootstrap_server():
    machine = Machine(own=9, election=ElectionState())
    (send,) = machine.sent(LogFetchRequest)
    refused = LogFetchResponse(
        ErrorCode.FENCED_LEADER_EPOCH, KnownLeader(3, EPOCH + 2, endpoints(3))
    )
    machine.answer(send, refused)
    (send,) = machine.sent(LogFetchRequest)
    assert (send.destination.node_id, send.request.epoch) == (3, EPOCH + 2)


def snapshot_leader():
    machine = machine_in("leader")
    machine.commit_everything()
    machine.step(SnapshotCreated(SNAPSHOT, 100, is_log_start=True))
    return machine


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (LogPoint(0, 0), SNAPSHOT),
        (LogPoint(1, 3), SNAPSHOT),
        (LogPoint(1, 8), SNAPSHOT),
        (LogPoint(4, 8), None),
        (LogPoint(4, 9), None),
    ],
)
def test_log_that_ends_before_the_leaders_begins_needs_a_snapshot(end, expected):
    machine = snapshot_leader()
    response = machine.ask(fetch(machine, end=end))
    assert (response.snapshot, response.log_start_offset) == (expected, 8)


def test_leader_serves_pieces_of_a_snapshot():
    machine = snapshot_leader()
    response = machine.ask(fetch_snapshot(machine, position=40))
    assert (response.error, response.size, response.position) == (ErrorCode.NONE, 100, 40)
    assert response.bytes_to_read == (40, 40)
    for position in (-1, 100):
        error = machine.ask(fetch_snapshot(machine, position=position)).error
        assert error is ErrorCode.POSITION_OUT_OF_RANGE
    unknown = fetch_snapshot(machine, snapshot=LogPoint(4, 7))
    assert machine.ask(unknown).error is ErrorCode.SNAPSHOT_NOT_FOUND


def download(machine, *, position, data, size=6):
    (send,) = machine.sent(FetchSnapshotRequest)
    leader = KnownLeader(2, machine.epoch, endpoints(2))
    machine.answer(
        send,
        FetchSnapshotResponse(ErrorCode.NONE, leader, LogPoint(5, 40), size, position, data=data),
    )


def downloading():
    machine = machine_in("follower")
    (send,) = machine.sent(LogFetchRequest)
    machine.answer(send, from_leader(machine, snapshot=LogPoint(5, 40)))
    return machine


def test_follower_replaces_its_log_by_a_snapshot():
    machine = downloading()
    download(machine, position=0, data=b"abc")
    assert machine.of(WriteSnapshot) == [WriteSnapshot(LogPoint(5, 40), 0, b"abc")]
    download(machine, position=3, data=b"def")
    assert machine.of(InstallSnapshot) == [InstallSnapshot(LogPoint(5, 40))]
    # Until it is installed: no fetch, no election.
    machine.pass_time(10_000)
    assert (machine.actions, machine.state_name) == ([], "follower")
    voters = voter_set(1, 2)
    controls = (KRaftVersion(1), voters.to_record())
    machine.step(SnapshotInstalled(LogPoint(5, 40), 6, controls))
    core = machine.core
    assert (core.log.start_offset, core.log.end) == (40, LogPoint(5, 40))
    assert (core.high_watermark, core.history.last_voters) == (40, voters)
    assert core.history.records_at(39) == controls


def test_snapshot_that_the_follower_has_is_not_requested_without_a_pause():
    log = LogView(start_offset=8, end_offset=10, epochs=[(4, 8)], snapshots=[(SNAPSHOT, 100)])
    machine = Machine(election=ElectionState(EPOCH, 2), log=log)
    (send,) = machine.sent(LogFetchRequest)
    machine.answer(send, from_leader(machine, snapshot=SNAPSHOT))
    assert machine.of(Violation)
    assert not machine.sent(FetchSnapshotRequest)
    # It looks for a leader elsewhere, and returns to this one after a pause.
    assert [send.destination.node_id for send in machine.sent(LogFetchRequest)] != [2]


def test_damaged_snapshot_is_fetched_again():
    machine = downloading()
    download(machine, position=0, data=b"abcdef")
    machine.step(SnapshotRejected(LogPoint(5, 40)))
    (send,) = machine.sent(LogFetchRequest)
    assert send.request.log_end == LOG_END


@pytest.mark.parametrize("changes", [{"position": 2}, {"data": b"abcdefg"}, {"data": b""}])
def test_impossible_piece_of_a_snapshot_is_refused(changes):
    machine = downloading()
    download(machine, **{"position": 0, "data": b"abc", **changes})
    assert machine.of(Violation)
    assert not machine.of(WriteSnapshot)


def test_deleted_snapshot_ends_a_download():
    machine = downloading()
    (send,) = machine.sent(FetchSnapshotRequest)
    leader = KnownLeader(2, machine.epoch, endpoints(2))
    machine.answer(send, FetchSnapshotResponse(ErrorCode.SNAPSHOT_NOT_FOUND, leader))
    assert machine.sent(LogFetchRequest)


@pytest.mark.parametrize(
    ("error", "goes_on"),
    [(ErrorCode.UNKNOWN_SERVER_ERROR, False), (ErrorCode.BROKER_NOT_AVAILABLE, True)],
)
def test_download_goes_on_after_a_lost_connection_but_not_after_a_failure_of_the_leader(
    error, goes_on
):
    """Apache Kafka's leader reports a deleted snapshot as UNKNOWN_SERVER_ERROR."""
    machine = downloading()
    (send,) = machine.sent(FetchSnapshotRequest)
    machine.answer(send, RequestFailure(error))
    assert (machine.core.state.download is not None) == goes_on


def lose_the_leader(machine):
    machine.pass_time(10_000)


def lose_the_snapshot(machine):
    (send,) = machine.sent(FetchSnapshotRequest)
    leader = KnownLeader(2, machine.epoch, endpoints(2))
    machine.answer(send, FetchSnapshotResponse(ErrorCode.SNAPSHOT_NOT_FOUND, leader))


def fail_at_the_leader(machine):
    (send,) = machine.sent(FetchSnapshotRequest)
    machine.answer(send, RequestFailure(ErrorCode.UNKNOWN_SERVER_ERROR))


def get_an_impossible_piece(machine):
    download(machine, position=1, data=b"abc")


ENDS = [lose_the_leader, lose_the_snapshot, fail_at_the_leader, get_an_impossible_piece]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("has_begun", [False, True])
def test_bytes_of_a_download_that_is_given_up_are_deleted(end, has_begun):
    machine = downloading()
    if has_begun:
        download(machine, position=0, data=b"abc")
    end(machine)
    expected = [DiscardSnapshot(LogPoint(5, 40))] if has_begun else []
    assert machine.of(DiscardSnapshot) == expected


def test_log_view_without_records_after_a_snapshot():
    log = LogView(start_offset=8, end_offset=8, snapshots=[(SNAPSHOT, 10)])
    assert log.end == SNAPSHOT
    log.append(batch(8, 6))
    assert log.end == LogPoint(6, 9)
    log.truncate(8)
    assert log.end == SNAPSHOT
