"""Check that tests do not touch the checkout's data directory, ./data, which `make run` uses.

The check is an audit hook of the test's process (PEP 578). Broker processes get their own
directories.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Final

_ROOT: Final = Path(__file__).parents[3]
_TOUCHES: Final = frozenset(
    {"open", "os.listdir", "os.scandir", "os.mkdir", "os.remove", "os.rename", "os.rmdir"}
)
# Index of each event's dir_fd arguments (-1: none).
_DIRECTORIES: Final = {"os.mkdir": 2, "os.remove": 1, "os.rename": 2, "os.rmdir": 1}


def refuse_own_data() -> None:
    """Raise AssertionError in every later call that touches ./data."""
    data = _ROOT / "data"

    def check(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _TOUCHES or not arguments or _may_start_elsewhere(event, arguments):
            return
        path = arguments[0]
        if not isinstance(path, str | os.PathLike):
            return
        path = os.fspath(path)
        if not isinstance(path, str) or "data" not in path:
            return
        absolute_path = Path(os.path.abspath(path))  # noqa: PTH100 - nothing is looked at
        if absolute_path == data or data in absolute_path.parents:
            raise AssertionError(
                f"a test touches {path}, the data of `make run`: give it its own directory"
            )

    sys.addaudithook(check)


def _may_start_elsewhere(event: str, arguments: tuple[Any, ...]) -> bool:
    """Return whether a path may be relative to an open directory (dir_fd).

    The event of `os.open` does not contain it. A bare name counts as such a path, because
    shutil.rmtree
    opens bare names.
    """
    path = arguments[0]
    if event == "open":
        return isinstance(path, str) and os.sep not in path and arguments[1] is None
    return any(
        descriptor >= 0 for descriptor in arguments[_DIRECTORIES.get(event, len(arguments)) :]
    )
