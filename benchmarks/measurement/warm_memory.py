"""Has the machine's free memory backed by its host before anything is measured.

The host of a virtual machine may give a page only when it is touched for the first time. On the
machine of the figures in docs/performance.md that took 3 s of kernel CPU for each GiB, paid by
whichever broker happens to write where nobody has written before: 98 us of kernel CPU for a Produce
of 64 KiB, 66 once all memory had been touched.
"""

from __future__ import annotations

import mmap
from pathlib import Path

# What the larger cases write before their topics go, and the memory with them.
WANTED_BYTES = 8 << 30
# Left alone: brokers and generators need it.
_RESERVE_BYTES = 3 << 30
_STEP_BYTES = 1 << 20


def warm_memory(wanted_bytes: int = WANTED_BYTES) -> int:
    """Touch as much free memory, give it back, and return how many bytes it was."""
    size = min(wanted_bytes, available_bytes() - _RESERVE_BYTES) // _STEP_BYTES * _STEP_BYTES
    if size <= 0:
        return 0
    content = b"\1" * _STEP_BYTES
    with mmap.mmap(-1, size) as memory:
        for position in range(0, size, _STEP_BYTES):
            memory[position : position + _STEP_BYTES] = content
    return size


def available_bytes() -> int:
    """Return what the kernel could give without swapping; 0 where it does not tell."""
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return 0
    return int(text.partition("MemAvailable:")[2].split()[0]) * 1024
