"""The Python interpreters of this machine that wheels are compiled for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

OLDEST = (3, 11)
_NAME = re.compile(r"python3\.\d+")
# Fails without headers or the module `venv`.
_ABOUT = (
    "import ensurepip, os, sys, sysconfig, venv;"
    "header = os.path.join(sysconfig.get_path('include'), 'Python.h');"
    "os.stat(header);"
    "print(sys.implementation.name, *sys.version_info[:3], sysconfig.get_config_var('SOABI'))"
)


class Interpreter(NamedTuple):
    """A CPython that can compile extensions.

    Attributes:
        path: Its command.
        abi: The suffix of its extensions' names, such as `cpython-311-x86_64-linux-gnu`.
    """

    path: Path
    version: tuple[int, int, int]
    abi: str


def interpreters(directories: list[Path] | None = None) -> list[Interpreter]:
    """Return a CPython of each ABI from 3.11 on, oldest first.

    By default the directories are those on PATH. This process's Python takes precedence.
    """
    if directories is None:
        directories = [Path(part) for part in os.get_exec_path()]
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    by_abi: dict[str, Interpreter] = {}
    for path in [base, *_commands(directories)]:
        interpreter = _inspect(path)
        if interpreter is not None and interpreter.version[:2] >= OLDEST:
            by_abi.setdefault(interpreter.abi, interpreter)
    return sorted(by_abi.values(), key=lambda interpreter: (interpreter.version, interpreter.abi))


def _commands(directories: list[Path]) -> list[Path]:
    return [
        path
        for directory in directories
        if directory.is_dir()
        for path in sorted(directory.iterdir())
        if _NAME.fullmatch(path.name)
    ]


def _inspect(path: Path) -> Interpreter | None:
    try:
        result = subprocess.run(
            [path, "-I", "-c", _ABOUT], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = result.stdout.split()
    if result.returncode != 0 or len(words) != 5 or words[0] != "cpython":
        return None
    major, minor, micro = (int(word) for word in words[1:4])
    return Interpreter(path, (major, minor, micro), words[4])
