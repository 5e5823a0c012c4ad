"""Hashes of passwords (argon2id); the only import of argon2.

A check takes about 50 ms of CPU time and 32 MiB. Hashes of other programs may take more, up to the
bounds below.
"""

from __future__ import annotations

from typing import Final

import argon2

_MEMORY_KIB: Final = 32 << 10
_TIME_COST: Final = 3
_MOST_MEMORY_KIB: Final = 64 << 10
_MOST_TIME_COST: Final = 10
_MOST_LANES: Final = 8
MOST_PASSWORD_BYTES: Final = 1024

_HASHER: Final = argon2.PasswordHasher(
    time_cost=_TIME_COST, memory_cost=_MEMORY_KIB, parallelism=1, hash_len=32, salt_len=16
)


def hash_of(password: str) -> str:
    """Return a hash with a new salt."""
    return _HASHER.hash(_encoded(password))


def matches(password_hash: str, password: str) -> bool:
    """Return whether a password has this hash."""
    try:
        return _HASHER.verify(password_hash, _encoded(password))
    except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
        return False


def _encoded(password: str) -> bytes:
    return password.encode("utf-8", "surrogatepass")


def check_hash(text: str) -> None:
    """Check the form of a hash, and what a check of it costs.

    Raises:
        ValueError: It is not a hash of argon2id, or costs more than the bounds.
    """
    try:
        parameters = argon2.extract_parameters(text)
    except argon2.exceptions.InvalidHashError:
        raise ValueError(
            "the hash is not one of argon2id: write it with `wirebroker console-user set`"
        ) from None
    if parameters.type is not argon2.Type.ID:
        raise ValueError("the hash is not one of argon2id")
    if (
        parameters.memory_cost > _MOST_MEMORY_KIB
        or parameters.time_cost > _MOST_TIME_COST
        or parameters.parallelism > _MOST_LANES
    ):
        raise ValueError(
            f"checking the hash costs too much: the limits are m={_MOST_MEMORY_KIB},"
            f" t={_MOST_TIME_COST}, p={_MOST_LANES}"
        )
