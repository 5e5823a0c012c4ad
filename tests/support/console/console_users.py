"""Files of users and tokens for tests; the hashes cost little."""

from __future__ import annotations

from typing import TYPE_CHECKING

import argon2

from wirebroker.console.login.access_tokens import access_token_hash
from wirebroker.console.login.credential_file import Credential, write_credentials
from wirebroker.console.login.grants import grants_of

if TYPE_CHECKING:
    from pathlib import Path

PASSWORD = "a password"
_HASH = argon2.PasswordHasher(time_cost=1, memory_cost=64, parallelism=1).hash(PASSWORD)


def write_users(path: Path, **roles: str) -> Path:
    """Write users with the password above, and their roles by name."""
    write_credentials(
        path, [Credential(name, _HASH, grants_of(role)) for name, role in roles.items()]
    )
    return path


def token_of(name: str) -> str:
    return f"wbc_{name * 10}"


def write_tokens(path: Path, **roles: str) -> Path:
    """Write tokens (`token_of`) and their roles by name."""
    write_credentials(
        path,
        [
            Credential(name, access_token_hash(token_of(name)), grants_of(role))
            for name, role in roles.items()
        ],
    )
    return path
