"""A member's next step towards its target assignment."""

from types import SimpleNamespace

import pytest

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.consumer.consumer_member import ConsumerMember, MemberState
from wirebroker.coordinator.groups.consumer.reconciliation import MemberTarget, reconcile

T, U = b"t" * 16, b"u" * 16
STABLE, UNREVOKED, UNRELEASED = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
)


def member(state, epoch, assigned=None, revoking=None):
    """Return a member; its partitions were assigned in epoch 1."""
    return ConsumerMember(
        "m",
        epoch,
        previous_epoch=epoch - 1,
        state=state,
        assigned=epochs(assigned, 1),
        revoking=epochs(revoking, 1),
    )


def epochs(partitions, epoch):
    return {topic: dict.fromkeys(indexes, epoch) for topic, indexes in (partitions or {}).items()}


def target(epoch, partitions, *, owned=None, taken=(), topics=(T, U), changed=False):
    """Return a target; `taken` are the partitions that others have."""
    return MemberTarget(
        epoch,
        {topic: frozenset(indexes) for topic, indexes in partitions.items()},
        frozenset(topics),
        changed,
        None
        if owned is None
        else [SimpleNamespace(topic_id=t, partitions=list(found)) for t, found in owned.items()],
        lambda topic: {index: 7 for other, index in taken if other == topic},
    )


def shape(result):
    """Return state, epochs, and partitions without their epochs."""
    return (
        result.state,
        (result.epoch, result.previous_epoch),
        {topic: set(found) for topic, found in result.assigned.items()},
        {topic: set(found) for topic, found in result.revoking.items()},
    )


