"""The program `wirebroker`, from the first import to the end of its process.

Most runs are short verbs, of whose time imports and the end take most. So:

- Imports go without looks for garbage in between (garbage.py).
- A process in which nothing runs any more ends at once: Python would take apart all that was
  imported, module by module, for a tenth of a short verb's time.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading

from wirebroker.base.garbage import uncollected


def main() -> None:
    """Run the program on the process's own arguments, and end the process."""
    with uncollected():
        from wirebroker.cli.main import run  # noqa: PLC0415 - see above
    _leave(run(sys.argv[1:]))


def _leave(status: int) -> None:
    """End the process as sys.exit does."""
    gc.freeze()
    if threading.active_count() > 1:  # whose work Python waits for
        sys.exit(status)
    # Nothing public does it.
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:  # it began with that closed
                stream.flush()
    except (OSError, ValueError):  # who has closed them is for Python to tell
        sys.exit(status)
    os._exit(status)
