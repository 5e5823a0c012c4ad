"""Delegation tokens: create, list, renew, expire (KIP-48).

Users name a token by its id, which is not secret. Requests that change one need its HMAC, which
only allowed users see.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.client.errors import ClientError, UnservedError, check
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.client.kafka_client import KafkaClient

_FIRST_WITH_OWNER: Final = 3
# The cluster's default; for an expiry, now.
UNSET_MS: Final = -1


class ListedToken(NamedTuple):
    """A token; times are ms since 1970, the HMAC is secret, in base64, a password for SCRAM."""

    token_id: str
    owner: str
    requester: str
    renewers: list[str]
    issued_ms: int
    expires_ms: int
    ends_ms: int
    hmac: str


async def create_token(
    client: KafkaClient,
    *,
    owner: str | None = None,
    renewers: Sequence[str] = (),
    lifetime_ms: int = UNSET_MS,
) -> ListedToken:
    """Create a token, for the requester or another owner, such as `User:alice`.

    Renewers may also renew and expire it. The cluster limits the maximum lifetime.
    """
    fields: dict[str, Any] = {
        "renewers": [_principal(renewer) for renewer in renewers],
        "max_lifetime_ms": lifetime_ms,
    }

    def body(version: int) -> dict[str, Any]:
        if owner is None:
            return fields
        if version < _FIRST_WITH_OWNER:
            raise UnservedError(
                "the broker cannot create tokens for others (needs Kafka 3.3 or newer)"
            )
        return fields | _principal(owner, "owner_")

    answer = await client.request(ApiKey.CREATE_DELEGATION_TOKEN, body)
    check(answer.error_code, "the token cannot be created")
    return ListedToken(
        token_id=answer.token_id,
        owner=_principal_text(answer),
        requester=_principal_text(answer, "token_requester_"),
        renewers=list(renewers),
        issued_ms=answer.issue_timestamp_ms,
        expires_ms=answer.expiry_timestamp_ms,
        ends_ms=answer.max_timestamp_ms,
        hmac=base64.b64encode(answer.hmac).decode("ascii"),
    )


async def list_tokens(client: KafkaClient, owners: Sequence[str] = ()) -> list[ListedToken]:
    """Return the visible tokens, of all or of some owners."""
    body = {"owners": [_principal(owner) for owner in owners] or None}
    answer = await client.request(ApiKey.DESCRIBE_DELEGATION_TOKEN, body)
    check(answer.error_code, "tokens cannot be listed")
    return sorted(
        ListedToken(
            token_id=token.token_id,
            owner=_principal_text(token),
            requester=_principal_text(token, "token_requester_"),
            renewers=[_principal_text(renewer) for renewer in token.renewers],
            issued_ms=token.issue_timestamp,
            expires_ms=token.expiry_timestamp,
            ends_ms=token.max_timestamp,
            hmac=base64.b64encode(token.hmac).decode("ascii"),
        )
        for token in answer.tokens
    )


async def renew_token(client: KafkaClient, token_id: str, period_ms: int = UNSET_MS) -> int:
    """Extend a token; return its new expiry, in ms since 1970."""
    period = {"renew_period_ms": period_ms}
    return await _move_end(client, ApiKey.RENEW_DELEGATION_TOKEN, token_id, period, "renewed")


async def expire_token(client: KafkaClient, token_id: str, period_ms: int = UNSET_MS) -> int:
    """Expire a token, now or after a period; return when, in ms since 1970."""
    period = {"expiry_time_period_ms": period_ms}
    return await _move_end(client, ApiKey.EXPIRE_DELEGATION_TOKEN, token_id, period, "ended")


async def _move_end(
    client: KafkaClient, key: ApiKey, token_id: str, period: Mapping[str, int], done: str
) -> int:
    fields = {"hmac": await _hmac(client, token_id), **period}
    answer = await client.request(key, fields)
    check(answer.error_code, f"token {token_id} cannot be {done}")
    return int(answer.expiry_timestamp_ms)


async def _hmac(client: KafkaClient, token_id: str) -> bytes:
    for token in await list_tokens(client):
        if token.token_id == token_id:
            return base64.b64decode(token.hmac)
    raise ClientError(f"there is no token {token_id}, or this user may not see it")


def _principal(text: str, prefix: str = "") -> dict[str, str]:
    kind, _, name = text.partition(":")
    return {f"{prefix}principal_type": kind, f"{prefix}principal_name": name}


def _principal_text(fields: Any, prefix: str = "") -> str:
    """Return a principal; empty if the response's version has none."""
    name = getattr(fields, f"{prefix}principal_name")
    return f"{getattr(fields, f'{prefix}principal_type')}:{name}" if name else ""
