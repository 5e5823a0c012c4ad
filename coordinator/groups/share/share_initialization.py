"""The share state of newly subscribed partitions: when it is due, and the result.

    heartbeat     the partitions become initializing (a record), then the persister is asked
    initialized   the persister has created the state: the partitions may be assigned
    failed        the persister has failed: a later heartbeat asks again

If no result arrives, as after a crash, a heartbeat asks again after
`group.share.initialize.retry.interval.ms`.

Source: Kafka's GroupMetadataManager.maybeCreateInitializeShareGroupStateRequest,
initializeShareGroupState, uninitializeShareGroupState.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.coordinator.groups.share.share_group import ShareGroup
from wirebroker.coordinator.groups.share.share_records import topics_record
from wirebroker.coordinator.groups.share.share_topics import NamedPartitions, ShareTopics, named
from wirebroker.coordinator.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.groups.share.share_topics import TopicPartitions
    from wirebroker.coordinator.outcome import Moment, Token

# The share partition decides where it begins, by share.auto.offset.reset.
_UNDECIDED: Final = -1
# New partitions of a known topic are read from their beginning.
_BEGINNING: Final = 0
# Partitions of a group that can have share state; one record has all of them: 15 ms.
MOST_PARTITIONS: Final = 100_000
_NO_PARTITIONS: Final = NamedPartitions("", frozenset())


class InitializeShareState(NamedTuple):
    """Effect: have the persister create the state of partitions.

    Attributes:
        state_epoch: The group epoch.
        topics: Partitions and start offset by topic id.
    """

    group_id: str
    state_epoch: int
    topics: Mapping[bytes, tuple[frozenset[int], int]]


def begin(
    shard: ServingShard, group: ShareGroup, names: Iterable[str], epoch: int, now: Moment
) -> Outcome:
    """Return the record and the effect for partitions of subscribed topics without share state."""
    if group.complete_topics is shard.image.topics and names is group.topic_names:
        return Outcome()
    topics = group.topics or ShareTopics()
    due = _due(shard, group, names, now.wall_ms)
    if not due:
        if not topics.initializing and names is group.topic_names:
            group.complete_topics = shard.image.topics
        return Outcome()
    for topic_id in due:
        group.initializing_since_ms[topic_id] = now.wall_ms
    known = topics.known
    effect = InitializeShareState(
        group.group_id,
        epoch,
        {
            topic_id: (
                topic.partitions,
                _BEGINNING if topic_id in known else _UNDECIDED,
            )
            for topic_id, topic in due.items()
        },
    )
    record = topics_record(group.group_id, topics.with_initializing(due), shard.image)
    return Outcome([record], effects=[effect])


def _due(
    shard: ServingShard, group: ShareGroup, names: Iterable[str], wall_ms: int
) -> TopicPartitions:
    """Return the partitions that are to be initialized, up to MOST_PARTITIONS of the group."""
    topics = group.topics or ShareTopics()
    due: dict[bytes, NamedPartitions] = {}
    room = MOST_PARTITIONS - topics.partition_count
    # By partition count, since most topics have the same.
    complete: dict[int, frozenset[int]] = {}
    for name in names:
        topic = shard.image.topics.get(name)
        if topic is None:
            continue
        topic_id, count = topic.topic_id, len(topic.partitions)
        known = topics.initialized.get(topic_id, _NO_PARTITIONS).partitions
        if len(known) >= count:
            continue
        initializing = topics.initializing.get(topic_id, _NO_PARTITIONS).partitions
        if initializing and _is_waiting(shard, group, topic_id, wall_ms):
            known |= initializing
            if len(known) >= count:
                continue
        missing = complete.get(count)
        if missing is None:
            missing = complete[count] = frozenset(range(count))
        if known:
            missing -= known
        room -= len(missing - initializing) if initializing else len(missing)
        if room < 0:
            break
        due[topic_id] = NamedPartitions(name, missing)
    return due


def _is_waiting(shard: ServingShard, group: ShareGroup, topic_id: bytes, wall_ms: int) -> bool:
    """Return whether a result may still arrive; time counts from when the topic was first seen."""
    since_ms = group.initializing_since_ms.setdefault(topic_id, wall_ms)
    # Wall time may jump back.
    return abs(wall_ms - since_ms) < shard.settings.share_initialize_retry_interval_ms


def initialized(
    shard: ServingShard,
    group_id: str,
    partitions: Mapping[bytes, Collection[int]],
    token: Token,
    now: Moment,
) -> Outcome:
    """Note that the persister has created the state of partitions."""
    del now
    group = shard.groups.get(group_id)
    outcome = Outcome()
    if isinstance(group, ShareGroup) and partitions:
        done = named(partitions, shard.image)
        topics = (group.topics or ShareTopics()).with_initialized(done)
        outcome.records.append(topics_record(group_id, topics, shard.image))
    if token is not None:
        outcome.answer(token, {})
    return outcome


def failed(
    shard: ServingShard,
    group_id: str,
    partitions: Mapping[bytes, Collection[int]],
    token: Token,
    now: Moment,
) -> Outcome:
    """Note that the persister has not created the state of partitions."""
    del token, now
    group = shard.groups.get(group_id)
    if not isinstance(group, ShareGroup) or group.topics is None:
        return Outcome()
    if not group.topics.initializing or not partitions:
        return Outcome()
    topics = group.topics.without_initializing(partitions)
    return Outcome([topics_record(group_id, topics, shard.image)])
