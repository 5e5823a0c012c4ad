"""A log file for the output of Spark's Java, its workers and librdkafka.

They write to the descriptor of standard error, whatever `sys.stderr` is.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOISE_FILE: Final = "spark.log"
_STANDARD_ERROR: Final = 2
# A larger file is renamed when a run begins.
_MOST_BYTES: Final = 10 << 20


@contextlib.contextmanager
def noise_in(path: Path) -> Iterator[None]:
    """Append standard error to a file; if the block fails, print the file's path."""
    try:
        file = _opened(path)
    except OSError as error:
        sys.stderr.write(f"Spark's output follows; its log cannot be opened: {error}\n")
        yield
        return
    sys.stderr.flush()
    before = os.dup(_STANDARD_ERROR)
    os.dup2(file, _STANDARD_ERROR)
    os.close(file)
    try:
        yield
    except BaseException:
        _lead_back(before)
        sys.stderr.write(f"the output of Spark and librdkafka is in {path}\n")
        raise
    else:
        _lead_back(before)


def _opened(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > _MOST_BYTES:
        path.replace(path.with_name(f"{path.name}.old"))
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)


def _lead_back(before: int) -> None:
    # The disk may be full.
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    os.dup2(before, _STANDARD_ERROR)
    os.close(before)
