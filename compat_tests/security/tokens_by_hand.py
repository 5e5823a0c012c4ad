"""Handmade tokens (JWT): validly signed, wrongly signed, unsigned."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import jwt
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from wirebroker.base.clock import SystemClock

ISSUER, AUDIENCE = "https://identity.example.org", "kafka"
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
ELLIPTIC = ec.generate_private_key(ec.SECP256R1())
STRANGER = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def now() -> int:
    return SystemClock().now_ms() // 1000


def claims(**overrides: Any) -> dict[str, Any]:
    defaults = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "iat": now(), "exp": now() + 300}
    return {name: value for name, value in (defaults | overrides).items() if value is not None}


def signed(
    key: Any = RSA, algorithm: str = "RS256", header: dict[str, Any] | None = None, **overrides: Any
) -> str:
    return jwt.encode(claims(**overrides), key, algorithm, headers={"kid": "one", **(header or {})})


def signed_as_it_is(**overrides: Any) -> str:
    """Sign claims that libraries refuse to sign."""
    parts = [encoded(json.dumps(part).encode()) for part in ({"alg": "RS256"}, claims(**overrides))]
    signature = RSA.sign(".".join(parts).encode(), padding.PKCS1v15(), hashes.SHA256())
    return ".".join([*parts, encoded(signature)])


def encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).decode().rstrip("=")


def signed_with_the_public_key() -> str:
    """Return a token whose secret is the public key (CVE-2015-9235)."""
    secret = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    parts = [encoded(json.dumps(part).encode()) for part in ({"alg": "HS256"}, claims())]
    signature = hmac.new(secret, ".".join(parts).encode(), hashlib.sha256).digest()
    return ".".join([*parts, encoded(signature)])


def unsigned(algorithm: str = "none", **overrides: Any) -> str:
    parts = (json.dumps(part).encode() for part in ({"alg": algorithm}, claims(**overrides)))
    return ".".join(map(encoded, parts)) + "."


def changed() -> str:
    head, _, signature = signed().split(".")
    return ".".join((head, encoded(json.dumps(claims(sub="admin")).encode()), signature))


def own_key_within() -> str:
    within = jwt.algorithms.RSAAlgorithm.to_jwk(STRANGER.public_key(), as_dict=True)
    return signed(STRANGER, header={"jwk": within})


def keys() -> bytes:
    rows = [
        {**jwt.algorithms.RSAAlgorithm.to_jwk(RSA.public_key(), as_dict=True), "kid": "one"},
        {**jwt.algorithms.ECAlgorithm.to_jwk(ELLIPTIC.public_key(), as_dict=True), "kid": "two"},
    ]
    return json.dumps({"keys": rows}).encode()
