"""Delivery services and dead-letter topics of a cluster, found in a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.delivery.letters.reading import is_dead_letter_topic
from wirebroker.delivery.letters.redrive_group import redrive_group
from wirebroker.delivery.service.settings import pending_topic_of

if TYPE_CHECKING:
    from wirebroker.console.model.group_info import GroupInfo
    from wirebroker.console.model.snapshot import ClusterSnapshot
    from wirebroker.console.model.topic_info import TopicInfo

DEFAULT_GROUP: Final = "wirebroker-delivery"


class DeliveryService(NamedTuple):
    """A delivery service.

    Attributes:
        group: Its name; None as `state` if the group is gone.
        pending: The topic of its pending records.
        state: Its consumer group, which reads the input topics.
    """

    group: str
    pending: TopicInfo
    state: GroupInfo | None


class DeadLetterTopic(NamedTuple):
    """A topic of dead letters.

    Attributes:
        redrive: The group with the progress of redrives; None if there was none.
    """

    topic: TopicInfo
    redrive: GroupInfo | None


def services_of(snapshot: ClusterSnapshot) -> list[DeliveryService]:
    """Return the delivery services of a cluster, by name."""
    groups = dict.fromkeys([*snapshot.groups, DEFAULT_GROUP])
    return [
        DeliveryService(group, topic, snapshot.groups.get(group))
        for group in sorted(groups)
        if (topic := snapshot.topics.get(pending_topic_of(group))) is not None
        and not topic.is_internal
    ]


def dead_letters_of_cluster(snapshot: ClusterSnapshot) -> list[DeadLetterTopic]:
    """Return the topics that are named like dead-letter topics."""
    return [
        DeadLetterTopic(topic, snapshot.groups.get(redrive_group(topic.name)))
        for topic in snapshot.topics.values()
        if is_dead_letter_topic(topic.name)
    ]


def has_delivery(snapshot: ClusterSnapshot) -> bool:
    """Return whether a cluster has a delivery service or dead letters."""
    return bool(services_of(snapshot)) or any(map(is_dead_letter_topic, snapshot.topics))
