"""The work between two yields is bounded for members with many partitions of many topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from wirebroker.codecs.hot import member_assignment, topic_partitions
from wirebroker.codecs.hot.member_assignment import MemberAssignment
from wirebroker.codecs.hot.topic_partitions import TARGET_HEAD
from wirebroker.coordinator.groups.consumer.consumer_member import ConsumerMember, MemberState
from wirebroker.coordinator.groups.consumer.partition_epochs import PartitionEpochs
from wirebroker.coordinator.groups.consumer.prepared_step import assignment_in_steps
from wirebroker.coordinator.groups.consumer.reconciliation import MemberTarget, reconcile_in_steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.base.clock import Steps

TOPICS = 2_000
PARTITIONS = 200
# The work of a step is at most a limit of 1,000 and the topic that exceeds it.
LEAST_YIELDS = TOPICS * (1 + PARTITIONS) // (1_000 + 1 + PARTITIONS)

IDS = [number.to_bytes(16, "big") for number in range(TOPICS)]
TARGET = dict.fromkeys(IDS, frozenset(range(PARTITIONS)))
EPOCHS = dict.fromkeys(IDS, dict.fromkeys(range(PARTITIONS), 1))


def reconciled() -> Steps[Any]:
    member = ConsumerMember("a", state=MemberState.UNRELEASED_PARTITIONS)
    target = MemberTarget(2, TARGET, TARGET, False, None, PartitionEpochs().of_topic)
    return reconcile_in_steps(member, target)


def given_up() -> Steps[Any]:
    member = ConsumerMember("a", state=MemberState.UNRELEASED_PARTITIONS, assigned=EPOCHS)
    target = MemberTarget(2, {}, TARGET, False, None, PartitionEpochs().of_topic)
    return reconcile_in_steps(member, target)


WORK: dict[str, Callable[[], Steps[Any]]] = {
    "a target is encoded": lambda: topic_partitions.encoded_in_steps(TARGET_HEAD, TARGET),
    "a current assignment is encoded": lambda: member_assignment.encoded_in_steps(
        MemberAssignment(2, 1, 0, EPOCHS, {})
    ),
    "partitions are assigned": reconciled,
    "members give up partitions": given_up,
    "a response is made": lambda: assignment_in_steps(ConsumerMember("a", assigned=EPOCHS)),
}


@pytest.mark.parametrize("name", WORK)
def test_the_work_of_a_step_is_bounded(name: str) -> None:
    assert sum(1 for _ in WORK[name]()) >= LEAST_YIELDS
