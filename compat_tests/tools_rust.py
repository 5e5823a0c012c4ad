"""The programs that are written with rust-rdkafka, each built once by the Rust on PATH.

Rust is in no registry that an ordinary user's Python reaches, so a machine without it goes without
this client. The build compiles librdkafka too: a C compiler and make are needed, and a minute; with
TLS also OpenSSL's headers, which pkg-config finds.
"""

from __future__ import annotations

import shutil
import subprocess
from functools import cache, partial
from typing import TYPE_CHECKING

from compat_tests.tools_go import sources_hash
from tests.support import tools

if TYPE_CHECKING:
    from pathlib import Path

_PROJECTS = tools.PROJECT / "compat_tests"
_MEMBER = _PROJECTS / "groups" / "rust"
_SECURED = _PROJECTS / "security" / "rust"


def is_here() -> bool:
    """Say whether the group member can be built on this machine."""
    return all(shutil.which(program) for program in ("cargo", "cc", "make"))


@cache
def has_tls() -> bool:
    """Say whether a client with TLS can be built."""
    if not is_here() or not shutil.which("pkg-config"):
        return False
    done = subprocess.run(["pkg-config", "--exists", "openssl"], check=False)
    return done.returncode == 0


@cache
def member_command() -> list[str]:
    """Return the command of the group member; build it if it has changed."""
    return [str(_built(_MEMBER, "member"))]


@cache
def secured_command() -> list[str]:
    """Return the command of the client with TLS and SASL; build it if it has changed."""
    return [str(_built(_SECURED, "secured"))]


def _built(project: Path, name: str) -> Path:
    build = partial(_build, project, name)
    return tools._installed(f"rust-{name}-{sources_hash(project)}", build) / name


def _build(project: Path, name: str, folder: Path) -> None:
    target = tools.TOOLS / "rust-target"
    build = ["cargo", "build", "--locked", "--quiet", "--target-dir", str(target)]
    tools._run(build, directory=project)
    shutil.copy(target / "debug" / name, folder)
