"""An earlier commit of this project, taken from the git history and installed into a folder."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING, Final

from compiling.build_choice import VARIABLE
from tests.support.brokers.own_cluster import FirstBroker, JoinedBroker
from tests.support.harness.project_files import ROOT

if TYPE_CHECKING:
    from pathlib import Path

# The version that clusters are upgraded from, and that wrote the oldest directories.
COMMIT: Final = "80b693e"


class NoHistoryError(Exception):
    """The commit is not in this clone; says how to get it."""


def install_earlier(folder: Path, commit: str = COMMIT) -> Path:
    """Install a commit into a folder and return the folder to import it from.

    Raises:
        NoHistoryError: The history does not reach back to the commit.
    """
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        raise NoHistoryError(
            f"commit {commit} is not in the git history here: get it by `git fetch --unshallow`"
            f" (git said: {archive.stderr.decode(errors='replace').strip()})"
        )
    source, target = folder / "source", folder / "installed"
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(source, filter="tar")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run(
        [*pip, "--target", str(target), str(source)], check=True, env={**os.environ, VARIABLE: "0"}
    )
    # An import of this checkout's modules in place of the earlier ones would test nothing.
    command = [sys.executable, "-c", "import wirebroker; print(wirebroker.__file__)"]
    imported_from = subprocess.run(
        earlier_command(command, target), capture_output=True, text=True, check=True
    ).stdout
    assert imported_from.startswith(f"{target}{os.sep}"), imported_from
    return target


def earlier_command(command: list[str], installed: Path) -> list[str]:
    """Return a command of this version's as one of the earlier version's."""
    python, *arguments = command
    # -P: not from the current folder, which is this checkout.
    return ["env", f"PYTHONPATH={installed}", python, "-P", *arguments]


class EitherFirst(FirstBroker):
    """Node 1, the controller; of the earlier version while `installed` is set."""

    installed: Path | None = None

    def _command(self) -> list[str]:
        command = super()._command()
        return command if self.installed is None else earlier_command(command, self.installed)


class EitherJoined(JoinedBroker):
    """Another node; of the earlier version while `installed` is set."""

    installed: Path | None = None

    def _command(self) -> list[str]:
        command = super()._command()
        return command if self.installed is None else earlier_command(command, self.installed)
