"""Test of a wheel in a clean environment, without a package index.

the wheel and its dependencies as files --> a new environment --> `wirebroker --version`,
`serve`, `produce`, `consume` there
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from compiling.release.broker_client import TrialError, check_produce_consume, run

if TYPE_CHECKING:
    from compiling.release.interpreters import Interpreter


def fetch_needed(wheel: Path, interpreter: Interpreter, folder: Path) -> None:
    """Download the wheel's dependencies for that Python; no other step uses the network."""
    with tempfile.TemporaryDirectory() as name:
        python = _environment(interpreter, Path(name))
        run([*_pip(python), "wheel", "--quiet", "--wheel-dir", str(folder), str(wheel)])


def try_wheel(
    wheel: Path, interpreter: Interpreter, needed: Path, environment: Path, *, says: str
) -> None:
    """Install the wheel without a network, start its broker, send and read records.

    Args:
        wheel: The wheel.
        interpreter: The Python.
        needed: A folder of wheels (`fetch_needed`).
        environment: The folder of the installation, which is kept.
        says: The expected output of `wirebroker --version`.

    Raises:
        TrialError: The wheel does not work.
    """
    python = _environment(interpreter, environment)
    offline = ["--no-index", "--find-links", str(needed)]
    run([*_pip(python), "install", "--quiet", *offline, str(wheel)])
    command = str(python.with_name("wirebroker"))
    with tempfile.TemporaryDirectory() as name:
        reported = run([command, "--version"], cwd=name).strip()
        if reported != says:
            raise TrialError(f"{wheel.name} reports {reported!r}, not {says!r}")
        check_produce_consume(command, Path(name))


def _environment(interpreter: Interpreter, folder: Path) -> Path:
    run([str(interpreter.path), "-m", "venv", "--clear", "--without-pip", str(folder)])
    return folder / "bin" / "python"


def _pip(python: Path) -> list[str]:
    return [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
