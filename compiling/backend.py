"""The build backend: setuptools, which is given a compiler when a compiled wheel is asked for.

`WIREBROKER_COMPILE=1 pip wheel .` makes a wheel for this platform in which the modules of
modules.txt are compiled; without the variable mypy is neither fetched nor imported. An editable
install is never compiled: a shared object would hide what is edited beside it.
"""

from __future__ import annotations

import os
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

# A later one may free, box or call otherwise: tested with this one (`make test-compiled`).
_COMPILER = "mypy[mypyc]==2.4.*"


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Return what a wheel's build needs beyond pyproject.toml."""
    required = list(build_meta.get_requires_for_build_wheel(config_settings))
    return [*required, _COMPILER] if os.environ.get("WIREBROKER_COMPILE") == "1" else required
