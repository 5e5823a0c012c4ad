"""Metadata: brokers, topics and the leaders of partitions.

v0 all topics by an empty list, v1 by null; v8 authorized operations (KIP-430), v11 without cluster
operations (KIP-700), v12 topics by id (KIP-516), v13 error (KIP-1102).

With advertised.listeners=auto a client gets the address to which it connected, so that one broker
serves loopback, containers and the network without configured names.

Source: Kafka's KafkaApis.handleTopicMetadataRequest; KIP-112, KIP-320.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.api.registry import handles_raw
from wirebroker.api.topics.authorized_operations import ALL_ON_CLUSTER, ALL_ON_TOPIC, NOT_ASKED
from wirebroker.base.clock import Slices
from wirebroker.base.threads import LONGEST_ON_LOOP_BYTES, Work, coding, in_thread
from wirebroker.codecs.acls import Resource
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.hot.metadata import (
    MetadataRequest,
    TopicView,
    encode_metadata,
    encode_topic,
    parse_metadata,
)
from wirebroker.codecs.permissions import (
    CREATE_IN_CLUSTER,
    CREATE_TOPIC,
    DESCRIBE_CLUSTER,
    DESCRIBE_TOPIC,
)
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.coordinator.controller.image.cluster_image import TopicImage
from wirebroker.coordinator.controller.image.topic_names import check_topic_name, is_internal
from wirebroker.quorum.image.metadata_cache import Variant, encode
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

    from wirebroker.api.broker import Broker
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.request.request import Reply, Request
    from wirebroker.request.session import Session

BY_ID_VERSION = 12

# More are described in slices: 500 uncached topics take 3 ms.
_AT_ONCE = 500

# Topics with more are encoded in a thread, 3 us per partition.
_MANY_PARTITIONS = 1_000

# An existing topic, or the error of another.
_Element = TopicImage | TopicView


@handles_raw(
    ApiKey.METADATA, permissions=(DESCRIBE_TOPIC, CREATE_TOPIC, CREATE_IN_CLUSTER), cost=Cost.SLICES
)
def metadata(broker: Broker, request: Request) -> Reply | Awaitable[Reply]:
    """Return metadata from the committed image."""
    if len(request.frame) - request.position > LONGEST_ON_LOOP_BYTES:
        request.keep()
        return _serve_long(broker, request)
    body = parse_metadata(request.frame, request.position, request.version)
    answer = _Answer(broker, request, body)
    if answer.topic_count > _AT_ONCE:
        return answer.answer_in_slices()
    elements = [element for element in answer.elements() if element is not None]
    if sum(len(element.partitions) for element in elements) > _AT_ONCE:
        return answer.answer_in_slices()
    return answer.reply([answer.encode(element) for element in elements])


async def _serve_long(broker: Broker, request: Request) -> Reply:
    frame, position, version = request.frame, request.position, request.version
    body = await in_thread(coding(len(frame)), parse_metadata, frame, position, version)
    return await _Answer(broker, request, body).answer_in_slices()


def any_live_broker(image: ClusterImage, node_id: int) -> int:
    """Return the broker to name as controller: this one if it is live, else any; -1 if none.

    As in Kafka, clients never see the controller itself.
    """
    own = image.brokers.get(node_id)
    if own is not None and not own.fenced:
        return node_id
    return min(
        (broker.node_id for broker in image.brokers.values() if not broker.fenced), default=-1
    )


def advertised(broker: Broker, connection: Session) -> list[tuple[int, str, int, str | None]]:
    """Return (id, host, port, rack) of each live broker, as this connection can reach it."""
    nodes: list[tuple[int, str, int, str | None]] = []
    for node in broker.metadata.image.brokers.values():
        endpoint = node.endpoints.get(connection.listener_name)
        if node.fenced:
            continue
        if node.node_id == broker.node_id and connection.listener_name in broker.auto_listeners:
            host, port = connection.local_host, connection.local_port
        elif endpoint is not None:
            host, port = endpoint.host, endpoint.port
        else:
            continue
        nodes.append((node.node_id, host, port, node.rack))
    return nodes


class _Answer:
    """One Metadata request and its response, from one image."""

    __slots__ = ("_asking", "_body", "_broker", "_error", "_image", "_request", "_variant")

    def __init__(self, broker: Broker, request: Request, body: MetadataRequest) -> None:
        authorization = broker.authorization
        self._asking = None if authorization is None else authorization.access_of(request)
        self._broker = broker
        self._request = request
        self._body = body
        self._image = broker.metadata.image
        self._variant = Variant(
            request.version,
            ALL_ON_TOPIC if body.include_topic_authorized_operations else NOT_ASKED,
            request.session.listener_name,
        )
        self._error = ErrorCode.NONE

    @property
    def topic_count(self) -> int:
        requested = self._body.topics
        return len(self._image.topics) if requested is None else len(requested)

    def elements(self) -> Iterator[_Element | None]:
        """Yield each requested topic once; start to create missing ones.

        None is a hidden topic: a step in a long search.
        """
        requested = self._body.topics
        if requested is None:
            for element in self._image.topics.values():
                yield element if self._is_shown(element.name, is_named=False) else None
            return
        ids = [topic_id for topic_id, _ in requested if topic_id != ZERO_UUID]
        names = [name for _, name in requested if name is not None]
        self._error = self._fault(by_id=bool(ids), is_nameless=len(names) < len(requested))
        if self._error != ErrorCode.NONE:
            for topic_id, name in requested:
                yield TopicView(name or "", topic_id, error_code=self._error)
            return
        if ids:
            for topic_id in dict.fromkeys(ids):
                yield self._by_id(topic_id)
            return
        missing: list[str] = []
        for name in dict.fromkeys(names):
            if not self._is_shown(name):
                yield _denied(name, ZERO_UUID)
                continue
            topic = self._image.topics.get(name)
            yield topic or self._missing(name, missing)
        if missing:
            self._broker.auto_creation.create(missing, self._broker.config, self._request.session)

    def _fault(self, *, by_id: bool, is_nameless: bool) -> ErrorCode:
        if self._request.version < BY_ID_VERSION:
            return ErrorCode.INVALID_REQUEST if by_id or is_nameless else ErrorCode.NONE
        # Kafka's handler fails on a topic without name and id.
        is_accident = is_nameless and not by_id
        return ErrorCode.UNKNOWN_SERVER_ERROR if is_accident else ErrorCode.NONE

    def _by_id(self, topic_id: bytes) -> _Element:
        topic = self._image.topics_by_id.get(topic_id)
        if topic is None:
            return TopicView(None, topic_id, error_code=ErrorCode.UNKNOWN_TOPIC_ID)
        return topic if self._is_shown(topic.name) else _denied(None, topic_id)

    def _is_shown(self, name: str, *, is_named: bool = True) -> bool:
        access = self._asking
        return access is None or access.may(DESCRIBE_TOPIC, name, logs_denied=is_named)

    def _may_create(self, name: str) -> bool:
        access = self._asking
        return (
            access is None
            or access.may(CREATE_IN_CLUSTER, logs_denied=False)
            or access.may(CREATE_TOPIC, name)
        )

    def _variant_for(self, name: str) -> Variant:
        if self._asking is None or not self._body.include_topic_authorized_operations:
            return self._variant
        operations = self._asking.operations(Resource.TOPIC, name)
        return self._variant._replace(authorized_operations=operations)

    def _missing(self, name: str, missing: list[str]) -> TopicView:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        try:
            check_topic_name(name)
        except KafkaError:
            error = ErrorCode.INVALID_TOPIC_EXCEPTION
        if self._body.allow_auto_topic_creation and self._broker.config.bool(
            "auto.create.topics.enable"
        ):
            if not self._may_create(name):
                return TopicView(
                    name,
                    is_internal=is_internal(name),
                    error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                )
            if error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                missing.append(name)
        return TopicView(
            name,
            is_internal=is_internal(name),
            error_code=error,
            topic_authorized_operations=self._variant_for(name).authorized_operations,
        )

    def encode(self, element: _Element) -> bytes:
        if isinstance(element, TopicView):
            self._request.count_error(element.error_code)
            return encode_topic(self._request.version, element)
        cache = self._broker.metadata_cache
        variant = self._variant_for(element.name)
        encoded = cache.find(self._image, element, variant)
        if encoded is None:
            encoded = encode(self._image, element, variant)
            cache.keep(self._image, element, variant, encoded)
        return encoded

    async def answer_in_slices(self) -> Reply:
        slices = Slices(self._broker.clock)
        cache = self._broker.metadata_cache
        topics: list[bytes] = []
        for element in self.elements():
            if element is None:
                await slices.turn()
                continue
            if len(element.partitions) <= _MANY_PARTITIONS or isinstance(element, TopicView):
                topics.append(self.encode(element))
            else:
                variant = self._variant_for(element.name)
                encoded = cache.find(self._image, element, variant)
                if encoded is None:
                    encoded = await in_thread(Work.CODING, encode, self._image, element, variant)
                    cache.keep(self._image, element, variant, encoded)
                topics.append(encoded)
            await slices.turn()
        return self.reply(topics)

    def reply(self, topics: list[bytes]) -> Reply:
        request, broker = self._request, self._broker
        if self._error != ErrorCode.NONE:
            request.count_error(self._error)
            return [
                *encode_metadata(
                    request.version,
                    brokers=(),
                    cluster_id=None,
                    controller_id=-1,
                    topics=topics,
                    error_code=self._error,
                )
            ]
        return [
            *encode_metadata(
                request.version,
                brokers=advertised(broker, request.session),
                cluster_id=broker.cluster_id,
                controller_id=any_live_broker(self._image, broker.node_id),
                topics=topics,
                cluster_authorized_operations=self._cluster_operations(),
            )
        ]

    def _cluster_operations(self) -> int:
        if not self._body.include_cluster_authorized_operations:
            return NOT_ASKED
        if self._asking is None:
            return ALL_ON_CLUSTER
        if not self._asking.may(DESCRIBE_CLUSTER):
            return 0
        return self._asking.operations(Resource.CLUSTER)


def _denied(name: str | None, topic_id: bytes) -> TopicView:
    return TopicView(name, topic_id, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
