"""A disk of some megabytes that a test can fill."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PIECE = bytes(1 << 16)


class SmallDisk:
    """A mounted file system."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self) -> None:
        """Use all space."""
        with contextlib.suppress(OSError), self._ballast.open("ab", buffering=0) as file:
            while True:
                file.write(_PIECE)

    def make_room(self) -> None:
        """Free the space."""
        self._ballast.unlink()


@contextlib.contextmanager
def small_disk(path: Path, megabytes: int) -> Iterator[SmallDisk]:
    """Mount a disk; skip the test without root."""
    if shutil.which("mount") is None:
        pytest.skip("no small disk can be mounted: there is no mount")
    path.mkdir()
    size = ("-o", f"size={megabytes}m")
    mount = ["mount", "-t", "tmpfs", *size, "wirebroker-tests", str(path)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no small disk can be mounted: {done.stderr.strip()}")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)
