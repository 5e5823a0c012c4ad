"""Allocator settings that return freed memory to the system.

glibc keeps freed blocks per thread, and more of them after each large one: 300 MiB after 48 batches
that decompress to 40 MiB, and nothing with a fixed threshold.

Small blocks are scattered: after 3,000 TLS connections closed, 130 MB stay allocated until
`give_back_free_pages` (11 ms).

Both affect the whole process, so only the processes of a broker and of a console use them.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

# glibc's M_MMAP_THRESHOLD: larger blocks, such as the codecs' 256 KiB pieces, are mapped
# individually.
_M_MMAP_THRESHOLD: Final = -3
_LARGE_BYTES: Final = 256 * 1024
# glibc's M_TRIM_THRESHOLD: what may stay free at the end of the heap. With the default of 128 KiB,
# page faults took two thirds of decompression.
_M_TRIM_THRESHOLD: Final = -1
_KEPT_BYTES: Final = 2 << 20


def give_back_large_blocks() -> bool:
    """Make the C library unmap large blocks when freed; return whether it can."""
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return (
        mallopt is not None
        and mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES) == 1
        and mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES) == 1
    )


def give_back_free_pages() -> None:
    """Return all unused pages to the system, if the C library can. Blocks."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
