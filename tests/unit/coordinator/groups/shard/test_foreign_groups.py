"""Groups with unserved protocols: their ids are taken, their records are left unchanged."""

from types import SimpleNamespace

import pytest

from tests.support.coordinators.group_kit import Groups
from wirebroker.base.clock import in_one_go
from wirebroker.codecs.coordinator_records import (
    CommittedOffset,
    CoordinatorRecord,
    group_metadata_record,
    offset_commit_record,
)
from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError
from wirebroker.coordinator.groups.shard.admin import (
    delete_groups,
    describe,
    filter_words,
    list_groups,
)
from wirebroker.coordinator.groups.shard.expiry import sweep_deleted_topics, sweep_expired
from wirebroker.coordinator.groups.shard.offsets import Commit, commit, delete, fetch
from wirebroker.coordinator.groups.shard.txn_offsets import TxnCommit
from wirebroker.coordinator.groups.shard.txn_offsets import commit as txn_commit

ANY = b"\x00\x00whatever"
LONG_AFTER_MS = 1 << 50
GROUP, MEMBER, ASSIGNMENT = 17, 19, 22
SHARE_GROUP, SHARE_MEMBER = 11, 10


def record(kind, *names, value=ANY):
    texts = (len(name).to_bytes(2) + name.encode() for name in names)
    return CoordinatorRecord(kind.to_bytes(2) + b"".join(texts), value)


def offset(group_id="g", topic_id=bytes(16)):
    committed = CommittedOffset(7, -1, "", commit_timestamp_ms=1, topic_id=topic_id)
    return offset_commit_record(group_id, "t", 0, committed)


def listed(groups, *types):
    return [
        (group["group_id"], group["group_type"], group["group_state"])
        for group in list_groups(groups.shard, frozenset(), in_one_go(filter_words(types)))
    ]


def commit_body(generation=-1, member_id=""):
    partition = SimpleNamespace(
        partition_index=0, committed_offset=9, committed_leader_epoch=-1, committed_metadata=""
    )
    body = SimpleNamespace(
        group_id="g",
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=None,
        retention_time_ms=-1,
    )
    return Commit(body, 9, [("t", bytes(16), [partition])])


def test_groups_of_every_kind_are_listed_under_their_types():
    groups = Groups(
        log=[
            record(SHARE_GROUP, "h"),
            record(SHARE_MEMBER, "h", "m"),
            record(GROUP, "s"),
        ]
    )
    assert listed(groups) == [("h", "share", "Stable"), ("s", "streams", "Empty")]
    assert listed(groups, "Share") == [("h", "share", "Stable")]
    assert listed(groups, "classic") == []


def test_member_record_alone_creates_its_group():
    groups = Groups(log=[record(MEMBER, "g", "m"), record(GROUP, "g")])
    assert listed(groups) == [("g", "streams", "Stable")]
    groups.shard.replay(*record(MEMBER, "g", "m", value=None))
    assert listed(groups) == [("g", "streams", "Empty")]
    groups.shard.replay(*record(GROUP, "g", value=None))
    assert listed(groups) == []


@pytest.mark.parametrize("first", [True, False])
def test_commits_belong_to_their_group_in_any_record_order(first):
    log = [offset(), record(GROUP, "g")] if first else [record(GROUP, "g"), offset()]
    groups = Groups(log=log)
    assert listed(groups) == [("g", "streams", "Empty")]
    (topic,) = fetch(groups.shard, "g", [("t", bytes(16), [0])])
    assert topic["partitions"][0]["committed_offset"] == 7


def test_unknown_record_types_are_ignored():
    groups = Groups(log=[record(99, "g"), record(ASSIGNMENT, "g", "m")])
    assert listed(groups) == []


@pytest.mark.parametrize("key", [b"\x00\x03", b"\x00\x03\x00\x05g", b"\x00\x05\x00\x01g\xff\xff"])
def test_a_key_that_cannot_be_read_stops_the_replay(key):
    with pytest.raises(MalformedFrameError):
        Groups().shard.replay(key, ANY)


def test_offsets_of_foreign_group_types_never_expire():
    groups = Groups(log=[record(GROUP, "g"), offset()])
    assert [outcome.records for outcome in sweep_expired(groups.shard, LONG_AFTER_MS)] == []


def test_topic_deletion_removes_only_the_offsets_of_a_foreign_group():
    groups = Groups(log=[record(GROUP, "g"), offset()])
    (outcome,) = sweep_deleted_topics(groups.shard, {"t": bytes(15) + b"\x01"})
    assert outcome.records == [offset()._replace(value=None)]


