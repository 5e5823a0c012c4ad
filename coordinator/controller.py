"""The controller of a one-node cluster: every change to the cluster's state begins here.

Each method takes a request and returns a function of the newest image, to be handed to
`MetadataLog.submit`, which appends the records and answers when they are on disk. Nothing here
has state but the configuration; the modules beside this one hold the rules:

    topic_control    CreateTopics, CreatePartitions, DeleteTopics
    config_control   IncrementalAlterConfigs
    producer_ids     blocks of producer ids
    registration     this node as broker and controller
    leader_election  ElectLeaders
    feature_control  feature levels, the first records of a cluster
    feature_updates  UpdateFeatures

Source: Kafka's QuorumController.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from wirebroker.coordinator.config_control import alter_configs
from wirebroker.coordinator.feature_updates import update_features
from wirebroker.coordinator.leader_election import elect_leaders
from wirebroker.coordinator.producer_ids import ProducerIdBlock, allocate_producer_ids
from wirebroker.coordinator.topic_control import (
    Result,
    create_partitions,
    create_topics,
    delete_topics,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.codecs.errors import KafkaError
    from wirebroker.config import Config
    from wirebroker.coordinator.cluster_image import ClusterImage
    from wirebroker.coordinator.operation import Operation


class Controller:
    """The rules under this node's configuration."""

    __slots__ = ("config", "node_id")

    def __init__(self, config: Config, *, node_id: int) -> None:
        # Replaced as a whole when dynamic configs change.
        self.config = config
        self.node_id = node_id

    def create_topics(self, request: Any) -> Callable[[ClusterImage], Operation[list[Result]]]:
        """Create topics; results are elements of CreateTopicsResponse.topics."""
        return partial(create_topics, request, config=self.config)

    def create_partitions(self, request: Any) -> Callable[[ClusterImage], Operation[list[Result]]]:
        """Add partitions; results are elements of CreatePartitionsResponse.results."""
        return partial(create_partitions, request)

    def delete_topics(
        self, topic_ids: Sequence[bytes]
    ) -> Callable[[ClusterImage], Operation[list[KafkaError | None]]]:
        """Delete topics by id; the result has an error, or None, for each."""
        return partial(delete_topics, topic_ids)

    def alter_configs(self, request: Any) -> Callable[[ClusterImage], Operation[list[Result]]]:
        """Change configs; results are elements of IncrementalAlterConfigsResponse.responses."""
        return partial(alter_configs, request, config=self.config, node_id=self.node_id)

    def elect_leaders(self, request: Any) -> Callable[[ClusterImage], Operation[list[Result]]]:
        """Elect leaders; results are elements of ElectLeadersResponse.replica_election_results."""
        return partial(elect_leaders, request, node_id=self.node_id)

    def update_features(self, request: Any) -> Callable[[ClusterImage], Operation[None]]:
        """Finalize feature levels."""
        return partial(update_features, request)

    def allocate_producer_ids(self) -> Callable[[ClusterImage], Operation[ProducerIdBlock]]:
        """Allocate a block of producer ids for this broker."""
        return partial(allocate_producer_ids, node_id=self.node_id)
