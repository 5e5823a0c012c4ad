"""Touching free memory before measurements, so that the host of a virtual machine provides it.

Otherwise the first broker that uses new pages pays for them: a third of the CPU of a large Produce.
"""

from __future__ import annotations

import mmap
from pathlib import Path

# The largest cases write this much before their topics are deleted.
WANTED_BYTES = 8 << 30
# For brokers and generators.
_RESERVE_BYTES = 3 << 30
_STEP_BYTES = 1 << 20


def warm_memory(wanted_bytes: int = WANTED_BYTES) -> int:
    """Touch up to this much free memory and release it; return the number of bytes."""
    size = min(wanted_bytes, available_bytes() - _RESERVE_BYTES) // _STEP_BYTES * _STEP_BYTES
    if size <= 0:
        return 0
    content = b"\1" * _STEP_BYTES
    with mmap.mmap(-1, size) as memory:
        for position in range(0, size, _STEP_BYTES):
            memory[position : position + _STEP_BYTES] = content
    return size


def available_bytes() -> int:
    """Return the memory available without swapping; 0 if unknown."""
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return 0
    return int(text.partition("MemAvailable:")[2].split()[0]) * 1024
