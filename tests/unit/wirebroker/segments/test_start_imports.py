"""What a process of Spark's loads of ours: it starts new ones for each read, and workers."""

from __future__ import annotations

import subprocess
import sys


def test_workers_do_not_load_what_the_planner_alone_needs() -> None:
    """A worker takes its range apart, and what that imports, half of 80 ms otherwise."""
    code = (
        "import sys, wirebroker.segments.log_directories, wirebroker.segments.row_scan\n"
        "print([m for m in sys.modules if m == 'asyncio' or m.startswith('wirebroker.replica')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
