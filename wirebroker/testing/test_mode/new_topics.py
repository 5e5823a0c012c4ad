"""In test mode, a Metadata response waits for the topics that the request creates.

Kafka returns UNKNOWN_TOPIC_OR_PARTITION, and librdkafka retries after 100 ms: most of a short test.
Here the request is handled again when its topics exist, unless a fault matches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.hot.metadata import parse_metadata
from wirebroker.testing.faults.disturbance import Disturbance

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from wirebroker.request.handlers import Handler
    from wirebroker.request.request import Piece, Request

# Clients have to retry longer requests, as with Kafka.
_LONGEST_BYTES: Final = 16 << 10
# Kafka's response is sent then: the disk may be full, or there is no controller.
_PATIENCE_S: Final = 1.0


def answer_when_made(
    broker: Any, request: Request, handler: Handler
) -> Awaitable[list[Piece] | None] | None:
    """Return the response to a request that may create topics; None if the handler must run."""
    if request.key != ApiKey.METADATA:
        return None
    if len(request.frame) > _LONGEST_BYTES or not broker.config.bool("auto.create.topics.enable"):
        return None
    parsed = parse_metadata(request.frame, request.position, request.version)
    existing = broker.metadata.image.topics
    if not parsed.allow_auto_topic_creation or all(
        name is None or name in existing for _, name in parsed.topics or ()
    ):
        return None
    request.keep()
    return _served(broker, Disturbance(broker, request, handler))


async def _served(broker: Any, disturbance: Disturbance) -> list[Piece] | None:
    answer = await disturbance.served()
    if await broker.auto_creation.until_made(timeout_s=_PATIENCE_S):
        answer = await disturbance.served()
    return answer
