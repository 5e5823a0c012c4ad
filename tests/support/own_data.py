"""Refuses tests that touch the data directory of the checkout, which `make run` keeps in ./data.

The check is an audit hook of the test's process (PEP 578). Brokers that tests start as processes
are given directories of their own.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[2]
_TOUCHES: Final = frozenset(
    {"open", "os.listdir", "os.scandir", "os.mkdir", "os.remove", "os.rename", "os.rmdir"}
)


def refuse_own_data() -> None:
    """Raise AssertionError in whatever touches ./data from now on."""
    data = _ROOT / "data"

    def check(event: str, arguments: tuple[object, ...]) -> None:
        if event in _TOUCHES and arguments and isinstance(arguments[0], str | os.PathLike):
            path = os.fspath(arguments[0])
            if not isinstance(path, str) or "data" not in path:
                return
            place = Path(os.path.abspath(path))  # noqa: PTH100 - nothing is looked at
            if place == data or data in place.parents:
                raise AssertionError(
                    f"a test touches {path}, the data of `make run`: give it its own directory"
                )

    sys.addaudithook(check)
