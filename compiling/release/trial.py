"""A wheel tried as its user would: a clean environment, no index, a broker that is spoken to.

the wheel and what it needs, in files --> a fresh environment --> `wirebroker --version`,
`serve`, `produce`, `consume` there
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from compiling.release.spoken_to import TrialError, run, speak

if TYPE_CHECKING:
    from compiling.release.interpreters import Interpreter


def fetch_needed(wheel: Path, interpreter: Interpreter, folder: Path) -> None:
    """Put what the wheel needs, for that Python, into the folder: the one step with a network."""
    with tempfile.TemporaryDirectory() as name:
        python = _environment(interpreter, Path(name))
        run([*_pip(python), "wheel", "--quiet", "--wheel-dir", str(folder), str(wheel)])


def try_wheel(
    wheel: Path, interpreter: Interpreter, needed: Path, environment: Path, *, says: str
) -> None:
    """Install the wheel without a network, start its broker, send and read records.

    Args:
        wheel: What is tried.
        interpreter: The Python that it is installed for.
        needed: A folder of wheels (`fetch_needed`).
        environment: Where it is installed; stays, for whoever wants to look at it.
        says: What `wirebroker --version` has to answer.

    Raises:
        TrialError: Something was otherwise.
    """
    python = _environment(interpreter, environment)
    offline = ["--no-index", "--find-links", str(needed)]
    run([*_pip(python), "install", "--quiet", *offline, str(wheel)])
    command = str(python.with_name("wirebroker"))
    with tempfile.TemporaryDirectory() as name:
        said = run([command, "--version"], cwd=name).strip()
        if said != says:
            raise TrialError(f"{wheel.name} says {said!r} of itself, not {says!r}")
        speak(command, Path(name))


def _environment(interpreter: Interpreter, folder: Path) -> Path:
    """Make a clean environment and return its Python."""
    run([str(interpreter.path), "-m", "venv", "--clear", "--without-pip", str(folder)])
    return folder / "bin" / "python"


def _pip(python: Path) -> list[str]:
    """Return the command of this environment's pip, for another environment."""
    return [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
