"""Metadata in test mode waits until topics are there that it has made by asking for them.

Kafka answers UNKNOWN_TOPIC_OR_PARTITION and makes the topic meanwhile (auto.create.topics.enable);
librdkafka then asks again 100 ms later, which is most of a test that takes 10 ms without. So the
request is served, what it has begun to make is waited for, and it is served once more: that answer
goes out. One that a fault has met is none of this.
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

# Who asks for more topics than fit in here asks again, as with Kafka.
_LONGEST_BYTES: Final = 16 << 10
# Then the answer is Kafka's: the disk may be full, or there is no controller.
_PATIENCE_S: Final = 1.0


def answer_when_made(
    broker: Any, request: Request, handler: Handler
) -> Awaitable[list[Piece] | None] | None:
    """Return the answer in the handler's place to a request that may make topics; else None.

    Raises:
        MalformedFrameError: It is no Metadata request.
    """
    if request.key != ApiKey.METADATA:
        return None
    if len(request.frame) > _LONGEST_BYTES or not broker.config.bool("auto.create.topics.enable"):
        return None
    wanted = parse_metadata(request.frame, request.position, request.version)
    known = broker.metadata.image.topics
    if not wanted.allow_auto_topic_creation or all(
        name is None or name in known for _, name in wanted.topics or ()
    ):
        return None
    request.keep()
    return _served(broker, Disturbance(broker, request, handler))


async def _served(broker: Any, disturbance: Disturbance) -> list[Piece] | None:
    answer = await disturbance.served()
    if await broker.auto_creation.until_made(timeout_s=_PATIENCE_S):
        answer = await disturbance.served()
    return answer
