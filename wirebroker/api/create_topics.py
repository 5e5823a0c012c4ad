"""CreateTopics: new topics with partitions, replicas and configs.

v2-3 the first served, v4 defaults by -1 (KIP-464), v5 flexible, answers with configs (KIP-525),
v6 quota errors, v7 topic ids. The rules are coordinator/topic_control.py's.

Source: Kafka's ControllerApis.createTopics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.in_slices import encode_in_slices
from wirebroker.api.registry import Reply, Request, handles_raw
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.messages import decode_request

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from wirebroker.broker import Broker


@handles_raw(ApiKey.CREATE_TOPICS)
def create_topics(broker: Broker, request: Request) -> Awaitable[Reply]:
    """Create topics; they are ready when the answer leaves."""
    body = decode_request(request.key, request.version, request.frame, request.position)
    return _create(broker, request.version, body)


async def _create(broker: Broker, version: int, body: Any) -> Reply:
    try:
        topics = await broker.metadata.submit(broker.controller.create_topics(body))
    except KafkaError as error:
        topics = [
            {"name": topic.name, "error_code": int(error.code), "error_message": error.message}
            for topic in body.topics
        ]
    return await encode_in_slices(ApiKey.CREATE_TOPICS, version, "topics", topics, broker.clock)
