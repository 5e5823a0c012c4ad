"""The build backend: setuptools, after generating the message codecs (compiling/messages)."""

from __future__ import annotations

import sys
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setuptools import build_meta
from setuptools.build_meta import (
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from compiling.build_choice import announce, wish
from compiling.messages.build import make_modules, requirements

if TYPE_CHECKING:
    from collections.abc import Callable

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

# Pinned, because other versions may generate other code (`make test-compiled` tests this one).
_COMPILER = "mypy[mypyc]==2.4.*"


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Return the requirements for a wheel."""
    required = [*build_meta.get_requires_for_build_wheel(config_settings), *requirements()]
    return [*required, _COMPILER] if wish().modules else required


def get_requires_for_build_editable(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Return the requirements for an editable install."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *requirements()]


def get_requires_for_build_sdist(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Return the requirements for an sdist."""
    return [*build_meta.get_requires_for_build_sdist(config_settings), *requirements()]


def _with_modules(build: Callable[..., str]) -> Callable[..., str]:
    @wraps(build)
    def made_and_built(*arguments: Any, **settings: Any) -> str:
        make_modules()
        return build(*arguments, **settings)

    return made_and_built


build_editable = _with_modules(build_meta.build_editable)
build_sdist = _with_modules(build_meta.build_sdist)
_build_wheel = _with_modules(build_meta.build_wheel)


@wraps(build_meta.build_wheel)
def build_wheel(*arguments: Any, **settings: Any) -> str:
    """Build the wheel; print first what that compiles."""
    announce(wish())
    return _build_wheel(*arguments, **settings)
