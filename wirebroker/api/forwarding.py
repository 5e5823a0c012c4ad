"""Forwarding of clients' requests to the controller.

Source: Kafka's ForwardingManager (KIP-590).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.codecs.values import Struct
from wirebroker.quorum.channel.controller_channel import Requester

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.request.request import Request


async def forward(broker: Broker, request: Request, body: Any) -> Any:
    """Return the controller's response to a client's request."""
    host = request.session.peer.rpartition(":")[0].strip("[]")
    principal = request.session.principal
    requester = Requester(
        client_id=request.client_id,
        host=host,
        principal_type=principal.type,
        principal_name=principal.name,
        is_by_token=principal.is_by_token,
    )
    answer = await broker.controller.forward(request.key, request.version, body, requester)
    if broker.quotas.are_there:
        session = request.session
        session.throttle_ms = max(session.throttle_ms, _throttle_ms(answer))
    return answer


def _throttle_ms(answer: Any) -> int:
    name = "throttle_time_ms"
    throttle_ms = getattr(answer, name, 0) if isinstance(answer, Struct) else answer.get(name, 0)
    return int(throttle_ms)


def elements_of(answer: Any, field: str) -> list[Any]:
    """Return an array of a response; see `field_of`."""
    elements: list[Any] = field_of(answer, field)
    return elements


def field_of(part: Any, name: str) -> Any:
    """Return a field of a response or of a part of it.

    It is a mapping from a controller in this process, or a decoded struct from another.
    """
    return getattr(part, name) if isinstance(part, Struct) else part.get(name)
