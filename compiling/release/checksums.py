"""SHA256SUMS: the checksums of a release's files, in the format of `sha256sum`."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

SUMS: Final = "SHA256SUMS"


def sums_of(folder: Path) -> str:
    """Return the lines for a folder's files except SHA256SUMS, ordered by name."""
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name != SUMS
    )
