"""AlterShareGroupOffsets, and the partitions of DescribeShareGroupOffsets.

Source: Kafka's GroupMetadataManager.alterShareGroupOffsets, initializedShareGroupPartitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import KafkaError
from wirebroker.coordinator.groups.share.error_texts import error_fields
from wirebroker.coordinator.groups.share.share_group import ShareGroup
from wirebroker.coordinator.groups.share.share_joining import find_or_create
from wirebroker.coordinator.groups.share.share_records import topics_record
from wirebroker.coordinator.groups.share.share_topics import ShareTopics, named
from wirebroker.coordinator.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.outcome import Moment, Token

# Keys of the operations' responses, for the handlers: the epoch of the share state; partitions by
# topic id.
STATE_EPOCH: Final = "state_epoch"
PARTITIONS: Final = "partitions"


def alter(
    shard: ServingShard,
    group_id: str,
    partitions: Mapping[bytes, Collection[int]],
    token: Token,
    now: Moment,
) -> Outcome:
    """Begin to set start offsets of a group without members, which may be new.

    A group of another kind or with members is refused; the error is in the response.

    Args:
        shard: The group's shard.
        group_id: Id of the group.
        partitions: The partitions by topic id. As in Kafka, a topic without partitions makes the
            group, too.
        token: Gets the response.
        now: The time.
    """
    outcome = Outcome()
    try:
        group = find_or_create(shard, group_id, creates=True)
        group.check_delete()
    except KafkaError as error:
        outcome.answer(token, error_fields(error))
        return outcome
    if partitions:
        for topic_id in partitions:
            group.initializing_since_ms[topic_id] = now.wall_ms
        altered = named(partitions, shard.image)
        topics = (group.topics or ShareTopics()).with_initializing(altered)
        outcome.records.append(topics_record(group_id, topics, shard.image))
    outcome.answer(token, {STATE_EPOCH: group.epoch})
    return outcome


def initialized_partitions(
    shard: ServingShard, group_id: str, token: Token, now: Moment
) -> Outcome:
    """Return the partitions with share state; a group that does not exist has none."""
    del now
    group = shard.groups.get(group_id)
    outcome = Outcome()
    partitions: dict[bytes, frozenset[int]] = {}
    if isinstance(group, ShareGroup) and group.topics is not None:
        for topic_id, topic in group.topics.initialized.items():
            partitions[topic_id] = topic.partitions
    outcome.answer(token, {PARTITIONS: partitions})
    return outcome
