"""Periodic elections by the controller, each of at most 1,000 leaderships, as in Kafka.

Source: Kafka's ReplicationControlManager (maybeBalancePartitionLeaders, maybeElectUncleanLeaders).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.coordinator.controller.image.cluster_image import NO_LEADER
from wirebroker.coordinator.controller.partitions.leader_election import ElectionRules, changes_of
from wirebroker.coordinator.controller.partitions.partition_change import Election, PartitionDraft
from wirebroker.coordinator.operation import ControllerResult

if TYPE_CHECKING:
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import (
        ClusterImage,
        PartitionImage,
        TopicImage,
    )
    from wirebroker.coordinator.operation import Operation
    from wirebroker.coordinator.outcome import Moment

MOST_ELECTED: Final = 1_000


def give_back(config: Config, image: ClusterImage, _now: Moment) -> Operation[int]:
    """Make preferred replicas in the ISR leaders; return how many leaderships move."""
    rules = ElectionRules(image, config)
    moved = 0

    def draft(topic: TopicImage, partition: PartitionImage) -> PartitionDraft | None:
        nonlocal moved
        preferred = partition.replicas[0]
        if (
            partition.leader == preferred
            or preferred not in partition.isr
            or preferred not in rules.active
            or moved == MOST_ELECTED
        ):
            return None
        moved += 1
        of_topic = rules.of(topic.name)._replace(election=Election.PREFERRED)
        return PartitionDraft(topic.topic_id, partition, of_topic, rules.active.__contains__)

    records = yield from changes_of(image, draft)
    return ControllerResult(moved, records)


def elect_uncleanly(config: Config, image: ClusterImage, _now: Moment) -> Operation[int]:
    """Elect any replica for partitions without a leader, where allowed; return how many.

    This is for changes of unclean.leader.election.enable; changes of brokers trigger elections.
    """
    rules = ElectionRules(image, config)
    elected = 0

    def draft(topic: TopicImage, partition: PartitionImage) -> PartitionDraft | None:
        nonlocal elected
        if partition.leader != NO_LEADER or elected == MOST_ELECTED:
            return None
        of_topic = rules.of(topic.name)
        if of_topic.election is not Election.UNCLEAN:
            return None
        if rules.active.isdisjoint(partition.replicas):
            return None
        elected += 1
        return PartitionDraft(topic.topic_id, partition, of_topic, rules.active.__contains__)

    records = yield from changes_of(image, draft)
    return ControllerResult(len(records), records)
