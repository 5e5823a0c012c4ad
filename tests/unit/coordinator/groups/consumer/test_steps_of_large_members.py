"""The work between two yields is bounded for members with many partitions of many topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from wirebroker.codecs.hot import member_assignment, topic_partitions
from wirebroker.codecs.hot.member_assignment import MemberAssignment
from wirebroker.codecs.hot.topic_partitions import TARGET_HEAD
from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
from wirebroker.coordinator.groups.consumer import consumer_describe
from wirebroker.coordinator.groups.consumer.consumer_member import ConsumerMember, MemberState
from wirebroker.coordinator.groups.consumer.consumer_records import regex_record_in_steps
from wirebroker.coordinator.groups.consumer.heartbeat_request import requested_names
from wirebroker.coordinator.groups.consumer.partition_epochs import PartitionEpochs
from wirebroker.coordinator.groups.consumer.reconciliation import MemberTarget, reconcile_in_steps
from wirebroker.coordinator.groups.consumer.subscriptions import ResolvedRegex
from wirebroker.coordinator.groups.described_topics import assigned_in_steps, described_in_steps
from wirebroker.coordinator.groups.share import share_records
from wirebroker.coordinator.groups.share.share_member import ShareGroupMember
from wirebroker.coordinator.groups.streams.task_offsets import offsets_in_steps
from wirebroker.coordinator.groups.streams.tasks import task_ids_in_steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.base.clock import Steps

TOPICS = 2_000
PARTITIONS = 200
# The work of a step is at most a limit of 1,000 and the topic that exceeds it.
LEAST_YIELDS = TOPICS * (1 + PARTITIONS) // (1_000 + 1 + PARTITIONS)

EMPTY_IMAGE = ClusterImage()
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
    "a response is made": lambda: assigned_in_steps(EPOCHS),
    "a share group's current assignment is encoded": lambda: share_records.current_record_in_steps(
        "g", ShareGroupMember("a", assigned=TARGET)
    ),
    "a response of a share group is made": lambda: assigned_in_steps(TARGET),
    "partitions are described": lambda: described_in_steps(TARGET, EMPTY_IMAGE),
    "current partitions are described": lambda: consumer_describe._current(
        ConsumerMember("a", assigned=EPOCHS)
    ),
    "tasks are described": lambda: task_ids_in_steps(
        {str(number): range(PARTITIONS) for number in range(TOPICS)}
    ),
}


@pytest.mark.parametrize("name", WORK)
def test_the_work_of_a_step_is_bounded(name: str) -> None:
    assert sum(1 for _ in WORK[name]()) >= LEAST_YIELDS


NAMES = [f"t{number}" for number in range(20_000)]
WORK_ON_NAMES: dict[str, Callable[[], Steps[Any]]] = {
    "names of a request": lambda: requested_names(NAMES),
    "topics of a regular expression": lambda: regex_record_in_steps(
        "g", "t.*", ResolvedRegex(frozenset(NAMES), 1, 1)
    ),
}


@pytest.mark.parametrize("name", WORK_ON_NAMES)
def test_names_are_sorted_in_steps(name: str) -> None:
    # In runs, which are merged, of 1,000 names.
    assert sum(1 for _ in WORK_ON_NAMES[name]()) >= 2 * len(NAMES) // 1_000


def test_offsets_are_described_in_steps() -> None:
    offsets = {"0": dict.fromkeys(range(20_000), 1)}
    assert sum(1 for _ in offsets_in_steps(offsets)) >= 20
