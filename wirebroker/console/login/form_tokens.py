"""Tokens of forms against requests that other sites forge (CSRF)."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Final

FIELD: Final = "csrf-token"


class FormTokens:
    """Derives a form's token from the browser's cookie, so it is useless with another cookie."""

    __slots__ = ("_secret",)

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def token_of(self, cookie: str) -> str:
        """Return the token of all forms of a browser."""
        value = cookie.encode("utf-8", "surrogatepass")
        return hmac.new(self._secret, value, hashlib.sha256).hexdigest()

    def is_valid(self, token: str, cookie: str) -> bool:
        """Return whether a token belongs to a cookie."""
        sent = token.encode("utf-8", "surrogatepass")
        return hmac.compare_digest(self.token_of(cookie).encode(), sent)
