"""The end of share state: of groups, of a group's topics, and of topics that are deleted.

    DeleteGroups               begin_group_deletion, then the persister, then the group's tombstones
    DeleteShareGroupOffsets    begin_topic_deletion, then the persister, then finish_topic_deletion
    a topic is deleted         sweep_deleted_topics; the share coordinator deletes the state itself

Topics are `deleting` from the start of the deletion until the persister has succeeded, so that a
repeated request deletes the rest.

Source: Kafka's GroupCoordinatorShard.sharePartitionDeleteRequests, initiateDeleteShareGroupOffsets,
completeDeleteShareGroupOffsets, maybeCleanupShareGroupState.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import KafkaError
from wirebroker.coordinator.groups.share.error_texts import error_fields
from wirebroker.coordinator.groups.share.share_group import ShareGroup
from wirebroker.coordinator.groups.share.share_joining import existing_group
from wirebroker.coordinator.groups.share.share_records import topics_record
from wirebroker.coordinator.groups.share.share_topics import ShareTopics, merged
from wirebroker.coordinator.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.outcome import Moment, Token

# Keys of the operations' responses, for the handlers: the partitions whose state the persister has
# to delete, by topic id; the topics without share state; whether the group ever had some.
STATE: Final = "state"
ABSENT: Final = "absent"
HAS_TOPICS: Final = "has_topics"


def begin_group_deletion(shard: ServingShard, group_id: str, token: Token, now: Moment) -> Outcome:
    """Begin to delete all share state of a group; a group of another kind has none.

    Raises:
        KafkaError: NON_EMPTY_GROUP.
    """
    del now
    outcome = Outcome()
    group = shard.groups.get(group_id)
    if not isinstance(group, ShareGroup):
        outcome.answer(token, {STATE: {}})
        return outcome
    group.check_delete()
    state: dict[bytes, Collection[int]] = {}
    if group.topics is not None:
        deleted = _all_partitions(group.topics, shard.image)
        topics = ShareTopics(deleting=frozenset(deleted))
        outcome.records.append(topics_record(group_id, topics, shard.image))
        state.update(deleted)
    outcome.answer(token, {STATE: state})
    return outcome


def _all_partitions(topics: ShareTopics, image: ClusterImage) -> dict[bytes, frozenset[int]]:
    """Return all partitions that have or may have share state."""
    known = merged(topics.initialized, topics.initializing)
    partitions = {topic_id: topic.partitions for topic_id, topic in known.items()}
    for topic_id in topics.deleting:
        topic = image.topics_by_id.get(topic_id)
        if topic is not None:
            partitions[topic_id] = frozenset(topic.partitions) | partitions.get(
                topic_id, frozenset()
            )
    return partitions


def begin_topic_deletion(
    shard: ServingShard, group_id: str, topic_ids: Collection[bytes], token: Token, now: Moment
) -> Outcome:
    """Begin to delete the share state of existing topics of a group without members.

    A group of another kind or with members is refused; the error is in the response.
    """
    del now
    outcome = Outcome()
    try:
        group = existing_group(shard, group_id)
        group.check_delete()
    except KafkaError as error:
        outcome.answer(token, error_fields(error))
        return outcome
    state: dict[bytes, Collection[int]] = {}
    absent: list[bytes] = []
    outcome.answer(token, {STATE: state, ABSENT: absent, HAS_TOPICS: group.topics is not None})
    if group.topics is None:
        return outcome
    for topic_id in topic_ids:
        if topic_id in group.topics.initialized:
            state[topic_id] = group.topics.initialized[topic_id].partitions
        elif topic_id in group.topics.deleting and topic_id in shard.image.topics_by_id:
            state[topic_id] = range(len(shard.image.topics_by_id[topic_id].partitions))
        else:
            absent.append(topic_id)
    topics = group.topics.with_deleting(state)
    outcome.records.append(topics_record(group_id, topics, shard.image))
    return outcome


def finish_topic_deletion(
    shard: ServingShard, group_id: str, topic_ids: Collection[bytes], token: Token, now: Moment
) -> Outcome:
    """Note that the persister has deleted the state of topics."""
    del now
    outcome = Outcome()
    group = shard.groups.get(group_id)
    if isinstance(group, ShareGroup) and group.topics is not None:
        topics = group.topics.without_deleting(topic_ids)
        outcome.records.append(topics_record(group_id, topics, shard.image))
    outcome.answer(token, {})
    return outcome


def sweep_deleted_topics(shard: ServingShard, deleted: Mapping[str, bytes]) -> Iterator[Outcome]:
    """Forget topics that no longer exist, in steps; `deleted` maps names to ids."""
    topic_ids = frozenset(deleted.values())
    for group_id, group in list(shard.groups.items()):
        if not isinstance(group, ShareGroup) or shard.groups.get(group_id) is not group:
            continue
        if group.topics is None or topic_ids.isdisjoint(group.topics.all_ids):
            continue
        topics = group.topics.without_topics(topic_ids)
        yield Outcome([topics_record(group_id, topics, shard.image)])
