"""The user's function, and the records that it receives and returns.

When no function is given, workers receive this module by value (replay.py).
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.pipelines.job.errors import JobFileError
from wirebroker.pipelines.job.job_file import like

if TYPE_CHECKING:
    from collections.abc import Callable


class InputRecord(NamedTuple):
    """A record of the source; its topic, partition and offset cannot be changed.

    Tombstones have the value None. The timestamp is in ms since 1970.
    """

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp: int
    topic: str
    partition: int
    offset: int


def unchanged(record: InputRecord) -> InputRecord:
    """Return the record."""
    return record


def load_function(text: str) -> Callable[[InputRecord], Any]:
    """Return the function `FILE.py:NAME`; for "", the one that changes nothing.

    Raises:
        JobFileError: The file or function does not exist, or the file raises.
    """
    if not text:
        return unchanged
    file_name, _, name = text.rpartition(":")
    path = Path(file_name)
    if not file_name or not path.is_file():
        raise JobFileError(
            f"function = {text!r}: there is no file {file_name!r}; write FILE.py:NAME"
        )
    specification = importlib.util.spec_from_file_location(f"_job_{path.stem}", path)
    if specification is None or specification.loader is None:
        raise JobFileError(f"function = {text!r}: {file_name} is not a Python file")
    module = importlib.util.module_from_spec(specification)
    try:
        specification.loader.exec_module(module)
    except Exception as error:  # user code may raise anything
        raise JobFileError(f"function = {text!r}: {file_name} raises {error!r}") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise JobFileError(f"function = {text!r}: no function {name}{like(name, vars(module))}")
    # Needed to send the function by value (replay.py).
    sys.modules[module.__name__] = module
    return function  # type: ignore[no-any-return]
