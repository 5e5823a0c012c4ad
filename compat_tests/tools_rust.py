"""The group member that is written with rust-rdkafka, built once by the Rust on PATH.

Rust is in no registry that an ordinary user's Python reaches, so a machine without it goes without
this client. The build compiles librdkafka too: a C compiler and make are needed, and a minute.
"""

from __future__ import annotations

import shutil
from functools import cache
from typing import TYPE_CHECKING

from compat_tests.tools_go import sources_hash
from tests.support import tools

if TYPE_CHECKING:
    from pathlib import Path

PROGRAMS = tools.PROJECT / "compat_tests" / "groups" / "rust"


def is_here() -> bool:
    """Say whether the member can be built on this machine."""
    return all(shutil.which(program) for program in ("cargo", "cc", "make"))


@cache
def member_command() -> list[str]:
    """Return the command of the member program; build it if it has changed."""
    folder = tools._installed(f"rust-member-{sources_hash(PROGRAMS)}", _build)
    return [str(folder / "member")]


def _build(folder: Path) -> None:
    target = tools.TOOLS / "rust-target"
    build = ["cargo", "build", "--locked", "--quiet", "--target-dir", str(target)]
    tools._run(build, directory=PROGRAMS)
    shutil.copy(target / "debug" / "member", folder)
