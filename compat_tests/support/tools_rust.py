"""Test programs for rust-rdkafka, each built once by the Rust on PATH.

No package registry for Python has Rust, so machines without it skip this client. The build also
compiles librdkafka and takes a minute: it needs a C compiler, make and, for TLS, OpenSSL's headers,
which pkg-config finds. The Kerberos libraries come from Debian.
"""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from typing import TYPE_CHECKING

from tests.support.tools import tools

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_PROJECTS = tools.PROJECT / "compat_tests"
_MEMBER = _PROJECTS / "groups" / "rust"
_SECURED = _PROJECTS / "security" / "rust"


def is_here() -> bool:
    return all(shutil.which(program) for program in ("cargo", "cc", "make"))


@cache
def has_tls() -> bool:
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
    return [str(_built(_SECURED, "secured"))]


@cache
def kerberos_command() -> list[str]:
    """Return the command of the client with GSSAPI (Cyrus' library); build it if it has changed."""
    libraries, headers = _sasl()
    environment = {
        "SASL2_LIB_DIR": str(libraries),
        "SASL2_INCLUDE_DIR": str(headers),
        "CFLAGS": f"-I{headers}",
        "LDFLAGS": f"-L{libraries}",
    }
    return [str(_built(_SECURED, "secured", "kerberos", environment))]


def kerberos_environment() -> dict[str, str]:
    return {"LD_LIBRARY_PATH": str(_sasl()[0])}


def _sasl() -> tuple[Path, Path]:
    folder = tools.debian_packages("sasl", ("libsasl2-2", "libsasl2-dev")) / "usr"
    return next(folder.glob("lib/*/libsasl2.so")).parent, folder / "include"


def _built(
    project: Path, name: str, features: str = "", environment: Mapping[str, str] | None = None
) -> Path:
    kind = f"{name}-{features}".rstrip("-")
    target = tools.TOOLS / f"rust-target-{features}".rstrip("-")
    build = ["cargo", "build", "--locked", "--quiet", "--target-dir", str(target)]
    build += ["--features", features]

    def install(folder: Path) -> None:
        tools._run(build, environment, directory=project)
        shutil.copy(target / "debug" / name, folder)

    return tools._installed(f"rust-{kind}-{tools.sources_hash(project)}", install) / name
