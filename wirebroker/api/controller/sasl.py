"""SaslHandshake and SaslAuthenticate on a controller listener; see wirebroker/api/security/sasl.py.

Source: Kafka's ControllerApis.handleSaslHandshakeRequest and handleSaslAuthenticateRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.controller.registry import handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from wirebroker.quorum.controller.quorum_controller import QuorumController
    from wirebroker.request.request import Request


@handles(ApiKey.SASL_HANDSHAKE, permissions=(), cost=Cost.BOUNDED)
def sasl_handshake(controller: QuorumController, request: Request, body: Any) -> dict[str, Any]:
    """Refuse the request: the client has already passed the guard."""
    del controller, request, body
    return {"error_code": ErrorCode.ILLEGAL_SASL_STATE, "mechanisms": []}


@handles(ApiKey.SASL_AUTHENTICATE, permissions=(), cost=Cost.BOUNDED)
def sasl_authenticate(controller: QuorumController, request: Request, body: Any) -> dict[str, Any]:
    """Refuse the request in the current state."""
    del controller, request, body
    return {
        "error_code": ErrorCode.ILLEGAL_SASL_STATE,
        "error_message": "SaslAuthenticate request received after successful authentication",
    }
