"""A copy of the project with its compiled modules in place, for tests and benchmarks.

    python -m compiling.tree FOLDER

Copies the files that are or will be committed, and codecs/generated; compiles only if a relevant
source has changed. The wheel stays in FOLDER/dist.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from compiling.build_choice import VARIABLE, what_is_missing
from compiling.messages.build import MODULES, make_modules
from compiling.modules import compiled_paths

ROOT = Path(__file__).resolve().parent.parent
_PACKAGES = ("wirebroker", "codecs", "storage", "coordinator")
_BUILD_FILES = ("pyproject.toml", "setup.py", "compiling")
_NOTE = "compiled-from"


def make_tree(folder: Path) -> Path:
    """Update the copy, protected by a lock, and return its wheel.

    Raises:
        subprocess.CalledProcessError: pip failed.
        RuntimeError: Compiling failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _make_tree(folder)


def is_current(folder: Path) -> bool:
    """Return whether the copy is compiled from the current sources."""
    note = folder / _NOTE
    return note.exists() and note.read_text(encoding="ascii") == _digest(_project_files())


def _make_tree(folder: Path) -> Path:
    make_modules()
    names = _project_files()
    note = folder / _NOTE
    sources = _digest(names)
    wheels = list((folder / "dist").glob("*.whl"))
    if len(wheels) == 1 and note.exists() and note.read_text(encoding="ascii") == sources:
        _copy(names, folder)  # tests and documentation
        return wheels[0]
    note.unlink(missing_ok=True)
    _copy(names, folder)
    wheel = _build(folder)
    note.write_text(sources, encoding="ascii")
    return wheel


def copy_project(folder: Path) -> None:
    """Copy the project into a new folder."""
    make_modules()
    _copy(_project_files(), folder)


def _project_files() -> list[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    module_files = {path.relative_to(ROOT).as_posix() for path in MODULES.glob("*.py")}
    names = sorted((set(result.stdout.split("\0")) | module_files) - {""})
    return [name for name in names if (ROOT / name).is_symlink() or (ROOT / name).is_file()]


def _copy(names: list[str], folder: Path) -> None:
    for name in names:
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.is_symlink():
            shutil.copy2(source, target, follow_symlinks=False)
    expected = set(names)
    for package in (*_PACKAGES, "tests", "benchmarks", "spark_it", "compat_tests"):
        for path in (folder / package).rglob("*.py"):
            if str(path.relative_to(folder)) not in expected:
                path.unlink()


def _digest(names: list[str]) -> str:
    # All sources count, because the compiler uses the types of imported modules.
    digest = hashlib.sha256(sys.version.encode())
    for name in names:
        if name.split("/")[0] in (*_PACKAGES, *_BUILD_FILES) and (ROOT / name).is_file():
            digest.update(name.encode() + b"\0" + (ROOT / name).read_bytes())
    return digest.hexdigest()


def _build(folder: Path) -> Path:
    for old in folder.rglob("*.so"):
        old.unlink()
    for output_name in ("build", "dist"):
        shutil.rmtree(folder / output_name, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    # An optional build, as of `pip install .`; missing modules raise below.
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    command = [*pip, "wheel", "--no-deps", "--wheel-dir", "dist", "."]
    subprocess.run(command, cwd=folder, env=environment, check=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        compiled = [name for name in archive.namelist() if name.endswith(".so")]
        if len(compiled) <= len(compiled_paths()):  # plus hand-written C
            raise RuntimeError(what_is_missing() or "compiling failed: pip wheel -v . shows why")
        archive.extractall(folder, compiled)
    return wheel


if __name__ == "__main__":
    _parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    _parser.add_argument("folder", type=Path, metavar="FOLDER")
    make_tree(_parser.parse_args().folder.resolve())
