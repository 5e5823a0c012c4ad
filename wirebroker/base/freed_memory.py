"""Memory of batches that were unpacked, and of connections, goes back to the system.

The C library keeps freed blocks for each thread, and learns from each large one that it should keep
more: after 48 batches that unpack to 40 MiB the process stayed 300 MiB larger, with a fixed
limit it doesn't grow at all, and takes as long.

Small blocks lie between others: of 3,000 TLS connections that are closed 130 MB stay with the
process until it looks for free pages (`give_back_free_pages`: 11 ms).

The setting is the process's, so only a process that is a broker uses it (serving.run).
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

# glibc's M_MMAP_THRESHOLD: blocks from this size on are mapped one by one. The codecs' pieces of
# 256 KiB are among them; what requests and answers usually take is not.
_M_MMAP_THRESHOLD: Final = -3
_LARGE_BYTES: Final = 256 * 1024
# glibc's M_TRIM_THRESHOLD, which a fixed limit leaves at 128 KiB: so much may stay free at the end
# of the heap. A batch's pieces are freed and wanted again at once, and each page that had gone back
# in between cost a fault: two thirds of what unpacking took.
_M_TRIM_THRESHOLD: Final = -1
_KEPT_BYTES: Final = 2 << 20


def give_back_large_blocks() -> bool:
    """Have large blocks unmapped when they are freed; return whether the C library can do that."""
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return (
        mallopt is not None
        and mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES) == 1
        and mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES) == 1
    )


def give_back_free_pages() -> None:
    """Give back all pages on which nothing is in use, where the C library can do that. Blocks."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
