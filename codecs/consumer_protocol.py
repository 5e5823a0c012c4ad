"""Subscriptions and assignments of classic consumers, inside JoinGroup and SyncGroup.

    int16 version, message

Later versions only append fields, so unknown ones are read as the last known version.

Source: Kafka's ConsumerProtocol.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.message import Message, load_message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_VERSION_BYTES: Final = 2


@cache
def _message(name: str) -> Message:
    return load_message(f"consumer_protocol_{name}")


def protocol_version(data: bytes) -> int:
    """Return the version of a subscription or assignment, as far as it is known.

    Raises:
        MalformedFrameError.
    """
    version = int.from_bytes(data[:_VERSION_BYTES], "big", signed=True)
    if len(data) < _VERSION_BYTES or version < 0:
        raise MalformedFrameError("the version of the consumer protocol is missing")
    return min(version, _message("subscription").versions[-1])


def decode_subscription(data: bytes) -> Any:
    """Decode a member's topics, owned partitions, generation and rack.

    Raises:
        MalformedFrameError.
    """
    return _message("subscription").decode(protocol_version(data), data, _VERSION_BYTES)


def decode_assignment(data: bytes) -> Any:
    """Decode the partitions of a member.

    Raises:
        MalformedFrameError.
    """
    return _message("assignment").decode(protocol_version(data), data, _VERSION_BYTES)


def encode_assignment(version: int, partitions: Mapping[str, Iterable[int]]) -> bytes:
    """Encode partitions by topic name."""
    topics = [
        {"topic": topic, "partitions": sorted(indexes)}
        for topic, indexes in sorted(partitions.items())
    ]
    message = _message("assignment").encode(version, {"assigned_partitions": topics})
    return version.to_bytes(_VERSION_BYTES, "big") + message
