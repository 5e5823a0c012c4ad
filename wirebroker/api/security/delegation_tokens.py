"""Create-, Renew-, Expire- and DescribeDelegationToken (KIP-48).

Create and Describe v3 a requester besides the owner (KIP-373). Rules:
coordinator/controller/security/token_control.py. The client must have authenticated, not by a
token. As in Kafka, descriptions contain the HMAC, which is the password.

Source: Kafka's KafkaApis.allowTokenRequests, DelegationTokenManager.filterToken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.api.forwarding import forward
from wirebroker.api.registry import forwards, handles
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.delegation_token import (
    principal_fields,
    principal_of,
    principal_text,
    token_hmac,
)
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.permissions import (
    DESCRIBE_DELEGATION_TOKEN,
    DESCRIBE_TOKENS_OF_USER,
)
from wirebroker.coordinator.controller.security.token_control import SECRET_KEY, not_allowed
from wirebroker.request.handlers import Cost
from wirebroker.request.request import LargeResponse
from wirebroker.request.session import ANONYMOUS

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.codecs.delegation_token import DelegationToken
    from wirebroker.request.request import Request

_NOT_ALLOWED: Final = {"error_code": int(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)}


@forwards(ApiKey.CREATE_DELEGATION_TOKEN)
async def create_token(broker: Broker, request: Request, body: Any) -> Any:
    """Create a token."""
    return await _forward(broker, request, body)


@forwards(ApiKey.RENEW_DELEGATION_TOKEN)
async def renew_token(broker: Broker, request: Request, body: Any) -> Any:
    """Extend a token's expiry."""
    return await _forward(broker, request, body)


@forwards(ApiKey.EXPIRE_DELEGATION_TOKEN)
async def expire_token(broker: Broker, request: Request, body: Any) -> Any:
    """Expire a token; its logins keep the expiry that they were given."""
    return await _forward(broker, request, body)


@handles(
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    permissions=(DESCRIBE_DELEGATION_TOKEN, DESCRIBE_TOKENS_OF_USER),
    cost=Cost.READS,
)
async def describe_tokens(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Describe tokens to owners, requesters, renewers and clients with DESCRIBE."""
    if not _may_ask(request):
        return _NOT_ALLOWED
    secret = broker.config.optional_str(SECRET_KEY)
    if secret is None:
        return {"error_code": int(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)}
    slices = Slices(broker.clock)
    owners: set[str] | None = None
    if body.owners is not None:
        owners = set()
        for owner in body.owners:  # may be millions
            owners.add(f"{owner.principal_type}:{owner.principal_name}")
            await slices.turn()
    tokens: list[dict[str, Any]] = []
    if owners != set():
        for token in broker.metadata.image.delegation_tokens():
            concerned = (token.owner, token.requester, *token.renewers)
            is_meant = owners is None or not owners.isdisjoint(concerned)
            if is_meant and _is_shown(broker, request, token):
                tokens.append(_described(token, secret))
            await slices.turn()
    return LargeResponse(tokens=tokens)


async def _forward(broker: Broker, request: Request, body: Any) -> Any:
    if not _may_ask(request):
        return not_allowed(request.key, body, request.session.principal)
    return await forward(broker, request, body)


def _may_ask(request: Request) -> bool:
    principal = request.session.principal
    return principal is not ANONYMOUS and not principal.is_by_token


def _is_shown(broker: Broker, request: Request, token: DelegationToken) -> bool:
    if broker.authorization is None or token.concerns(principal_text(request.session.principal)):
        return True
    access = broker.authorization.access_of(request)
    return access.may(DESCRIBE_DELEGATION_TOKEN, token.token_id) or access.may(
        DESCRIBE_TOKENS_OF_USER, token.owner
    )


def _described(token: DelegationToken, secret: str) -> dict[str, Any]:
    return {
        **principal_fields(principal_of(token.owner), ""),
        **principal_fields(principal_of(token.requester), "token_requester_"),
        "issue_timestamp": token.issue_ms,
        "expiry_timestamp": token.expiry_ms,
        "max_timestamp": token.max_ms,
        "token_id": token.token_id,
        "hmac": token_hmac(secret, token.token_id),
        "renewers": [principal_fields(principal_of(renewer), "") for renewer in token.renewers],
    }
