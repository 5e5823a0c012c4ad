"""SaslHandshake and SaslAuthenticate of clients that need not authenticate (again).

On listeners with SASL they are served before the handlers (security/sasl/sasl.py).

Source: Kafka's KafkaApis.handleSaslHandshakeRequest and handleSaslAuthenticateRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.registry import handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from wirebroker.request.request import Request


@handles(ApiKey.SASL_HANDSHAKE, permissions=(), cost=Cost.BOUNDED)
def sasl_handshake(node: Any, request: Request, body: Any) -> dict[str, Any]:
    """Refuse the request."""
    del node, request, body
    return {"error_code": ErrorCode.ILLEGAL_SASL_STATE, "mechanisms": []}


@handles(ApiKey.SASL_AUTHENTICATE, permissions=(), cost=Cost.BOUNDED)
def sasl_authenticate(node: Any, request: Request, body: Any) -> dict[str, Any]:
    """Refuse the request."""
    del node, request, body
    return {
        "error_code": ErrorCode.ILLEGAL_SASL_STATE,
        "error_message": "SaslAuthenticate request received after successful authentication",
    }
