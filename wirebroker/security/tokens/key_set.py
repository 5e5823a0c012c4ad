"""JSON Web Keys, and the choice of the key for a token's signature (RFC 7517).

The first key that matches the token's key id (if any), type, use, algorithm and curve is used. If
it is too short, the token is refused.

Source: jose4j's VerificationJwkSelector, SimpleJwkFilter and KeyValidationSupport, as in Kafka.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Iterable

logger = logging.getLogger("wirebroker.security")

# Key type and curve.
ALGORITHMS: Final = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", None)),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", None),
}
_TYPES: Final = frozenset(kind for kind, _ in ALGORITHMS.values())
# RFC 7518, section 3.3.
_LEAST_RSA_BITS: Final = 2048


class PublicKey(NamedTuple):
    """A key of a set: its `kid`, `kty`, `alg` (None for any that fits) and `crv` (None for RSA)."""

    key_id: str | None
    kind: str
    algorithm: str | None
    curve: str | None
    key: Any
    is_long_enough: bool


def usable_keys(rows: Iterable[object], path: str, jwt: Any) -> tuple[PublicKey, ...]:
    """Return the usable signing keys of a set; log others with `path`, their source."""
    keys: list[PublicKey] = []
    for number, row in enumerate(rows):
        key = _key(row, jwt)
        if key is None:  # the reason would reveal the key
            logger.info("key %d in %s is not a usable signing key; ignored", number, path)
        else:
            keys.append(key)
    return tuple(keys)


def select(keys: Iterable[PublicKey], algorithm: str, key_id: str | None) -> PublicKey | None:
    """Return the key of a token with this header."""
    kind, curve = ALGORITHMS[algorithm]
    fitting = [key for key in keys if key.kind == kind and (key_id is None or key.key_id == key_id)]
    if len(fitting) > 1:
        fitting = [key for key in fitting if key.algorithm in {None, algorithm}]
    if len(fitting) > 1 and curve is not None:
        fitting = [key for key in fitting if key.curve == curve]
    return fitting[0] if fitting else None


def _key(row: object, jwt: Any) -> PublicKey | None:
    if not isinstance(row, dict):
        return None
    fields = cast("dict[str, Any]", row)
    operations = fields.get("key_ops")
    if fields.get("use") not in {None, "sig"} or fields.get("kty") not in _TYPES:
        return None
    if operations is not None and not (isinstance(operations, list) and "verify" in operations):
        return None
    key = _parsed({name: value for name, value in fields.items() if name != "alg"}, jwt)
    key_id, algorithm = fields.get("kid"), fields.get("alg")
    if key is None or not isinstance(key_id, str | None) or not isinstance(algorithm, str | None):
        return None
    is_long_enough = getattr(key, "key_size", _LEAST_RSA_BITS) >= _LEAST_RSA_BITS
    kind = str(fields["kty"])
    curve = str(fields["crv"]) if "crv" in fields else None
    return PublicKey(key_id, kind, algorithm, curve, key, is_long_enough or kind != "RSA")


def _parsed(row: dict[str, Any], jwt: Any) -> Any:
    invalid_key_errors = (
        TypeError,
        ValueError,
        AttributeError,
        NotImplementedError,
        RecursionError,
    )
    try:
        key = jwt.PyJWK(row).key
    except (*invalid_key_errors, jwt.PyJWTError):
        return None
    return key.public_key() if hasattr(key, "private_bytes") else key
