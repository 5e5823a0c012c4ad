"""Hashes with and without a key, for logins.

Python's modules of them load OpenSSL, 1 MB and some milliseconds of every start: they are imported
where the first login asks.

A leaf. Source: RFC 2104, RFC 8018.
"""

from __future__ import annotations


def digest(name: str, data: bytes) -> bytes:
    """Return a hash, by its name of hashlib's."""
    import hashlib  # noqa: PLC0415 - see above

    return hashlib.new(name, data).digest()


def keyed_digest(name: str, key: bytes, data: bytes) -> bytes:
    """Return HMAC of data."""
    import hmac  # noqa: PLC0415 - see above

    return hmac.digest(key, data, name)


def stretched(name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    """Return PBKDF2 of a password; takes some milliseconds on purpose."""
    import hashlib  # noqa: PLC0415 - see above

    return hashlib.pbkdf2_hmac(name, password, salt, iterations)


def spread(secret: bytes, size: int) -> bytes:
    """Return as many bytes as are wanted, always the same ones of a secret (SHAKE256)."""
    import hashlib  # noqa: PLC0415 - see above

    return hashlib.shake_256(secret).digest(size)


def are_same(one: bytes, other: bytes) -> bool:
    """Compare in a time that does not say where they differ."""
    import hmac  # noqa: PLC0415 - see above

    return hmac.compare_digest(one, other)
