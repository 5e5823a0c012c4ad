"""Online migration: groups whose members change their protocol one after another."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.coordinators.consumer_kit import ConsumerGroups, T
from wirebroker.codecs.consumer_protocol import decode_assignment, encode_assignment
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.message import load_message
from wirebroker.coordinator.groups.consumer import member_update
from wirebroker.coordinator.groups.settings import MigrationPolicy

VERSION = 3


def subscription(*topics: str, owned: tuple[int, ...] = (), version: int = VERSION) -> bytes:
    """Return the metadata of a classic consumer that has partitions of `t`."""
    fields: dict[str, Any] = {"topics": list(topics)}
    if owned:
        fields["owned_partitions"] = [{"topic": "t", "partitions": list(owned)}]
    message = load_message("consumer_protocol_subscription")
    return version.to_bytes(2, "big") + message.encode(version, fields)


def known(*topics: str, owned: tuple[int, ...] = ()) -> tuple[tuple[str, bytes], ...]:
    return (("range", subscription(*topics, owned=owned)),)


BOTH = (("roundrobin", subscription("t")), *known("t"))


def classic_pair(groups: ConsumerGroups) -> list[str]:
    """Form a stable classic group of two members with the partitions 0, 1 and 2 of `t`."""
    waiters = [groups.join(known=known("t"), version=3) for _ in range(2)]
    # The initial delay is 0.
    groups.advance(0)
    first, second = (groups.answers[waiter]["member_id"] for waiter in waiters)
    assert groups.group().leader == first
    groups.sync(
        first,
        {
            first: encode_assignment(1, {"t": [0, 1]}),
            second: encode_assignment(1, {"t": [2]}),
        },
    )
    groups.sync(second)
    assert groups.group().state_name == "Stable"
    return [first, second]


def rejoin(groups: ConsumerGroups, member_id: str, *owned: int, **fields: Any) -> dict[str, Any]:
    """Send JoinGroup and SyncGroup of a classic member; return its partitions of `t`."""
    answer = groups.answers[groups.join(member_id, known=known("t", owned=owned), **fields)]
    assert answer.get("error_code", 0) == 0
    waiter = groups.sync(answer["member_id"], generation=answer["generation_id"])
    assigned = decode_assignment(groups.answers[waiter]["assignment"]).assigned_partitions
    partitions = [index for topic in assigned for index in topic.partitions]
    return {"generation": answer["generation_id"], "partitions": partitions, **answer}


def test_a_member_of_the_consumer_protocol_makes_a_classic_group_a_consumer_group():
    groups = ConsumerGroups()
    first, second = classic_pair(groups)
    generation = groups.group().generation
    answer = groups.enter("new", "t")
    assert answer["assignment"] == {"topic_partitions": []}
    group = groups.consumer()
    assert set(group.members) == {first, second, "new"}
    assert group.members[first].assigned == {T: dict.fromkeys((0, 1), generation)}
    assert group.classic_count == 2
    assert group.epoch == generation + 1
    assert groups.reloaded().durable() == groups.durable()


@pytest.mark.parametrize("fields", [{"names": ["t"]}, {"names": None, "regex": "t"}])
def test_no_member_of_an_upgraded_group_is_in_epoch_0(monkeypatch, fields):
    monkeypatch.setattr(member_update, "MOST_AT_ONCE", 0)
    groups = ConsumerGroups(initial_rebalance_delay_ms=3_000)
    # The first rebalance has not ended.
    waiter = groups.join(known=known("t"), version=3)
    assert groups.group().generation == 0
    answer = groups.enter("new", **fields)
    assert answer["member_epoch"] >= 1
    assert groups.error(waiter) is ErrorCode.REBALANCE_IN_PROGRESS
    groups.work()
    member_id = next(iter(set(groups.consumer().members) - {"new"}))
    for _ in range(3):
        rejoin(groups, member_id)
        groups.advance(1_000)
        groups.stay("new")
        groups.work()
    assert groups.consumer().state == "Stable"
    owned = [member.assigned.get(T, {}) for member in groups.consumer().members.values()]
    assert sorted(index for indexes in owned for index in indexes) == [0, 1, 2]
    assert groups.reloaded().durable() == groups.durable()


def test_classic_members_give_up_partitions_for_a_new_member():
    groups = ConsumerGroups(consumer_assignment_interval_ms=0)
    first, second = classic_pair(groups)
    generation = groups.group().generation
    groups.enter("new", "t")
    assert groups.heartbeat(first, generation=generation) is ErrorCode.REBALANCE_IN_PROGRESS
    kept = rejoin(groups, first, 0, 1)
    assert len(kept["partitions"]) == 1
    # It has given the other one up with its next JoinGroup.
    kept = rejoin(groups, first, *kept["partitions"])
    assert kept["generation"] == generation + 1
    others = rejoin(groups, second, 2)
    assert groups.stay("new")["assignment"]["topic_partitions"] != []
    assert groups.consumer().state == "Stable"
    assert groups.heartbeat(second, generation=others["generation"]) is ErrorCode.NONE


def test_group_becomes_classic_when_its_last_consumer_member_leaves():
    groups = ConsumerGroups(consumer_assignment_interval_ms=0)
    first, second = classic_pair(groups)
    groups.enter("new", "t")
    groups.beat("new", -1)
    assert groups.group().state_name == "Stable"
    groups.work()
    assert groups.group().state_name == "PreparingRebalance"
    assert set(groups.group().members) == {first, second}
    assert groups.reloaded().group().state_name == "Stable"
    # Both expect heartbeats again.
    groups.advance(120_000)
    assert groups.group().is_empty


def downgraded() -> tuple[ConsumerGroups, Any]:
    """Return a group after its downgrade, and the JoinGroup response that a member got before."""
    groups = ConsumerGroups(consumer_assignment_interval_ms=0)
    first, _ = classic_pair(groups)
    groups.enter("new", "t")
    told = groups.answers[groups.join(first, known=BOTH)]
    assert told["protocol_name"] == "roundrobin"
    groups.beat("new", -1)
    groups.work()
    return groups, told


def test_members_rejoin_if_a_downgraded_group_has_another_protocol():
    """The response to JoinGroup in a consumer group names the first of the member's protocols."""
    groups, told = downgraded()
    assert groups.group().state_name == "PreparingRebalance"
    assert groups.group().protocol == "range"
    waiter = groups.sync(told["member_id"], generation=told["generation_id"], protocol="roundrobin")
    assert groups.error(waiter) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_downgraded_group_keeps_all_protocols_of_its_members():
    """A member that joined before the downgrade syncs after the next upgrade."""
    groups, told = downgraded()
    first = told["member_id"]
    assert groups.group().members[first].protocols == BOTH
    assert groups.group().supports("consumer", known("t"))
    groups.enter("other", "t")
    assert set(groups.consumer().members) >= {first, "other"}
    waiter = groups.sync(first, generation=told["generation_id"], protocol="roundrobin")
    assert groups.error(waiter) is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    ("protocol", "error"),
    [
        ("range", ErrorCode.REBALANCE_IN_PROGRESS),
        (None, ErrorCode.REBALANCE_IN_PROGRESS),
        ("sticky", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_members_rejoin_if_an_upgraded_group_had_another_protocol(protocol, error):
    """The response to JoinGroup in a classic group names a protocol that all members support."""
    groups = ConsumerGroups()
    waiter, _ = (groups.join(known=protocols, version=3) for protocols in (BOTH, known("t")))
    groups.advance(0)
    told = groups.answers[waiter]
    assert told["protocol_name"] == "range"
    groups.enter("new", "t")
    synced = groups.sync(told["member_id"], generation=told["generation_id"], protocol=protocol)
    assert groups.error(synced) is error


def test_a_returning_static_member_makes_a_group_classic():
    groups = ConsumerGroups(consumer_assignment_interval_ms=0)
    groups.enter("new", "t", instance="one")
    assert groups.consumer().members["new"].assigned == {T: dict.fromkeys((0, 1, 2), 2)}
    groups.beat("new", -2, instance="one")
    waiter = groups.join(instance="one", known=known("t"))
    answer = groups.answers[waiter]
    assert answer.get("error_code", 0) == 0
    group = groups.group()
    assert set(group.members) == {answer["member_id"]}
    assigned = decode_assignment(group.members[answer["member_id"]].assignment)
    assert assigned.assigned_partitions[0].partitions == [0, 1, 2]
    groups.work()
    assert groups.reloaded().durable()[0] == groups.durable()[0]


@pytest.mark.parametrize(
    "policy", [MigrationPolicy.DISABLED, MigrationPolicy.DOWNGRADE], ids=lambda policy: policy.value
)
def test_upgrades_can_be_disabled(policy):
    groups = ConsumerGroups(consumer_migration_policy=policy)
    classic_pair(groups)
    answer = groups.enter("new", "t")
    assert groups.code(answer) is ErrorCode.GROUP_ID_NOT_FOUND
    assert "online upgrade is disabled" in answer["error_message"]
    assert groups.group().state_name == "Stable"


def test_a_classic_member_may_not_join_if_migration_is_disabled():
    groups = ConsumerGroups(consumer_migration_policy=MigrationPolicy.DISABLED)
    groups.enter("new", "t")
    waiter = groups.join(known=known("t"))
    assert groups.error(waiter) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_assignments_of_custom_assignors_are_not_upgraded():
    groups = ConsumerGroups()
    waiter = groups.join(known=known("t"), version=3)
    groups.advance(0)
    member_id = groups.answers[waiter]["member_id"]
    message = load_message("consumer_protocol_assignment")
    assignment = message.encode(1, {"assigned_partitions": [], "user_data": b"mine"})
    groups.sync(member_id, {member_id: (1).to_bytes(2, "big") + assignment})
    answer = groups.enter("new", "t")
    assert groups.code(answer) is ErrorCode.GROUP_ID_NOT_FOUND
    assert "custom assignor" in answer["error_message"]


@pytest.mark.parametrize("metadata", [b"", b"\0", b"\0\1\0", b"\xff\xff\0\0\0\0"])
def test_malformed_subscriptions_are_refused(metadata):
    groups = ConsumerGroups()
    groups.enter("new", "t")
    waiter = groups.join(known=(("range", metadata),), version=3)
    assert groups.error(waiter) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_failed_upgrade_leaves_the_classic_group():
    groups = ConsumerGroups()
    first, _ = classic_pair(groups)
    groups.fails_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert groups.code(groups.enter("new", "t")) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    groups.fails_with = None
    assert groups.heartbeat(first) is ErrorCode.NONE
    assert groups.enter("new", "t")["member_epoch"] >= 1


def test_waiting_members_are_answered_only_if_the_group_is_upgraded():
    groups = ConsumerGroups()
    first, second = classic_pair(groups)
    waiter = groups.join(first, known=known("t", "u"), version=3)
    assert groups.group().state_name == "PreparingRebalance"
    refused = groups.enter("new", regex="[", names=None)
    assert groups.code(refused) is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert waiter not in groups.answers
    groups.enter("new", "t")
    assert groups.error(waiter) is ErrorCode.REBALANCE_IN_PROGRESS
    assert second in groups.consumer().members


def test_a_partition_that_was_assigned_twice_prevents_the_upgrade():
    groups = ConsumerGroups()
    waiters = [groups.join(known=known("t"), version=3) for _ in range(2)]
    groups.advance(0)
    first, second = (groups.answers[waiter]["member_id"] for waiter in waiters)
    assigned = encode_assignment(1, {"t": [1]})
    groups.sync(first, {first: assigned, second: assigned})
    answer = groups.enter("new", "t")
    assert groups.code(answer) is ErrorCode.GROUP_ID_NOT_FOUND
    assert "assigned twice" in answer["error_message"]


def test_a_group_in_its_first_rebalance_is_upgraded_without_members():
    groups = ConsumerGroups(initial_rebalance_delay_ms=3_000)
    waiter = groups.join(known=known("t"), version=4)
    member_id = groups.answers[waiter]["member_id"]
    groups.join(member_id, known=known("t"), version=4)
    groups.leave(member_id)
    assert groups.group().state_name == "PreparingRebalance"
    groups.enter("new", "t")
    assert set(groups.consumer().members) == {"new"}


def test_an_upgraded_group_has_the_same_maximum_size():
    groups = ConsumerGroups(consumer_max_size=2)
    classic_pair(groups)
    assert groups.code(groups.enter("new", "t")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert groups.group().state_name == "Stable"
