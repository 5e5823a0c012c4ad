"""Release of old pages that readers have passed, so that new data stays in the page cache.

Data is old if it is at least 64 MiB (`storage.files.FAR_BYTES`) before the end of its log. Files
are tracked in chunks of 1 MiB. The 32 chunks that a first reader passed last are kept; the pages of
earlier ones are released. So a second reader within 32 MiB uses the first one's pages; a later one
reads from disk, each range in a thread. The kernel keeps pages that are not on disk yet.

Source: posix_fadvise(2), POSIX_FADV_DONTNEED; Kafka has no counterpart.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from wirebroker.net.pages.page_work import PageWork
from wirebroker.storage.files import FAR_BYTES

if TYPE_CHECKING:
    from wirebroker.storage.files import DataFile

    Key = tuple[weakref.ref[DataFile], int]

CHUNK_BYTES: Final = 1 << 20
KEPT_CHUNKS: Final = 32
# The kernel reads ahead in folios of up to 2 MiB, and releases no partial ones: so ranges overlap.
_OVERLAP_BYTES: Final = 4 << 20


def is_old(file: DataFile, position: int) -> bool:
    """Return whether a position is old."""
    return file.is_old or position + FAR_BYTES <= file.size()


class OldPages:
    """Chunks of old data that readers brought into memory."""

    __slots__ = ("_passed", "work")

    def __init__(self, work: PageWork | None = None) -> None:
        self.work = work or PageWork()
        # In the order of the first reader. The weak reference does not hold deleted files open.
        self._passed: OrderedDict[Key, None] = OrderedDict()

    def sent(self, file: DataFile, position: int, length: int) -> None:
        """Register a range that a reader has passed."""
        end = position + length
        last = end // CHUNK_BYTES
        first = position // CHUNK_BYTES
        if first == last or not is_old(file, end):
            return
        reference = weakref.ref(file)
        for chunk in range(first, last):
            self._passed[reference, chunk] = None
        while len(self._passed) > KEPT_CHUNKS:
            (passed, chunk), _ = self._passed.popitem(last=False)
            oldest = passed()
            if oldest is not None:
                start = max(0, chunk * CHUNK_BYTES - _OVERLAP_BYTES)
                self.work.give_back(oldest, start, (chunk + 1) * CHUNK_BYTES - start)