CASES = {
    "a new member gets free partitions": (
        member(STABLE, 0),
        target(5, {T: [0, 1]}, owned={}),
        (STABLE, (5, 0), {T: {0, 1}}, {}),
    ),
    "a new member waits for taken partitions": (
        member(STABLE, 0),
        target(5, {T: [0, 1]}, owned={}, taken=[(T, 1)]),
        (UNRELEASED, (5, 0), {T: {0}}, {}),
    ),
    "a new member that gets nothing yet": (
        member(STABLE, 0),
        target(5, {T: [0]}, owned={}, taken=[(T, 0)]),
        (UNRELEASED, (5, 0), {}, {}),
    ),
    "a member without a target": (
        member(STABLE, 0),
        target(5, {}, owned={}),
        (STABLE, (5, 0), {}, {}),
    ),
    "a stable member follows an equal target": (
        member(STABLE, 4, {T: [0]}),
        target(5, {T: [0]}),
        (STABLE, (5, 4), {T: {0}}, {}),
    ),
    "a silent member has everything": (
        member(STABLE, 4, {T: [0, 1]}),
        target(5, {T: [0]}),
        (UNREVOKED, (4, 4), {T: {0}}, {T: {1}}),
    ),
    "a member has to give up what it owns": (
        member(STABLE, 4, {T: [0, 1]}),
        target(5, {T: [0]}, owned={T: [0, 1]}),
        (UNREVOKED, (4, 4), {T: {0}}, {T: {1}}),
    ),
    "it gets nothing new before": (
        member(STABLE, 4, {T: [0]}),
        target(5, {U: [0]}, owned={T: [0]}),
        (UNREVOKED, (4, 4), {}, {T: {0}}),
    ),
    "it gives up what it does not own immediately": (
        member(STABLE, 4, {T: [0, 1]}),
        target(5, {T: [0], U: [0]}, owned={T: [0]}),
        (STABLE, (5, 4), {T: {0}, U: {0}}, {}),
    ),
    "an unknown topic in the report does not matter": (
        member(STABLE, 4, {T: [0, 1]}),
        target(5, {T: [0]}, owned={U: [1], T: [0]}),
        (STABLE, (5, 4), {T: {0}}, {}),
    ),
    "it has given up its partitions": (
        member(UNREVOKED, 4, {T: [0]}, {T: [1]}),
        target(5, {T: [0]}, owned={T: [0]}),
        (STABLE, (5, 4), {T: {0}}, {}),
    ),
    "it has given up its partitions, and waits": (
        member(UNREVOKED, 4, {T: [0]}, {T: [1]}),
        target(5, {T: [0, 2]}, owned={T: [0]}, taken=[(T, 2)]),
        (UNRELEASED, (5, 4), {T: {0}}, {}),
    ),
    "it has to give up more": (
        member(UNREVOKED, 4, {T: [0]}, {T: [1]}),
        target(6, {}, owned={T: [0]}),
        (UNREVOKED, (4, 4), {}, {T: {0}}),
    ),
    "a partition that it gives up comes back": (
        member(UNREVOKED, 4, {T: [0]}, {T: [1]}),
        target(6, {T: [0, 1]}, owned={T: [0]}, taken=[(T, 1)]),
        (STABLE, (6, 4), {T: {0, 1}}, {}),
    ),
    "it waits no longer": (
        member(UNRELEASED, 5, {T: [0]}),
        target(5, {T: [0, 1]}),
        (STABLE, (5, 5), {T: {0, 1}}, {}),
    ),
    "it gets one of two": (
        member(UNRELEASED, 5, {T: [0]}),
        target(5, {T: [0, 1, 2]}, taken=[(T, 2)]),
        (UNRELEASED, (5, 5), {T: {0, 1}}, {}),
    ),
    "it waits in a newer epoch, and has to give up partitions": (
        member(UNRELEASED, 5, {T: [0]}),
        target(6, {T: [1]}, owned={T: [0]}, taken=[(T, 1)]),
        (UNREVOKED, (5, 5), {}, {T: {0}}),
    ),
    "topics that it left are not in its way": (
        member(STABLE, 4, {T: [0]}),
        target(5, {T: [0], U: [0]}, owned={T: [0]}, topics=[T]),
        (STABLE, (5, 4), {T: {0}}, {}),
    ),
    "a stable member leaves a topic": (
        member(STABLE, 5, {T: [0], U: [0]}),
        target(5, {T: [0], U: [0]}, owned={T: [0], U: [0]}, topics=[T], changed=True),
        (UNREVOKED, (5, 5), {T: {0}}, {U: {0}}),
    ),
    "a stable member has left a topic": (
        member(STABLE, 5, {T: [0], U: [0]}),
        target(5, {T: [0], U: [0]}, owned={T: [0]}, topics=[T], changed=True),
        (STABLE, (5, 5), {T: {0}}, {}),
    ),
    "a member that gives up partitions leaves a topic": (
        member(UNREVOKED, 4, {T: [0], U: [0]}, {U: [1]}),
        target(5, {T: [0]}, owned={U: [1]}, topics=[T], changed=True),
        (UNREVOKED, (4, 4), {T: {0}}, {U: {0, 1}}),
    ),
    "a member of an unknown state joins again": (
        member(MemberState.UNKNOWN, 4, {T: [0]}),
        target(5, {T: [1]}, owned={}),
        (STABLE, (5, 4), {T: {1}}, {}),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_step(name):
    before, wanted, expected = CASES[name]
    assert shape(reconcile(before, wanted)) == expected


@pytest.mark.parametrize(
    ("before", "wanted"),
    [
        (member(STABLE, 5, {T: [0]}), target(5, {T: [0, 1]})),
        (member(STABLE, 5, {T: [0]}), target(5, {T: [0]}, changed=True)),
        (member(UNREVOKED, 4, {}, {T: [1]}), target(5, {T: [0]})),
        (member(UNREVOKED, 4, {}, {T: [1]}), target(5, {T: [0]}, owned={T: [1]})),
        (member(UNREVOKED, 4, {T: [0]}, {T: [1]}), target(5, {}, owned={T: [1]}, changed=True)),
    ],
)
def test_nothing_changes(before, wanted):
    assert reconcile(before, wanted) is before


def test_partitions_keep_the_epoch_in_which_they_were_assigned():
    result = reconcile(member(STABLE, 4, {T: [0]}), target(5, {T: [0, 1]}))
    assert result.assigned == {T: {0: 1, 1: 5}}
    result = reconcile(member(STABLE, 4, {T: [0, 1]}), target(5, {T: [0]}))
    assert (result.assigned, result.revoking) == ({T: {0: 1}}, {T: {1: 1}})


@pytest.mark.parametrize("owned", [None, {T: [0]}])
def test_a_member_of_an_unknown_state_has_to_join_again(owned):
    with pytest.raises(KafkaError) as refusal:
        reconcile(member(MemberState.UNKNOWN, 4, {T: [0]}), target(5, {}, owned=owned))
    assert refusal.value.code is ErrorCode.FENCED_MEMBER_EPOCH
