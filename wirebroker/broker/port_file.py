"""The file that tells whoever started the broker which port it has (`--port-file`)."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from wirebroker.config import StartError

if TYPE_CHECKING:
    from pathlib import Path


class PortFile:
    """One such file, or none if nobody wants it."""

    __slots__ = ("_path",)

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def remove(self) -> None:
        """Remove it: whoever waits for it must not read the port of an earlier run."""
        if self._path is not None:
            # What cannot be removed is said when the port is to be written.
            with contextlib.suppress(OSError):
                self._path.unlink()

    def write(self, port: int) -> None:
        """Write the port whole: whoever finds the file can read it.

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
                "choose a place that can be written (--port-file FILE)",
            ) from error
