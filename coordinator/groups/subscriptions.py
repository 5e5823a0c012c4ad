"""The topics of a consumer, from its ConsumerProtocolSubscription.

    int16 version, []string topics, ...         the rest differs between versions

Source: Kafka's ConsumerProtocol and ClassicGroup.computeSubscribedTopics.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CONSUMER_PROTOCOL: Final = "consumer"

_INT16: Final = Struct(">h")
_VERSION_AND_COUNT: Final = Struct(">hi")


def subscribed_topics_of(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return all topics of several members; None if a subscription is malformed."""
    topics: set[str] = set()
    # Large groups have equal subscriptions.
    for subscription in set(subscriptions):
        try:
            topics.update(_topics(subscription))
        except (struct_error, UnicodeDecodeError, ValueError):
            return None
    return frozenset(topics)


def _topics(subscription: bytes) -> Iterator[str]:
    version, count = _VERSION_AND_COUNT.unpack_from(subscription)
    if version < 0 or count < 0 or count * _INT16.size > len(subscription):
        raise ValueError("no subscription")
    position = _VERSION_AND_COUNT.size
    for _ in range(count):
        (length,) = _INT16.unpack_from(subscription, position)
        position += _INT16.size
        if length < 0 or position + length > len(subscription):
            raise ValueError("a topic's name is cut off")
        yield subscription[position : position + length].decode()
        position += length
