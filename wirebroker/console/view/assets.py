"""The static files, read once; their addresses contain a hash, so that browsers keep them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final, NamedTuple

_FOLDER: Final = Path(__file__).resolve().parent.parent / "static"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


class Asset(NamedTuple):
    """A static file."""

    content: bytes
    content_type: str
    version: str


class Assets:
    """All static files by name."""

    __slots__ = ("_files",)

    def __init__(self) -> None:
        self._files = {
            path.name: _asset(path) for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES
        }

    def get(self, name: str) -> Asset | None:
        """Return a file, or None."""
        return self._files.get(name)

    def url(self, name: str) -> str:
        """Return the address of an existing file."""
        return f"/static/{name}?v={self._files[name].version}"


def _asset(path: Path) -> Asset:
    content = path.read_bytes()
    return Asset(content, _TYPES[path.suffix], hashlib.sha256(content).hexdigest()[:12])
