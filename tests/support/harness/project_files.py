"""The project's files, for the tests that check all of them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# What commands of a checkout import.
_PACKAGES = ("codecs", "compiling", "coordinator", "spark_it", "storage", "wirebroker")


def project_files() -> list[Path]:
    """List the files and links that are or will be committed.

    Without git (in an sdist) these are all files except hidden and built ones.
    """
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        paths = [ROOT / name for name in sorted(set(done.stdout.split("\0"))) if name]
    else:
        paths = [path for path in sorted(ROOT.rglob("*")) if not _is_left_out(path)]
    return [path for path in paths if path.is_symlink() or path.is_file()]


def copy_of_the_project(folder: Path) -> Path:
    """Copy the project's files, links as links, into a new folder."""
    for path in project_files():
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target, follow_symlinks=False)
    return folder


def built_copy_of_the_project(folder: Path) -> Path:
    """Copy the project and what Python and `make modules` have made from it.

    A command in the copy need not generate and compile everything first, for some 10 s of CPU time.
    """
    copy_of_the_project(folder)
    for package in _PACKAGES:
        generated = (ROOT / package).rglob("generated/*.py")
        # Valid in the copy as well: it has the same modification times.
        for path in (*generated, *(ROOT / package).rglob("__pycache__/*.pyc")):
            target = folder / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)
    return folder


def _is_left_out(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    built = {"__pycache__", "build", "dist", "data"}
    return bool(built.intersection(parts)) or any(part.startswith(".") for part in parts)
