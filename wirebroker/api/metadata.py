"""Metadata: the brokers, and topics with their partitions' leaders.

v0 all topics by an empty list, v1 by null; v2 cluster id, v4 auto creation, v5 offline replicas
(KIP-112), v7 leader epochs (KIP-320), v8 authorized operations (KIP-430), v9 flexible, v10 topic
ids, v11 without cluster operations (KIP-700), v12 topics by id (KIP-516), v13 error (KIP-1102).

With advertised.listeners=auto a client is told the address that it reached us at, so that one
broker serves loopback, containers and the network without being told their names.

Source: Kafka's KafkaApis.handleTopicMetadataRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.api.authorized_operations import ALL_ON_CLUSTER, ALL_ON_TOPIC, NOT_ASKED
from wirebroker.api.registry import Reply, Request, handles_raw
from wirebroker.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.metadata import (
    MetadataRequest,
    TopicView,
    encode_metadata,
    encode_topic,
    parse_metadata,
)
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.coordinator.cluster_image import TopicImage
from wirebroker.coordinator.topic_names import check_topic_name, is_internal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from wirebroker.api.registry import ConnectionInfo
    from wirebroker.broker import Broker

# From this version on a topic may be asked for by its id.
BY_ID_VERSION = 12

# Up to here an answer is made at once: 500 topics that are not cached yet take 3 ms.
AT_ONCE = 500

# An element to encode: a topic that exists, or what there is to say of one that doesn't.
_Element = TopicImage | TopicView


@handles_raw(ApiKey.METADATA)
def metadata(broker: Broker, request: Request) -> Reply | Awaitable[Reply]:
    """Answer from the committed image."""
    wanted = parse_metadata(request.frame, request.position, request.version)
    operations = ALL_ON_TOPIC if wanted.include_topic_authorized_operations else NOT_ASKED
    try:
        _check(wanted, request.version)
    except KafkaError as error:
        refused = [
            TopicView(name or "", topic_id, error_code=error.code)
            for topic_id, name in wanted.topics or ()
        ]
        topics = [encode_topic(request.version, view) for view in refused]
        return _reply(broker, request, wanted, topics, error.code)
    elements = _elements(broker, wanted, operations)
    partitions = sum(len(each.partitions) for each in elements)
    if len(elements) + partitions <= AT_ONCE:
        topics = [_encode(broker, request, each, operations) for each in elements]
        return _reply(broker, request, wanted, topics)
    return _in_slices(broker, request, wanted, elements, operations)


def advertised(
    broker: Broker, connection: ConnectionInfo
) -> list[tuple[int, str, int, str | None]]:
    """Return (id, host, port, rack) of each live broker, as this connection can reach it."""
    known = []
    for node in broker.metadata.image.brokers.values():
        endpoint = node.endpoints.get(connection.listener_name)
        if node.fenced or endpoint is None:
            continue
        host, port = endpoint.host, endpoint.port
        if node.node_id == broker.node_id and connection.listener_name in broker.auto_listeners:
            host, port = connection.local_host, connection.local_port
        known.append((node.node_id, host, port, node.rack))
    return known


def _check(wanted: MetadataRequest, version: int) -> None:
    for topic_id, name in wanted.topics or ():
        if version < BY_ID_VERSION and (name is None or topic_id != ZERO_UUID):
            raise KafkaError(ErrorCode.INVALID_REQUEST)


def _elements(broker: Broker, wanted: MetadataRequest, operations: int) -> list[_Element]:
    image = broker.metadata.image
    if wanted.topics is None:
        return list(image.topics.values())
    ids = list(dict.fromkeys(topic_id for topic_id, _ in wanted.topics if topic_id != ZERO_UUID))
    if ids:
        return [
            image.topics_by_id.get(topic_id)
            or TopicView(
                None,
                topic_id,
                error_code=ErrorCode.UNKNOWN_TOPIC_ID,
                topic_authorized_operations=NOT_ASKED,
            )
            for topic_id in ids
        ]
    names = list(dict.fromkeys(name for _, name in wanted.topics if name is not None))
    missing = [name for name in names if name not in image.topics]
    create = wanted.allow_auto_topic_creation and broker.config.bool("auto.create.topics.enable")
    if missing and create:
        broker.auto_creation.create(name for name in missing if _is_valid(name))
    return [
        image.topics.get(name)
        or TopicView(
            name,
            is_internal=is_internal(name),
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if _is_valid(name)
            else ErrorCode.INVALID_TOPIC_EXCEPTION,
            topic_authorized_operations=operations,
        )
        for name in names
    ]


def _is_valid(name: str) -> bool:
    try:
        check_topic_name(name)
    except KafkaError:
        return False
    return True


def _encode(broker: Broker, request: Request, element: _Element, operations: int) -> bytes:
    if isinstance(element, TopicView):
        return encode_topic(request.version, element)
    return broker.metadata_cache.encoded(
        broker.metadata.image,
        element,
        version=request.version,
        authorized_operations=operations,
        listener=request.connection.listener_name,
    )


async def _in_slices(
    broker: Broker,
    request: Request,
    wanted: MetadataRequest,
    elements: Iterable[_Element],
    operations: int,
) -> Reply:
    """Encode thousands of topics without holding the loop."""
    slices = Slices(broker.clock)
    topics: list[bytes] = []
    for element in elements:
        topics.append(_encode(broker, request, element, operations))
        await slices.turn()
    return _reply(broker, request, wanted, topics)


def _reply(
    broker: Broker,
    request: Request,
    wanted: MetadataRequest,
    topics: list[bytes],
    error_code: int = ErrorCode.NONE,
) -> Reply:
    cluster_operations = wanted.include_cluster_authorized_operations
    return [
        *encode_metadata(
            request.version,
            brokers=advertised(broker, request.connection),
            cluster_id=broker.cluster_id,
            controller_id=broker.node_id,
            topics=topics,
            cluster_authorized_operations=ALL_ON_CLUSTER if cluster_operations else NOT_ASKED,
            error_code=error_code,
        )
    ]
