"""Adds the compiled modules to a wheel when WIREBROKER_COMPILE=1; all else is in pyproject.toml."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from setuptools import Extension, setup

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from compiling.modules import compiled_paths  # noqa: E402 - builds run this file from anywhere

_LAYERS = ("codecs", "storage", "coordinator")
# The types are checked by `make types`; here libraries that are not installed may be Any.
_MYPY = ["--config-file=", "--explicit-package-bases", "--ignore-missing-imports"]


def _extensions() -> list[Any]:
    from mypyc.build import mypycify  # noqa: PLC0415 - only there when something is compiled

    for layer in _LAYERS:  # an sdist has no links
        link = ROOT / "wirebroker" / layer
        if not link.exists():
            link.symlink_to(Path("..") / layer, target_is_directory=True)
    by_hand = [
        Extension("wirebroker.codecs._hot", ["codecs/_hot.c"], extra_compile_args=["-O2"]),
        Extension("wirebroker.net._calls", ["wirebroker/net/_calls.c"], extra_compile_args=["-O2"]),
    ]
    modules: list[Any] = mypycify(
        [*_MYPY, *compiled_paths()],
        opt_level="2",
        debug_level="0",
        group_name="wirebroker",
    )
    return [*modules, *by_hand]


_is_compiled = os.environ.get("WIREBROKER_COMPILE") == "1" and "bdist_wheel" in sys.argv
setup(ext_modules=_extensions() if _is_compiled else [])
