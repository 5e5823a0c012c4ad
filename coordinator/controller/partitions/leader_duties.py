"""Elections that nobody has asked for: the controller looks at intervals for what should be led.

    give_back         preferred replicas lead again that are in sync
    elect_uncleanly   any replica leads what nobody leads, where unclean.leader.election.enable was
                      set meanwhile

At most 1,000 leaderships change at a time, as in Kafka: what is left is for the next time.

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


def give_back(config: Config, image: ClusterImage, _moment: Moment) -> Operation[int]:
    """Have preferred replicas lead that are in sync; return how many leaderships move."""
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


def elect_uncleanly(config: Config, image: ClusterImage, _moment: Moment) -> Operation[int]:
    """Have any replica lead what nobody leads, where that is allowed; return how many do.

    An election when a broker comes or goes does the same. Here it is done for a config that was set
    later.
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
