"""The controller: every change to the cluster's state begins here, as a request of Kafka's own.

    operation(key, version, body)  ->  function of the newest image  ->  records and the answer

It is a table from API keys to operations; whoever has such a request, a broker in this process or
one behind a connection, has it carried out in the same way. Nothing here awaits, and nothing is
drawn by chance but the ids that operations are given. Soft state are the brokers' sessions; all
else is in the image. The modules beside this one hold the rules:

    topic_control, topic_deletion   CreateTopics, CreatePartitions, DeleteTopics
    config_control                  AlterConfigs, IncrementalAlterConfigs
    broker_registration, _heartbeat, _sessions    brokers that come, serve and go
    leader_election, partition_change             ElectLeaders, who leads when brokers come and go
    alter_partition                 ISR changes
    reassignment                    Alter- and ListPartitionReassignments
    producer_ids                    blocks of producer ids
    feature_control, feature_updates              feature levels, the first records of a cluster

Source: Kafka's QuorumController and ControllerApis.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.primitives import random_uuid
from wirebroker.coordinator.controller.alter_partition import alter_partitions
from wirebroker.coordinator.controller.broker_heartbeat import heartbeat
from wirebroker.coordinator.controller.broker_registration import (
    register_broker,
    unregister_broker,
)
from wirebroker.coordinator.controller.broker_sessions import BrokerSessions
from wirebroker.coordinator.controller.config_control import alter_configs, altered
from wirebroker.coordinator.controller.feature_updates import refused_updates, update_features
from wirebroker.coordinator.controller.leader_election import elect_leaders
from wirebroker.coordinator.controller.operation import ControllerResult, Operation
from wirebroker.coordinator.controller.producer_ids import allocate_producer_ids
from wirebroker.coordinator.controller.reassignment import (
    alter_reassignments,
    list_reassignments,
)
from wirebroker.coordinator.controller.topic_control import create_partitions, create_topics
from wirebroker.coordinator.controller.topic_deletion import delete_topics, refused_deletions

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.codecs.errors import KafkaError
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.cluster_image import ClusterImage

Body = dict[str, Any]

# Kafka's broker.session.timeout.ms.
SESSION_S = 9.0


class ControllerRequest(NamedTuple):
    """A request of Kafka's protocol that is the controller's to answer."""

    key: ApiKey
    version: int
    body: Any  # decoded


class Controller:
    """The rules under this node's configuration.

    Attributes:
        config: This node's; replaced as a whole when dynamic configs change.
        node_id: This node.
        cluster_id: The cluster.
        sessions: Which brokers were heard of lately.
        new_uuid: Makes ids of topics.
    """

    __slots__ = ("cluster_id", "config", "new_uuid", "node_id", "sessions")

    def __init__(
        self,
        config: Config,
        *,
        node_id: int,
        cluster_id: str = "",
        new_uuid: Callable[[], bytes] = random_uuid,
    ) -> None:
        self.config = config
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.sessions = BrokerSessions(own_node_id=node_id, session_s=SESSION_S)
        self.new_uuid = new_uuid

    def use_config(self, config: Config) -> None:
        """Go by another configuration from the next request on."""
        self.config = config

    def operation(
        self, request: ControllerRequest, *, now_s: float
    ) -> Callable[[ClusterImage], Operation[Body]]:
        """Return what a request asks for, as a function of the newest image.

        Args:
            request: One that is served here.
            now_s: The time on the monotonic clock.

        Raises:
            KafkaError: By the operation: a refusal of the whole request; see `refusal`.
        """
        return partial(_OPERATIONS[request.key], self, request, now_s)


# Operations by key: (controller, request, now, image)


def _create_topics(
    controller: Controller, request: ControllerRequest, now_s: float, image: ClusterImage
) -> Operation[Body]:
    del now_s
    ids = [controller.new_uuid() for _ in request.body.topics]
    return _as_field("topics", create_topics(request.body, image, controller.config, topic_ids=ids))


def _delete_topics(
    controller: Controller, request: ControllerRequest, now_s: float, image: ClusterImage
) -> Operation[Body]:
    del now_s
    return delete_topics(request.body, image, controller.config, version=request.version)


def _create_partitions(
    controller: Controller, request: ControllerRequest, now_s: float, image: ClusterImage
) -> Operation[Body]:
    del controller, now_s
    return _as_field("results", create_partitions(request.body, image))


def _alter_configs(
    controller: Controller, request: ControllerRequest, now_s: float, image: ClusterImage
) -> Operation[Body]:
    del now_s
    return _as_field(
        "responses",
        alter_configs(
            request.body,
            image,
            controller.config,
            node_id=controller.node_id,
            is_incremental=request.key is ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ),
    )


def _elect_leaders(
    controller: Controller, request: ControllerRequest, now_s: float, image: ClusterImage
) -> Operation[Body]:
    del now_s
    return _as_field(
        "replica_election_results", elect_leaders(request.body, image, controller.config)
    )


def _alter_reassignments(
    controller: Controller, request: ControllerRequest, now_s: float, image: ClusterImage
) -> Operation[Body]:
    del controller, now_s
    return alter_reassignments(request.body, image)


def _list_reassignments(
    controller: Controller, request: ControllerRequest, now_s: float, image: ClusterImage
) -> Operation[Body]:
    del controller, now_s
    return list_reassignments(request.body, image)


def _update_features(
    controller: Controller, request: ControllerRequest, now_s: float, image: ClusterImage
) -> Operation[Body]:
    del controller, now_s
    return update_features(request.body, image, version=request.version)


def _alter_partition(
    controller: Controller, request: ControllerRequest, now_s: float, image: ClusterImage
) -> Operation[Body]:
    del now_s
    return alter_partitions(request.body, image, controller.config, version=request.version)


def _register_broker(
    controller: Controller, request: ControllerRequest, now_s: float, image: ClusterImage
) -> Operation[Body]:
    body, sessions = request.body, controller.sessions
    before = image.brokers.get(body.broker_id)
    has_session = before is not None and sessions.is_valid(before.node_id, before.epoch, now_s)
    result = yield from register_broker(
        body,
        image,
        controller.config,
        cluster_id=controller.cluster_id,
        has_session=has_session,
    )
    sessions.touch(body.broker_id, result.response["broker_epoch"], now_s)
    return result


def _heartbeat(
    controller: Controller, request: ControllerRequest, now_s: float, image: ClusterImage
) -> Operation[Body]:
    body, sessions = request.body, controller.sessions
    may_stop = sessions.may_stop(body.broker_id, image)
    result = yield from heartbeat(body, image, controller.config, may_stop=may_stop)
    offset = body.current_metadata_offset
    sessions.touch(body.broker_id, body.broker_epoch, now_s, metadata_offset=offset)
    if body.want_shut_down and result.records:
        sessions.stopping(body.broker_id, image.offset + len(result.records) - 1)
    return result


def _unregister_broker(
    controller: Controller, request: ControllerRequest, now_s: float, image: ClusterImage
) -> Operation[Body]:
    # Its session ends by itself: whether the records are written is not known here.
    del now_s
    return unregister_broker(request.body, image, controller.config)


def _allocate_producer_ids(
    controller: Controller, request: ControllerRequest, now_s: float, image: ClusterImage
) -> Operation[Body]:
    del controller, now_s
    return allocate_producer_ids(request.body, image)


def _as_field(field: str, operation: Operation[list[Body]]) -> Operation[Body]:
    result = yield from operation
    return ControllerResult({field: result.response}, result.records)


_OPERATIONS: dict[
    ApiKey, Callable[[Controller, ControllerRequest, float, ClusterImage], Operation[Body]]
] = {
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.DELETE_TOPICS: _delete_topics,
    ApiKey.ALTER_CONFIGS: _alter_configs,
    ApiKey.CREATE_PARTITIONS: _create_partitions,
    ApiKey.ELECT_LEADERS: _elect_leaders,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _alter_configs,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _alter_reassignments,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _list_reassignments,
    ApiKey.ALTER_PARTITION: _alter_partition,
    ApiKey.UPDATE_FEATURES: _update_features,
    ApiKey.BROKER_REGISTRATION: _register_broker,
    ApiKey.BROKER_HEARTBEAT: _heartbeat,
    ApiKey.UNREGISTER_BROKER: _unregister_broker,
    ApiKey.ALLOCATE_PRODUCER_IDS: _allocate_producer_ids,
}


# Whose requests are the controller's.
SERVED_KEYS = frozenset(_OPERATIONS)


# Refusals by key: an error that a message has no place for is repeated for each element.


def _refused(request: Any, error: KafkaError) -> Body:
    del request
    return {"error_code": int(error.code)}


def _refused_with_message(request: Any, error: KafkaError) -> Body:
    del request
    return _failure(error)


def _refused_topics(request: Any, error: KafkaError) -> Body:
    return {"topics": [{"name": topic.name, **_failure(error)} for topic in request.topics]}


def _refused_partitions(request: Any, error: KafkaError) -> Body:
    return {"results": [{"name": topic.name, **_failure(error)} for topic in request.topics]}


def _refused_configs(request: Any, error: KafkaError) -> Body:
    return {"responses": [altered(resource, error) for resource in request.resources]}


def _refused_elections(request: Any, error: KafkaError) -> Body:
    refused = [
        {
            "topic": topic.topic,
            "partition_result": [
                {"partition_id": each, **_failure(error)} for each in topic.partitions
            ],
        }
        for topic in request.topic_partitions or ()
    ]
    return {"error_code": int(error.code), "replica_election_results": refused}


def _failure(error: KafkaError) -> Body:
    return {"error_code": int(error.code), "error_message": error.message}


_REFUSALS: dict[ApiKey, Callable[[Any, KafkaError], Body]] = {
    ApiKey.CREATE_TOPICS: _refused_topics,
    ApiKey.DELETE_TOPICS: refused_deletions,
    ApiKey.ALTER_CONFIGS: _refused_configs,
    ApiKey.CREATE_PARTITIONS: _refused_partitions,
    ApiKey.ELECT_LEADERS: _refused_elections,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _refused_configs,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _refused_with_message,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _refused_with_message,
    ApiKey.UPDATE_FEATURES: refused_updates,
    ApiKey.UNREGISTER_BROKER: _refused_with_message,
}


def refusal(request: ControllerRequest, error: KafkaError) -> Body:
    """Return the answer to a request that is refused as a whole."""
    return _REFUSALS.get(request.key, _refused)(request.body, error)
