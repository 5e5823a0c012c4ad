"""Hashes with and without a key, for logins; `name` is hashlib's name of a hash.

Imports of `hashlib` and `hmac` wait for the first login: OpenSSL costs 1 MB and some milliseconds.

Source: RFC 2104, RFC 8018.
"""

from __future__ import annotations


def digest(name: str, data: bytes) -> bytes:
    """Return a hash of data."""
    import hashlib  # noqa: PLC0415 - see above

    return hashlib.new(name, data).digest()


def keyed_digest(name: str, key: bytes, data: bytes) -> bytes:
    """Return the HMAC of data."""
    import hmac  # noqa: PLC0415 - see above

    return hmac.digest(key, data, name)


def stretched(name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    """Return the PBKDF2 of a password; slow on purpose."""
    import hashlib  # noqa: PLC0415 - see above

    return hashlib.pbkdf2_hmac(name, password, salt, iterations)


def spread(secret: bytes, size: int) -> bytes:
    """Return `size` bytes that depend only on the secret (SHAKE256)."""
    import hashlib  # noqa: PLC0415 - see above

    return hashlib.shake_256(secret).digest(size)


def are_same(one: bytes, other: bytes) -> bool:
    """Compare in constant time."""
    import hmac  # noqa: PLC0415 - see above

    return hmac.compare_digest(one, other)
