"""The list of modules that a compiled build compiles."""

from __future__ import annotations

from pathlib import Path

_LIST = Path(__file__).with_name("modules.txt")


def compiled_paths() -> list[str]:
    """Return the modules' paths in the package."""
    lines = _LIST.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def compiled_names() -> list[str]:
    """Return the modules' import names."""
    return [path.removesuffix(".py").replace("/", ".") for path in compiled_paths()]
