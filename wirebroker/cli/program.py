"""The program `wirebroker`, from the first import to the end of its process.

Imports and the exit take most of the time of short verbs. So imports run without garbage collection
(gc_tuning.py), and the process skips Python's module teardown, a tenth of that time.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading

from wirebroker.base.gc_tuning import uncollected


def main() -> None:
    """Run the program with the process's arguments and exit."""
    with uncollected():
        from wirebroker.cli.main import run  # noqa: PLC0415
    _leave(run(sys.argv[1:]))


def _leave(status: int) -> None:
    gc.freeze()
    if threading.active_count() > 1:  # Python waits for them
        sys.exit(status)
    # No public function does it.
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:  # None if it was closed at the start
                stream.flush()
    except (OSError, ValueError):  # Python reports a closed stream
        sys.exit(status)
    os._exit(status)
