"""What readers of old data have passed is given back to the kernel, so that new data stays cached.

Old is what lies more than 64 MiB behind the end of its log (`storage.files.FAR_BYTES`): a reader of
new data that falls behind by less finds all in memory. Files are looked at in chunks of 1 MiB:

    a reader has passed its end ──▶ one of the newest 32 that were passed ──▶ given back

So whoever follows within 32 MiB still finds what the first has waited for; who comes later waits
for the disk himself, for each range in a thread. Pages that are not on the disk the kernel keeps.

Source: Kafka has no such thing; posix_fadvise(2), POSIX_FADV_DONTNEED.
"""

from __future__ import annotations

import logging
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from wirebroker.storage.files import FAR_BYTES
from wirebroker.threads import Work, begin_in_thread

if TYPE_CHECKING:
    import asyncio

    from wirebroker.storage.files import DataFile

    Key = tuple[weakref.ref[DataFile], int]

logger = logging.getLogger("wirebroker.net")

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
    """The chunks of old data that are in memory because of readers."""

    __slots__ = ("_cooling", "_passed")

    # _cooling is None, or a job runs.

    def __init__(self) -> None:
        # In the order in which a first reader has passed them. A file that is deleted must not be
        # held open.
        self._passed: OrderedDict[Key, None] = OrderedDict()
        self._cooling: asyncio.Future[None] | None = None

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
        if len(self._passed) > KEPT_CHUNKS:
            self._cool()

    def _cool(self) -> None:
        """Have a thread give back what is too much, one at a time; a megabyte takes 50 us."""
        if self._cooling is not None:
            return
        oldest: list[tuple[DataFile, int]] = []
        while len(self._passed) > KEPT_CHUNKS:
            (reference, chunk), _ = self._passed.popitem(last=False)
            file = reference()
            if file is not None:
                oldest.append((file, chunk * CHUNK_BYTES))
        self._cooling = begin_in_thread(Work.UPKEEP, _give_back, oldest)
        self._cooling.add_done_callback(self._on_cooled)

    def _on_cooled(self, cooling: asyncio.Future[None]) -> None:
        self._cooling = None
        error = cooling.exception()
        if error is not None:
            logger.error("pages cannot be given back", exc_info=error)
        if len(self._passed) > KEPT_CHUNKS:
            self._cool()


def _give_back(chunks: list[tuple[DataFile, int]]) -> None:
    for file, position in chunks:
        start = max(0, position - _OVERLAP_BYTES)
        try:
            file.cool(start, position + CHUNK_BYTES - start)
        except FileNotFoundError:
            logger.debug("%s is gone", file.path)  # retention was quicker
        except OSError as error:
            # It is advice: who reads or writes the file will meet what is wrong with it.
            logger.warning("pages of %s are not given back: %s", file.path, error)
