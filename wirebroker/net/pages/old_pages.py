"""What readers of old data have passed is given back to the kernel, so that new data stays cached.

Old is what lies more than 64 MiB behind the end of its log (`storage.files.FAR_BYTES`): a reader of
new data that falls behind by less finds all in memory. Files are looked at in chunks of 1 MiB:

    a reader has passed its end ──▶ one of the newest 32 that were passed ──▶ given back

So whoever follows within 32 MiB still finds what the first has waited for; who comes later waits
for the disk himself, for each range in a thread. Pages that are not on the disk the kernel keeps.

Source: Kafka has no such thing; posix_fadvise(2), POSIX_FADV_DONTNEED.
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
# So much of what readers have passed stays for those who follow them.
KEPT_CHUNKS: Final = 32
# The kernel gives back no folio that lies in a range only in part, and reads ahead in folios of up
# to 2 MiB: each range begins before where the last one has ended.
_OVERLAP_BYTES: Final = 4 << 20


def is_old(file: DataFile, position: int) -> bool:
    """Return whether readers of new data want what lies there no more."""
    return file.is_old or position + FAR_BYTES <= file.size()


class OldPages:
    """The chunks of old data that are in memory because of readers.

    Attributes:
        work: Whom to ask for pages, to come and to go.
    """

    __slots__ = ("_passed", "work")

    def __init__(self, work: PageWork | None = None) -> None:
        self.work = work or PageWork()
        # In the order in which a first reader has passed them. A file that is deleted must not be
        # held open.
        self._passed: OrderedDict[Key, None] = OrderedDict()

    def sent(self, file: DataFile, position: int, length: int) -> None:
        """Note that a reader has passed a range; gives back what was passed long before."""
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
