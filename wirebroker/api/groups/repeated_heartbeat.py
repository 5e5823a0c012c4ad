"""Heartbeats of consumer groups that repeat an earlier one: served without decoding them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.messages import encode_response
from wirebroker.coordinator.groups.consumer import repeated

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.coordinator.groups.shard.shard import GroupShard
    from wirebroker.request.request import Request

# A compact string begins with its length + 1, up to this in one byte.
_MOST_IN_ONE_BYTE: Final = 0x7F
# Longer ones state something.
_LONGEST: Final = 1 << 10


def repeat(broker: Broker, request: Request) -> bytes | None:
    """Return the response to a heartbeat if it repeats one and changes nothing."""
    frame, position = request.frame, request.position
    size = len(frame) - position
    if not 0 < size <= _LONGEST or frame[position] > _MOST_IN_ONE_BYTE:
        return None
    content = bytes(frame[position:])
    try:
        group_id = str(content[1 : content[0]], "utf-8")
    except UnicodeDecodeError:
        return None  # the decoder refuses it
    return broker.groups.run_softly(group_id, repeated.repeat, content, _client(request))


def remember(
    shard: GroupShard | None, request: Request, body: Any, response: Mapping[str, Any]
) -> None:
    """Remember a heartbeat and its response, unless it changed something."""
    size = len(request.frame) - request.position
    if shard is None or size > _LONGEST or not repeated.states_nothing(body):
        return
    if response.get("error_code") or response.get("assignment") is not None:
        return
    content = bytes(request.frame[request.position :])
    encoded = encode_response(request.key, request.version, response)
    repeated.remember(shard, body, content, _client(request), encoded)


def _client(request: Request) -> tuple[str | None, str]:
    return request.client_id, request.session.peer
