"""CreatePartitions: more partitions for topics that exist.

v0-1, v2 flexible, v3 quota errors (KIP-599). The rules are coordinator/topic_control.py's.

Source: Kafka's ControllerApis.createPartitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.registry import Request, handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import KafkaError

if TYPE_CHECKING:
    from wirebroker.broker import Broker


@handles(ApiKey.CREATE_PARTITIONS)
async def create_partitions(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Add partitions; they are ready when the answer leaves."""
    del request
    try:
        results = await broker.metadata.submit(broker.controller.create_partitions(body))
    except KafkaError as error:
        results = [
            {"name": topic.name, "error_code": int(error.code), "error_message": error.message}
            for topic in body.topics
        ]
    return {"results": results}
