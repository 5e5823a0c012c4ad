"""Offsets of open transactions: visibility, effect, and replacement."""

import pytest

from tests.support.coordinators.group_kit import Groups
from wirebroker.codecs.coordinator_records import (
    CommittedOffset,
    CoordinatorRecord,
    offset_commit_record,
    offset_key,
    partition_suffix,
)
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups.shard import admin as group_admin
from wirebroker.coordinator.groups.shard import offsets as group_offsets
from wirebroker.coordinator.groups.shard.expiry import sweep_deleted_topics, sweep_expired

WEEK_MS = 7 * 24 * 60 * 60_000


def tombstone(group_id, topic, partition):
    return CoordinatorRecord(offset_key(group_id, topic, partition), None)


class Log:
    """A shard and its log, which includes transactions and markers."""

    def __init__(self):
        self.groups = Groups()
        self.shard = self.groups.shard

    def commit(self, offset, *, producer=None, group="g", topic="t", partition=0):
        committed = CommittedOffset(offset, -1, "", 1_000)
        record = offset_commit_record(group, topic, partition, committed)
        self.shard.replay(*record, *([] if producer is None else [producer]))
        self.shard.check()

    def end(self, producer, *, is_commit=True):
        self.shard.replay_end(producer, is_commit)
        self.shard.check()

    def fetch(self, *, is_stable=False, partition=0):
        topics = [("t", b"", [partition])]
        [topic] = group_offsets.fetch(self.shard, "g", topics, is_stable=is_stable)
        [answer] = topic["partitions"]
        return answer.get("error_code", answer["committed_offset"])


@pytest.fixture
def log():
    return Log()


UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT


def test_offset_is_visible_after_its_transaction_commits(log):
    log.commit(5)
    log.commit(9, producer=1)
    assert (log.fetch(), log.fetch(is_stable=True)) == (5, UNSTABLE)
    log.end(1)
    assert (log.fetch(), log.fetch(is_stable=True)) == (9, 9)


def test_offset_is_dropped_when_its_transaction_aborts(log):
    log.commit(9, producer=1)
    assert (log.fetch(), log.fetch(is_stable=True)) == (-1, UNSTABLE)
    log.end(1, is_commit=False)
    assert (log.fetch(), log.fetch(is_stable=True)) == (-1, -1)
    log.end(1)
    assert log.fetch() == -1


def test_only_partitions_with_pending_offsets_are_unstable(log):
    log.commit(5, partition=1)
    log.commit(9, producer=1)
    assert log.fetch(is_stable=True, partition=1) == 5
    everything = group_offsets.fetch_all(log.shard, "g", is_stable=True)
    assert [partition["partition_index"] for partition in everything[0]["partitions"]] == [1]


def test_fetch_of_all_offsets_marks_unstable_ones(log):
    log.commit(5)
    log.commit(9, producer=1)
    [topic] = group_offsets.fetch_all(log.shard, "g", is_stable=True)
    assert topic["partitions"][0]["error_code"] is UNSTABLE
    assert topic["partitions"][0]["committed_offset"] == -1


def test_detached_offsets_know_what_is_unstable(log):
    log.commit(5)
    log.commit(9, producer=1)
    copy = group_offsets.DetachedOffsets.of(log.shard, "g")
    log.end(1)
    [topic] = group_offsets.fetch(copy, "g", [("t", b"", [0])], is_stable=True)
    assert topic["partitions"][0]["error_code"] is UNSTABLE


def test_a_later_commit_without_transaction_is_not_overtaken_by_the_marker(log):
    log.commit(9, producer=1)
    log.commit(5)
    assert log.fetch(is_stable=True) == UNSTABLE
    log.end(1)
    assert log.fetch(is_stable=True) == 5


def test_of_two_transactions_the_later_record_wins_whichever_ends_first(log):
    log.commit(7, producer=1)
    log.commit(9, producer=2)
    log.end(2)
    assert log.fetch(is_stable=True) == UNSTABLE
    log.end(1)
    assert log.fetch(is_stable=True) == 9


def test_aborted_transaction_changes_no_committed_offset(log):
    log.commit(7, producer=1)
    log.commit(9, producer=2)
    log.end(2, is_commit=False)
    log.end(1)
    assert log.fetch(is_stable=True) == 7


def test_the_last_commit_of_a_transaction_counts(log):
    log.commit(7, producer=1)
    log.commit(8, producer=1)
    log.end(1)
    assert log.fetch() == 8


def test_tombstone_removes_pending_offsets(log):
    log.commit(7, producer=1)
    log.commit(8, producer=1, partition=1)
    log.shard.replay(*tombstone("g", "t", 0))
    log.shard.check()
    log.end(1)
    assert (log.fetch(), log.fetch(partition=1)) == (-1, 8)


def test_deleting_offsets_or_groups_deletes_pending_offsets(log):
    log.commit(7, producer=1)
    outcome = group_offsets.delete(log.shard, "g", [("t", [0, 1])], "token")
    assert outcome.records == [tombstone("g", "t", 0)]
    log.commit(5, partition=3)
    outcome = group_admin.delete_groups(log.shard, ["g"], "token")
    assert set(outcome.records) >= {tombstone("g", "t", 0), tombstone("g", "t", 3)}
    log.groups.carry_out(outcome)
    assert not log.shard.groups
    log.end(1)
    assert log.fetch() == -1


def test_pending_offsets_prevent_expiry(log):
    log.commit(5)
    log.commit(9, producer=1)
    _carry_out(log, sweep_expired(log.shard, 1_000 + WEEK_MS))
    assert log.fetch() == 5
    log.end(1, is_commit=False)
    _carry_out(log, sweep_expired(log.shard, 1_000 + WEEK_MS))
    _carry_out(log, sweep_expired(log.shard, 1_000 + WEEK_MS))
    assert log.fetch() == -1
    assert not log.shard.groups


def test_group_with_only_pending_offsets_is_kept(log):
    log.commit(9, producer=1)
    _carry_out(log, sweep_expired(log.shard, 1_000 + WEEK_MS))
    assert "g" in log.shard.groups


def test_pending_offsets_of_a_deleted_topic_are_removed(log):
    log.commit(9, producer=1)
    log.commit(9, producer=1, topic="other")
    _carry_out(log, sweep_deleted_topics(log.shard, {"t": b"x" * 16}))
    pending = log.shard.offsets.pending
    assert not pending.is_open("g", partition_suffix("t", 0))
    assert pending.is_open("g", partition_suffix("other", 0))


def _carry_out(log, outcomes):
    for outcome in outcomes:
        log.groups.carry_out(outcome)
