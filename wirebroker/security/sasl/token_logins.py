"""Logins by delegation token: the token's owner, and SCRAM keys of its HMAC (KIP-48).

Keys are derived at a token's first login. Token ids cannot be guessed, so a slower first login
reveals nothing.

Source: Kafka's DelegationTokenManager.prepareScramCredentials, ScramServerCallbackHandler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.delegation_token import token_hmac, token_password
from wirebroker.codecs.hashes import keyed_digest
from wirebroker.codecs.scram import (
    LEAST_ITERATIONS,
    SALT_BITS,
    ScramKeys,
    keys_of,
    salt_of,
    salted_password,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.base.clock import Clock
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage

# 250 bytes each; the oldest are dropped.
_MOST_KEPT: Final = 10_000
_USER: Final = "User:"


class TokenLogin(NamedTuple):
    """A login by token; its keys are of the HMAC as a password, its expiry is wall time."""

    owner: str
    keys: ScramKeys
    expires_ms: int


class TokenLogins:
    """The cluster's delegation tokens, for logins."""

    __slots__ = ("_cached_keys", "_clock", "_image", "_salt_key", "_secret")

    def __init__(
        self,
        secret: str | None,
        image: Callable[[], ClusterImage],
        clock: Clock,
        *,
        salt_key: Callable[[], bytes],
    ) -> None:
        """Create it; without `secret` (delegation.token.secret.key) tokens are disabled."""
        self._secret = secret
        self._image = image
        self._clock = clock
        self._salt_key = salt_key
        self._cached_keys: dict[tuple[str, int, bytes], ScramKeys] = {}

    def find(self, token_id: str, mechanism: int) -> TokenLogin | None:
        """Return a token's login; None if it is unknown, expired or not of a user."""
        token = self._image().delegation_token(token_id)
        if self._secret is None or token is None or token.has_expired(self._clock.now_ms()):
            return None
        if not token.owner.startswith(_USER):  # another type's principal
            return None
        keys = self._keys(self._secret, token_id, mechanism)
        return TokenLogin(token.owner.removeprefix(_USER), keys, token.expiry_ms)

    def _keys(self, secret: str, token_id: str, mechanism: int) -> ScramKeys:
        salt_key = self._salt_key()
        keys = self._cached_keys.get((token_id, mechanism, salt_key))
        if keys is None:
            chance = keyed_digest("sha256", salt_key, f"{mechanism}{token_id}".encode())
            salt = salt_of(int.from_bytes(chance, "big") >> (256 - SALT_BITS))
            password = token_password(token_hmac(secret, token_id))
            salted = salted_password(mechanism, password, salt, LEAST_ITERATIONS)
            keys = keys_of(mechanism, salted, salt=salt, iterations=LEAST_ITERATIONS)
            if len(self._cached_keys) >= _MOST_KEPT:
                del self._cached_keys[next(iter(self._cached_keys))]
            self._cached_keys[token_id, mechanism, salt_key] = keys
        return keys