@pytest.mark.parametrize(
    "log",
    [
        [record(GROUP, "g"), record(MEMBER, "g", "m")],
        [record(GROUP, "g")],
        [record(SHARE_GROUP, "g")],
    ],
)
def test_classic_member_may_not_join_other_group_types(log):
    groups = Groups(log=log)
    answer = groups.answers[groups.join("")]
    assert answer["error_code"] == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert groups.shard.classic("g") is None


def test_classic_group_record_replaces_a_foreign_group():
    classic = group_metadata_record(
        "g", protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=1
    )
    groups = Groups(log=[record(GROUP, "g"), classic])
    assert [group_type for _, group_type, _ in listed(groups)] == ["classic"]
    groups.shard.replay(*record(GROUP, "g", value=None))
    assert [group_type for _, group_type, _ in listed(groups)] == ["classic"]


def test_only_simple_commits_to_an_empty_foreign_group():
    groups = Groups(log=[record(GROUP, "g")])
    groups.carry_out(commit(groups.shard, commit_body(), "one", groups.moment))
    assert groups.shard.offsets.has("g", "t", 0)
    assert listed(groups) == [("g", "streams", "Empty")]
    with pytest.raises(KafkaError, match="UNKNOWN_MEMBER_ID"):
        commit(groups.shard, commit_body(generation=1, member_id="m"), "two", groups.moment)
    groups.shard.replay(*record(MEMBER, "g", "m"))
    with pytest.raises(KafkaError, match="UNKNOWN_MEMBER_ID"):
        commit(groups.shard, commit_body(), "three", groups.moment)


def test_commits_to_a_share_group_are_refused():
    groups = Groups(log=[record(SHARE_GROUP, "g")])
    with pytest.raises(KafkaError, match="GROUP_ID_NOT_FOUND"):
        commit(groups.shard, commit_body(), "one", groups.moment)


def test_foreign_group_is_not_described_as_classic():
    groups = Groups(log=[record(GROUP, "g")])
    answer = describe(groups.shard, "g", version=6)
    assert answer["error_code"] == ErrorCode.GROUP_ID_NOT_FOUND
    assert answer["error_message"] == "Group g is not a classic group."
    assert describe(groups.shard, "g", version=5)["group_state"] == "Dead"


def test_deleting_a_foreign_group_is_refused_with_a_reason():
    groups = Groups(log=[record(GROUP, "g"), record(GROUP, "full"), record(MEMBER, "full", "m")])
    outcome = delete_groups(groups.shard, ["g", "full"], "one")
    assert outcome.records == []
    groups.carry_out(outcome)
    codes = [result["error_code"] for result in groups.answers["one"]["results"]]
    assert codes == [ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.NON_EMPTY_GROUP]


def test_offsets_of_an_empty_foreign_group_may_be_deleted():
    groups = Groups(log=[record(GROUP, "g"), offset()])
    groups.carry_out(delete(groups.shard, "g", [("t", [0])], "one"))
    assert not groups.shard.offsets.has("g", "t", 0)
    groups.shard.replay(*record(MEMBER, "g", "m"))
    with pytest.raises(KafkaError, match="NON_EMPTY_GROUP"):
        delete(groups.shard, "g", [("t", [0])], "two")


def test_offsets_of_a_share_group_are_not_deleted():
    groups = Groups(log=[record(SHARE_GROUP, "g")])
    with pytest.raises(KafkaError, match="GROUP_ID_NOT_FOUND"):
        delete(groups.shard, "g", [("t", [0])], "one")


@pytest.mark.parametrize(
    ("log", "generation", "member_id", "code"),
    [
        ([record(SHARE_GROUP, "g")], -1, "", ErrorCode.GROUP_ID_NOT_FOUND),
        ([record(GROUP, "g")], -1, "", None),
        ([record(GROUP, "g")], 3, "m", ErrorCode.UNKNOWN_MEMBER_ID),
        ([record(MEMBER, "g", "m")], -1, "", None),
        ([record(MEMBER, "g", "m")], -1, "m", ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_transactional_commit_rules_of_foreign_groups(log, generation, member_id, code):
    groups = Groups(log=log)
    body = SimpleNamespace(
        group_id="g",
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=None,
        producer_id=1,
        producer_epoch=0,
    )
    request = TxnCommit(body, 6, [("t", bytes(16), commit_body().topics[0][2])])
    if code is None:
        outcome = txn_commit(groups.shard, request, "token", groups.moment)
        assert len(outcome.records) == 1
    else:
        with pytest.raises(KafkaError) as refusal:
            txn_commit(groups.shard, request, "token", groups.moment)
        assert refusal.value.code is code
