"""The version of wirebroker, and whether its hot path is compiled."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from wirebroker import __version__

# One of the modules that are compiled together (compiling/modules.txt).
_COMPILED_MODULE = Path(__file__).parent.parent / "codecs" / "frames"

PLAIN_BUILD = (
    "this is the plain Python build: with a C compiler, pip compiles the hot path, which halves the"
    " CPU time of a small request"
)


def is_compiled() -> bool:
    """Return whether the hot path is compiled, without importing it."""
    return any(_COMPILED_MODULE.with_suffix(suffix).exists() for suffix in EXTENSION_SUFFIXES)


def version_text() -> str:
    """Return `0.1.0` or `0.1.0 (compiled)`."""
    return f"{__version__} (compiled)" if is_compiled() else __version__
