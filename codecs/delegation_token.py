"""Delegation tokens: their metadata and HMAC (KIP-48, KIP-373).

    token id     16 random bytes as text; not secret
    HMAC         HMAC-SHA-512 of the id with delegation.token.secret.key; never stored
    login        SCRAM with tokenauth=true: the user is the id, the password the HMAC in base64

A client with the HMAC acts as the token's owner until the token expires.

Source: Kafka's TokenInformation, DelegationTokenData and DelegationTokenControlManager.createHmac.
"""

from __future__ import annotations

import base64
from typing import Any, Final, NamedTuple

from wirebroker.codecs.envelope import Principal
from wirebroker.codecs.hashes import keyed_digest
from wirebroker.codecs.metadata_records import MetadataRecord, RecordType, metadata_record

_HASH: Final = "sha512"


class DelegationToken(NamedTuple):
    """A token; principals are texts such as `User:alice`, times milliseconds since 1970."""

    token_id: str
    owner: str
    requester: str  # creator, possibly for another owner
    renewers: tuple[str, ...]
    issue_ms: int
    expiry_ms: int  # at most max_ms
    max_ms: int

    def has_expired(self, now_ms: int) -> bool:
        """Return whether the token is no longer valid for a login."""
        return self.expiry_ms < now_ms or self.max_ms < now_ms

    def may_be_renewed_by(self, principal: str) -> bool:
        """Return whether a principal may renew or expire the token."""
        return principal == self.owner or principal in self.renewers

    def concerns(self, principal: str) -> bool:
        """Return whether a principal may describe the token without a permission."""
        return principal == self.requester or self.may_be_renewed_by(principal)


def principal_text(principal: Principal) -> str:
    """Return a principal as tokens and ACLs write it."""
    return f"{principal.type}:{principal.name}"


def principal_of(text: str) -> Principal:
    """Return the principal of a stored token; as in Kafka, a type has no colon."""
    kind, _, name = text.partition(":")
    return Principal(kind, name)


def principal_fields(principal: Principal, prefix: str) -> dict[str, str]:
    """Return a principal as the two prefixed fields of a response."""
    return {
        f"{prefix}principal_type": principal.type,
        f"{prefix}principal_name": principal.name,
    }


def token_of(body: Any) -> DelegationToken:
    """Return the token of a DelegationTokenRecord."""
    return DelegationToken(
        token_id=body.token_id,
        owner=body.owner,
        requester=body.requester,
        renewers=tuple(body.renewers),
        issue_ms=body.issue_timestamp,
        expiry_ms=body.expiration_timestamp,
        max_ms=body.max_timestamp,
    )


def token_record(token: DelegationToken) -> MetadataRecord:
    """Return the DelegationTokenRecord of a token."""
    return metadata_record(
        RecordType.DELEGATION_TOKEN,
        token_id=token.token_id,
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issue_ms,
        expiration_timestamp=token.expiry_ms,
        max_timestamp=token.max_ms,
    )


def token_hmac(secret: str, token_id: str) -> bytes:
    """Return the HMAC of a token id; `secret` is delegation.token.secret.key."""
    return keyed_digest(_HASH, secret.encode(), token_id.encode())


def token_password(hmac: bytes) -> str:
    """Return an HMAC as a SCRAM password."""
    return base64.b64encode(hmac).decode("ascii")
