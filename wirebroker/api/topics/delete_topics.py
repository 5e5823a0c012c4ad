"""DeleteTopics: deletes topics by name or id.

v5 error messages (KIP-599), v6 topics by id (KIP-516). Rules:
coordinator/controller/topics/topic_deletion.py.

Source: Kafka's ControllerApis.deleteTopics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.forwarding import forward
from wirebroker.api.registry import forwards
from wirebroker.api.topics.topic_log import log_topics
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.request.request import Request


@forwards(ApiKey.DELETE_TOPICS)
async def delete_topics(broker: Broker, request: Request, body: Any) -> Any:
    """Delete topics."""
    answer = await forward(broker, request, body)
    log_topics("deleted", answer["responses"], request.session)
    return answer
