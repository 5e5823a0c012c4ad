"""Commits, fetches and deletions of offsets in streams groups."""

from types import SimpleNamespace

import pytest

from tests.support.coordinators.streams_kit import StreamsGroups, internal, subtopology, topology
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.shard.admin import describe, list_groups
from wirebroker.coordinator.groups.shard.expiry import sweep_expired
from wirebroker.coordinator.groups.shard.offsets import delete

WORDS = topology(
    subtopology("0", "t", sinks=["counts"]), subtopology("1", repartition=[internal("counts")])
)
# Member a got tasks in epoch 2, and has 0-0 and 1-0 since; b has the others, in epoch 3.
OK = ErrorCode.NONE
STALE = ErrorCode.STALE_MEMBER_EPOCH
LONG_AFTER_MS = 1 << 50


def shared():
    groups = StreamsGroups(streams={"assignment_interval_ms": 0})
    groups.enter("a", topology=WORDS)
    groups.enter("b", topology=WORDS)
    groups.settle()
    assert groups.streams_group().epoch == 3
    return groups


@pytest.mark.parametrize(
    ("member_id", "epoch", "topic", "partition", "code"),
    [
        ("a", 3, "t", 0, OK),
        ("a", 3, "u", 0, OK),
        ("a", 2, "t", 0, OK),
        ("a", 2, "counts", 0, OK),
        ("a", 1, "t", 0, STALE),
        ("a", 4, "t", 0, STALE),
        ("a", 2, "t", 9, STALE),
        ("a", 2, "u", 0, STALE),
        ("b", 2, "t", 2, STALE),
        ("x", 3, "t", 0, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, "t", 0, ErrorCode.UNKNOWN_MEMBER_ID),
        ("a", -1, "t", 0, STALE),
    ],
)
def test_epochs_of_commits(member_id, epoch, topic, partition, code):
    groups = shared()
    assert groups.active("a")["0"][0] == 0
    answer = groups.commit(member_id, generation=epoch, topic=topic, partition=partition)
    assert answer is code


def test_tasks_that_are_being_given_up_may_be_committed():
    groups = StreamsGroups(streams={"assignment_interval_ms": 0})
    groups.enter("a", topology=WORDS)
    groups.enter("b", topology=WORDS)
    groups.stay("a")
    (given_up,) = groups.streams_member("a").revoking.active["0"]
    groups.enter("c", topology=WORDS)
    assert groups.commit("a", generation=2, topic="t", partition=given_up) is OK


def test_older_version_is_refused():
    groups = shared()
    assert groups.commit("a", generation=3, version=8) is ErrorCode.UNSUPPORTED_VERSION


def test_older_epoch_needs_the_topology():
    groups = shared()
    groups.streams_group().topology = None
    assert groups.commit("a", generation=3) is OK
    assert groups.commit("a", generation=2) is STALE


def test_empty_group_takes_commits_of_administrators():
    groups = shared()
    groups.beat("a", -1)
    groups.beat("b", -1)
    assert groups.commit() is OK
    assert groups.commit("a", generation=0) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("member_id", "epoch", "code"),
    [
        ("a", 3, None),
        ("a", 4, STALE),
        ("x", 3, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, None),
        ("a", -1, STALE),
    ],
)
def test_transactional_commits(member_id, epoch, code):
    body = SimpleNamespace(
        member_id=member_id, generation_id_or_member_epoch=epoch, group_instance_id=None
    )
    partition = SimpleNamespace(partition_index=9)
    request = SimpleNamespace(body=body, version=6, topics=[("t", bytes(16), [partition])])
    group = shared().streams_group()
    if code is None:
        group.check_transactional_commit(request)
        return
    with pytest.raises(KafkaError) as refusal:
        group.check_transactional_commit(request)
    assert refusal.value.code is code


@pytest.mark.parametrize(
    ("member_id", "epoch", "code"),
    [
        (None, -1, None),
        ("a", 3, None),
        ("a", 2, STALE),
        ("x", 3, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, 3, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_fetches_of_members(member_id, epoch, code):
    request = SimpleNamespace(member_id=member_id, member_epoch=epoch)
    group = shared().streams_group()
    if code is None:
        group.check_fetch(request)
        return
    with pytest.raises(KafkaError) as refusal:
        group.check_fetch(request)
    assert refusal.value.code is code


def test_offsets_of_topics_that_are_read_are_not_deleted():
    groups = shared()
    groups.carry_out(delete(groups.shard, "g", [("t", [0]), ("counts", [0]), ("u", [0])], "one"))
    codes = [topic["partitions"][0]["error_code"] for topic in groups.answers["one"]["topics"]]
    used = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert codes == [used, used, OK]
    groups.beat("a", -1)
    groups.beat("b", -1)
    groups.carry_out(delete(groups.shard, "g", [("t", [0])], "two"))
    assert groups.answers["two"]["topics"][0]["partitions"][0]["error_code"] == OK


def test_unused_group_expires_after_its_offsets():
    groups = shared()
    groups.commit("a", generation=3, topic="u")
    groups.commit("a", generation=3)
    groups.beat("a", -1)
    groups.beat("b", -1)
    for outcome in sweep_expired(groups.shard, LONG_AFTER_MS):
        groups.carry_out(outcome)
    assert groups.shard.groups == {}
    assert groups.reloaded().shard.groups == {}


def test_offsets_of_read_topics_do_not_expire():
    groups = shared()
    groups.commit("a", generation=3, topic="u")
    groups.commit("a", generation=3)
    for outcome in sweep_expired(groups.shard, LONG_AFTER_MS):
        groups.carry_out(outcome)
    assert groups.committed("t") == 5
    assert groups.committed("u") is None


def test_group_is_listed_by_its_kind_and_state():
    groups = StreamsGroups()
    groups.enter("a", topology=topology(subtopology("0", "nowhere")))
    (listed,) = list_groups(groups.shard, frozenset(), frozenset({"streams"}))
    assert listed == {
        "group_id": "g",
        "protocol_type": "streams",
        "group_state": "NotReady",
        "group_type": "streams",
    }
    assert list_groups(groups.shard, frozenset({"not_ready"}), frozenset()) == [listed]
    assert list_groups(groups.shard, frozenset({"notready"}), frozenset()) == []
    answer = describe(groups.shard, "g", version=6)
    assert answer["error_message"] == "Group g is not a classic group."
