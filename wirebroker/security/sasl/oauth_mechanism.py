"""OAUTHBEARER (RFC 7628), the server's side: one message with a token.

    n,[a=<authorization id>],^Aauth=Bearer <token>^A[<key>=<value>^A]…^A

The response to a refused token is a status; the client must then send ^A.

Source: Kafka's OAuthBearerSaslServer, OAuthBearerClientInitialResponse.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from wirebroker.security.sasl.mechanisms import NotProvedError
from wirebroker.security.tokens.tokens import BadTokenError

if TYPE_CHECKING:
    from wirebroker.security.tokens.tokens import TokenChecks

# Strings: re compiles them at the first use; most brokers have no tokens.
_FIRST: Final = (
    r"n,(?:a=(?P<authzid>(?:[^\x00,=\x80-\U0010ffff]++|=2C|=3D)++))?,\x01"
    r"(?P<pairs>(?:[A-Za-z]++=[\x21-\x7e \t\r\n]++\x01)*+)\x01"
)
_BEARER: Final = r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)"
_GIVE_UP: Final = b"\x01"
# 100,000 would take 40 ms.
_MOST_PAIRS: Final = 1_000


class OAuthMechanism:
    """OAUTHBEARER: a bearer token."""

    __slots__ = ("_checks", "_refusal", "expires_ms", "user")

    def __init__(self, checks: TokenChecks) -> None:
        self._checks = checks
        self._refusal: NotProvedError | None = None
        self.user: str | None = None
        # The token's, in wall time, once there is a user.
        self.expires_ms: int | None = None

    @property
    def is_for_thread(self) -> bool:
        """Whether the check must first read changed keys."""
        return self._refusal is None and self._checks.must_read

    def step(self, message: bytes) -> bytes:
        """Check the token; return nothing, or the status of a refusal."""
        if self._refusal is not None:
            if message == _GIVE_UP:
                raise self._refusal
            raise NotProvedError("unexpected message after the token was refused")
        authorization_id, token = _parsed(message)
        try:
            owner = self._checks.owner(token)
        except BadTokenError as error:
            status = f'{{"status":"{error.status}"}}'
            self._refusal = NotProvedError(str(error), status)
            return status.encode()
        if authorization_id and authorization_id != owner.name:
            raise NotProvedError(
                "its authorization id differs from the token's principal",
                "Authentication failed: Client requested an authorization id that is different "
                "from the token's principal name",
            )
        self.user, self.expires_ms = owner
        return b""


def _parsed(message: bytes) -> tuple[str, str]:
    if message.count(b"\x01") > _MOST_PAIRS:
        raise NotProvedError("a message with too many pairs")
    try:
        match = re.fullmatch(_FIRST, message.decode())
    except UnicodeDecodeError:
        match = None
    if match is None:
        raise NotProvedError("not an OAUTHBEARER message")
    pairs = dict(pair.split("=", 1) for pair in match["pairs"].split("\x01") if pair)
    bearer = re.fullmatch(_BEARER, pairs.get("auth", ""))
    if bearer is None or bearer["scheme"].lower() != "bearer":
        raise NotProvedError("its message has no bearer token")
    authorization_id = (match["authzid"] or "").replace("=2C", ",").replace("=3D", "=")
    return authorization_id, bearer["token"]
