"""Tokens of the HTTP interface: random, so that a plain hash protects those in the file."""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import Final

_PREFIX: Final = "wbc_"
_TOKEN_BYTES: Final = 32
_HASH: Final = re.compile(r"sha256\$[0-9a-f]{64}")
_MOST_CHARACTERS: Final = 200


def new_access_token() -> str:
    """Return a random token."""
    return _PREFIX + secrets.token_urlsafe(_TOKEN_BYTES)


def access_token_hash(token: str) -> str:
    """Return the hash of a token."""
    value = token[:_MOST_CHARACTERS].encode("utf-8", "surrogatepass")
    return f"sha256${hashlib.sha256(value).hexdigest()}"


def check_token_hash(text: str) -> None:
    """Check the form of a hash.

    Raises:
        ValueError: It has another form.
    """
    if not _HASH.fullmatch(text):
        raise ValueError("the hash has another form: create it with `wirebroker console-token`")


def bearer_token(header: str | None) -> str | None:
    """Return the token of a header `Authorization: Bearer TOKEN`, or None."""
    scheme, _, token = (header or "").partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and token else None
