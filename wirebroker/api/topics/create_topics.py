"""CreateTopics: creates topics with partitions, replicas and configs.

v4 defaults by -1 (KIP-464), v5 configs in responses (KIP-525). Rules:
coordinator/controller/topics/topic_control.py.

Source: Kafka's ControllerApis.createTopics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.api.forwarding import forward
from wirebroker.api.registry import forwards
from wirebroker.api.topics.topic_log import log_topics
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.request.body_decoding import decoded
from wirebroker.request.chunked_response import encode_chunked

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.request.request import Reply, Request


@forwards(ApiKey.CREATE_TOPICS, is_raw=True)
async def create_topics(broker: Broker, request: Request) -> Reply:
    """Create topics."""
    body = await decoded(request)
    answer = await forward(broker, request, body)
    topics = answer["topics"]
    if not body.validate_only:
        log_topics("created", topics, request.session)
    return await encode_chunked(
        ApiKey.CREATE_TOPICS, request.version, "topics", topics, broker.clock, errors=request.errors
    )
