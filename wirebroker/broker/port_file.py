"""File with the broker's port for the process that started it (`--port-file`)."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from wirebroker.config import StartError

if TYPE_CHECKING:
    from pathlib import Path


class PortFile:
    """A port file, or none."""

    __slots__ = ("_path",)

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def remove(self) -> None:
        """Remove the file of an earlier run."""
        if self._path is not None:
            # `write` reports the problem.
            with contextlib.suppress(OSError):
                self._path.unlink()

    def write(self, port: int) -> None:
        """Write the port atomically.

        Raises:
            StartError: It cannot be written.
        """
        if self._path is None:
            return
        path = self._path
        partial = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        try:
            partial.write_text(f"{port}\n")
            partial.rename(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise StartError(
                f"cannot write the port file {path}: {error.strerror or error}",
                "choose a writable path (--port-file FILE)",
            ) from error
