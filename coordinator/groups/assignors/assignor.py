"""The interface of assignors, which decide the member that gets a partition.

An assignor is a function of a group's members and of their topics' partition counts. It yields
after at most `WORK_PER_STEP` elements, so that long work runs in slices.

Source: Kafka's PartitionAssignor, GroupSpec, GroupAssignment; KIP-848.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from wirebroker.base.clock import Steps
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.primitives import uuid_text

# Partitions, members or topics between two yields: about a millisecond in plain Python.
WORK_PER_STEP: Final = 1_000


class SubscribedMember(NamedTuple):
    """A member of a consumer group, as input of an assignor.

    Attributes:
        member_id: Its id.
        instance_id: Its `group.instance.id`; None for a dynamic member.
        topic_ids: The topics that it subscribes to, 16 bytes each. Members with equal
            subscriptions should share one object, which is faster to compare.
        target: Its present target assignment: partitions by topic id.
    """

    member_id: str
    instance_id: str | None
    topic_ids: frozenset[bytes]
    target: Mapping[bytes, frozenset[int]]


# Partitions by topic id, by member id. Each member has an entry; topics without partitions do not.
GroupAssignment = dict[str, dict[bytes, frozenset[int]]]

# Members, and partition counts by topic id, to the new target assignment.
Assignor = Callable[[Sequence[SubscribedMember], Mapping[bytes, int]], Steps[GroupAssignment]]


def partition_count_of(topic_id: bytes, partition_counts: Mapping[bytes, int]) -> int:
    """Return the partition count of a subscribed topic.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR if the topic does not exist, the code for Kafka's
            PartitionAssignorException.
    """
    count = partition_counts.get(topic_id)
    if count is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"cannot assign partitions: a member subscribes to topic id {uuid_text(topic_id)},"
            " which does not exist",
        )
    return count
