"""TxnOffsetCommit: permitted members, and records within the producer's transaction."""

from types import SimpleNamespace

import pytest

from tests.support.coordinators.group_kit import Groups
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.shard.txn_offsets import TxnCommit, commit
from wirebroker.coordinator.outcome import ProducerEpoch

TOPIC_ID = bytes(range(16))


def asked(member_id="", generation=-1, instance=None, *, group="g", metadata="", version=5):
    body = SimpleNamespace(
        group_id=group,
        producer_id=1,
        producer_epoch=2,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance,
    )
    partition = SimpleNamespace(
        partition_index=0,
        committed_offset=5,
        committed_leader_epoch=-1,
        committed_metadata=metadata,
    )
    return TxnCommit(body, version, [("t", TOPIC_ID, [partition])])


def refusal(groups, request):
    with pytest.raises(KafkaError) as raised:
        commit(groups.shard, request, "token", groups.moment)
    return raised.value.code


def answers(outcome):
    [(_, response)] = outcome.answers
    [topic] = response["topics"]
    return [partition["error_code"] for partition in topic["partitions"]]


def test_records_belong_to_the_producers_transaction():
    groups = Groups()
    outcome = commit(groups.shard, asked(), "token", groups.moment)
    assert outcome.producer == ProducerEpoch(1, 2)
    [(_, value)] = outcome.records
    assert value is not None
    assert TOPIC_ID in value
    assert answers(outcome) == [ErrorCode.NONE]


def test_a_group_that_does_not_exist_has_no_generation():
    assert refusal(Groups(), asked("m", 1)) is ErrorCode.ILLEGAL_GENERATION
    assert refusal(Groups(), asked("m", 1, version=6)) is ErrorCode.GROUP_ID_NOT_FOUND


def test_metadata_that_is_too_long_is_refused_for_its_partition():
    groups = Groups()
    outcome = commit(groups.shard, asked(metadata="x" * 4_097), "token", groups.moment)
    assert answers(outcome) == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert not outcome.records
    assert refusal(groups, asked("", 1)) is ErrorCode.UNKNOWN_MEMBER_ID  # the group exists now


@pytest.fixture
def stable():
    groups = Groups()
    token = groups.join(instance="i")
    groups.advance(0)
    member_id = groups.answers[token]["member_id"]
    groups.sync(member_id, {member_id: b"all"}, instance="i")
    assert groups.group().state == "Stable"
    return groups, member_id


def test_a_member_commits_in_its_generation(stable):
    groups, member_id = stable
    generation = groups.shard.groups["g"].generation
    assert answers(commit(groups.shard, asked(member_id, generation, "i"), "t", groups.moment)) == [
        ErrorCode.NONE
    ]
    assert refusal(groups, asked(member_id, generation + 1, "i")) is ErrorCode.ILLEGAL_GENERATION
    assert refusal(groups, asked("nobody", generation)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal(groups, asked("nobody", generation, "i")) is ErrorCode.FENCED_INSTANCE_ID
    assert refusal(groups, asked("", generation)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_transactional_commit_without_member_id_is_accepted(stable):
    groups, _ = stable
    assert answers(commit(groups.shard, asked(), "token", groups.moment)) == [ErrorCode.NONE]


def test_transactional_commit_is_accepted_during_a_rebalance(stable):
    groups, member_id = stable
    generation = groups.shard.groups["g"].generation
    groups.join()
    groups.join(known=(("range", b"other"),))
    outcome = commit(groups.shard, asked(member_id, generation, "i"), "token", groups.moment)
    assert answers(outcome) == [ErrorCode.NONE]
