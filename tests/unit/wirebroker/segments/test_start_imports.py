"""Our modules that Spark's processes import, of which each read starts new ones."""

from __future__ import annotations

import subprocess
import sys


def test_workers_do_not_import_planner_modules() -> None:
    """A worker imports only what reads a range; the rest would take half of 80 ms."""
    code = (
        "import sys, wirebroker.segments.log_directories, wirebroker.segments.row_scan\n"
        "rooms = 'coordination disks engine maintenance quorum replica replication'.split()\n"
        "not_needed = ('asyncio', *(f'wirebroker.{room}' for room in rooms))\n"
        "print([module for module in sys.modules if module.startswith(not_needed)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
