"""Commits and fetches of offsets by members of consumer groups."""

from types import SimpleNamespace

import pytest

from tests.support.coordinators.consumer_kit import ConsumerGroups, T
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.shard.expiry import sweep_expired
from wirebroker.coordinator.groups.shard.offsets import delete
from wirebroker.coordinator.groups.shard.txn_offsets import TxnCommit
from wirebroker.coordinator.groups.shard.txn_offsets import commit as txn_commit

NONE, STALE, UNKNOWN = ErrorCode.NONE, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID
LONG_AFTER_MS = 1 << 50


def reassigned():
    """Return a group whose member `a` is in epoch 4; it has t-0 since epoch 2, and t-1 since 4.

    It has t-2 until it has given it up.
    """
    groups = ConsumerGroups()
    groups.enter("a", "t")
    groups.advance(1_000)
    groups.enter("b", "t")
    groups.settle()
    (taken,) = groups.consumer_member("b").assigned[T]
    groups.beat("b", -1)
    groups.advance(1_000)
    groups.stay("a")
    return groups, taken


@pytest.mark.parametrize(
    ("epoch", "is_new_partition", "error"),
    [
        (4, False, NONE),
        (4, True, NONE),
        (3, False, NONE),
        (2, False, NONE),
        (1, False, STALE),
        # It has that partition since epoch 4.
        (3, True, STALE),
        (5, False, STALE),
        (-1, False, STALE),
    ],
)
def test_a_commit_may_be_as_old_as_the_assignment(epoch, is_new_partition, error):
    groups, taken = reassigned()
    assert groups.consumer_member("a").epoch == 4
    partition = taken if is_new_partition else (taken + 1) % 3
    code = groups.commit("a", generation=epoch, topic_id=T, partition=partition, offset=8)
    assert code is error
    assert groups.committed(partition=partition) == (8 if error is NONE else None)


def test_partitions_that_a_member_gives_up_may_be_committed():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    groups.grow_topic("t", 4)
    groups.advance(1_000)
    groups.stay("a")
    assert groups.consumer_member("a").epoch == 3
    groups.advance(1_000)
    groups.enter("b", "t")
    groups.stay("a")
    (partition, *_) = groups.consumer_member("a").revoking[T]
    assert groups.commit("a", generation=2, topic_id=T, partition=partition) is NONE
    groups.stay("a")
    groups.stay("b")
    assert groups.commit("a", generation=3, topic_id=T, partition=partition) is STALE


@pytest.mark.parametrize("member_id", ["", "x"])
@pytest.mark.parametrize("epoch", [-1, 2])
def test_strangers_may_not_commit(member_id, epoch):
    groups = ConsumerGroups()
    groups.enter("a", "t")
    assert groups.commit(member_id, generation=epoch, topic_id=T) is UNKNOWN


def test_administrators_commit_for_an_empty_group():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    groups.beat("a", -1)
    assert groups.commit(topic_id=T) is NONE
    assert groups.commit("a", generation=2, topic_id=T) is UNKNOWN


def test_members_need_a_version_that_knows_their_epochs():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    assert groups.commit("a", generation=2, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert groups.commit("a", generation=2, version=9) is NONE


def test_commits_do_not_extend_the_session():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    groups.advance(44_999)
    assert groups.commit("a", generation=2, topic_id=T) is NONE
    groups.advance(1)
    assert groups.consumer().members == {}


@pytest.mark.parametrize(
    ("member_id", "instance", "epoch", "version", "error"),
    [
        ("a", None, 2, 6, None),
        ("a", None, 3, 6, STALE),
        ("a", None, 3, 5, ErrorCode.ILLEGAL_GENERATION),
        # A producer without a member.
        ("", None, -1, 6, None),
        ("", "i", -1, 6, UNKNOWN),
        ("x", None, 2, 6, UNKNOWN),
    ],
)
def test_transactional_commits(member_id, instance, epoch, version, error):
    groups = ConsumerGroups()
    groups.enter("a", "t")
    body = SimpleNamespace(
        group_id="g",
        generation_id_or_member_epoch=epoch,
        member_id=member_id,
        group_instance_id=instance,
        producer_id=1,
        producer_epoch=0,
    )
    partition = SimpleNamespace(
        partition_index=0, committed_offset=9, committed_leader_epoch=-1, committed_metadata=""
    )
    request = TxnCommit(body, version, [("missing", bytes(16), [partition])])
    if error is None:
        assert len(txn_commit(groups.shard, request, "token", groups.moment).records) == 1
        return
    with pytest.raises(KafkaError) as refusal:
        txn_commit(groups.shard, request, "token", groups.moment)
    assert refusal.value.code is error


@pytest.mark.parametrize(
    ("member_id", "epoch", "error"),
    [
        (None, -1, None),
        ("a", 2, None),
        ("a", 1, STALE),
        ("a", 3, STALE),
        ("a", -1, STALE),
        ("x", 2, UNKNOWN),
        (None, 2, UNKNOWN),
    ],
)
def test_fetches_name_the_epoch_of_the_member(member_id, epoch, error):
    groups = ConsumerGroups()
    groups.enter("a", "t")
    request = SimpleNamespace(member_id=member_id, member_epoch=epoch)
    if error is None:
        groups.consumer().check_fetch(request)
        return
    with pytest.raises(KafkaError) as refusal:
        groups.consumer().check_fetch(request)
    assert refusal.value.code is error


def test_offsets_of_subscribed_topics_are_not_deleted():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    for topic in ("t", "other"):
        groups.commit("a", generation=2, topic=topic, topic_id=T)
    groups.carry_out(delete(groups.shard, "g", [("t", [0]), ("other", [0])], "one"))
    codes = {
        topic["name"]: topic["partitions"][0]["error_code"]
        for topic in groups.answers["one"]["topics"]
    }
    assert codes == {"t": ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, "other": NONE}


def test_offsets_of_topics_without_subscribers_expire_and_then_the_group():
    groups = ConsumerGroups()
    groups.enter("a", "t")
    for topic in ("t", "other"):
        groups.commit("a", generation=2, topic=topic, topic_id=T)
    for outcome in sweep_expired(groups.shard, LONG_AFTER_MS):
        groups.carry_out(outcome)
    assert groups.committed("other") is None
    assert groups.committed("t") == 5
    groups.beat("a", -1)
    for outcome in sweep_expired(groups.shard, LONG_AFTER_MS):
        groups.carry_out(outcome)
    assert groups.shard.groups == {}
    assert groups.reloaded().shard.groups == {}
