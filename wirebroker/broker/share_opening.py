"""Construction of the parts that serve share groups."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from wirebroker.api.share_parts import ShareParts
from wirebroker.coordinator.share_partitions.share_configs import ShareConfigs
from wirebroker.share.dead_letter_sender import DeadLetterSender
from wirebroker.share.dead_letters import DeadLetters
from wirebroker.share.default_persister import DefaultPersister
from wirebroker.share.latest_offsets import LatestOffsets
from wirebroker.share.remote_states import RemoteStates
from wirebroker.share.share_partition_manager import SharePartitionManager

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.replication.replication import Replication


def open_share_parts(broker: Broker, replication: Replication) -> ShareParts:
    """Build them with the broker's current configuration and metadata."""
    clock, replicas = broker.clock, broker.replicas
    persister = DefaultPersister(
        broker.node_id,
        broker.share_coordinator,
        RemoteStates(replication.find_node),
        image=broker.metadata.image,
        clock=clock,
        random=random.Random(),  # noqa: S311
    )
    configs = ShareConfigs(broker.config, broker.metadata.image)
    dead_letters = DeadLetters(
        configs,
        controller=broker.controller,
        sender=DeadLetterSender(replicas, replication.find_node, clock),
        clock=clock,
        metrics=broker.metrics,
    )
    partitions = SharePartitionManager(
        configs,
        clock=clock,
        replicas=replicas,
        persister=persister,
        dead_letters=dead_letters,
        metrics=broker.metrics,
    )
    latest_offsets = LatestOffsets(
        broker.node_id,
        metadata=broker.metadata,
        replicas=replicas,
        find_node=replication.find_node,
        clock=clock,
    )
    return ShareParts(persister, latest_offsets, partitions)
