"""Forwarding of clients' requests to the controller.

Source: Kafka's ForwardingManager (KIP-590).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.registry import REGISTRY, forwards
from wirebroker.base.addresses import host_of
from wirebroker.coordinator.controller.controller import DECLARED_OPERATIONS
from wirebroker.coordinator.controller.requests.request import Requester

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.request.request import Request


def requester_of(request: Request) -> Requester:
    """Return the sender of a request, as the controller sees it."""
    session = request.session
    return Requester(session.principal, host_of(session.peer), request.client_id)


async def forward(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Return the fields of the controller's response."""
    requester = requester_of(request)
    response = await broker.controller.forward(request.key, request.version, body, requester)
    if broker.quotas.has_quotas:
        session = request.session
        session.throttle_ms = max(session.throttle_ms, int(response.get("throttle_time_ms", 0)))
    return response


def forward_all_others() -> None:
    """Register a handler for each declared request without one; call it after their imports."""
    for key, declaration in DECLARED_OPERATIONS.items():
        if declaration.is_forwarded and not REGISTRY.has(key):
            forwards(key)(forward)
