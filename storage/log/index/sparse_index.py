"""What the two sparse indexes of a segment share: a file of ascending fixed-size entries.

Entries are appended as they arise. Apache Kafka allocates the file of an active segment in full and
fills it with zeros, so after its kill entries end where zeros begin; the tail is ignored here and
cut at the first change.

A search reads single entries until few enough remain, then one page of them, which is kept: a
reader that moves on through a segment finds its next entry in memory or in the following page.

Writing has two steps, so that a failed write leaves nothing behind: `write_entries` touches only
the file beyond the last entry, `commit_entries` counts what it wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

if TYPE_CHECKING:
    import struct

    from wirebroker.storage.files import DataFile

# 128 entries stand for at least 512 KiB of log (index.interval.bytes = 4096), and cost 1 to 1.5 KiB
# of memory per segment that is being read.
PAGE_ENTRIES = 128
# Read at a time when all entries are looked at.
_CHECK_ENTRIES = 8192
_FILLER = (0, 0)


class SparseIndex:
    """A file of entries that ascend in both of their fields.

    Attributes:
        base_offset: The segment's; offsets in the file are relative to it.
        file: The data file.
    """

    __slots__ = ("_entry_count", "_page", "_page_slot", "base_offset", "file")

    layout: ClassVar[struct.Struct]  # two integers; the subclass says which
    entry_bytes: ClassVar[int]

    def __init__(self, file: DataFile, base_offset: int) -> None:
        self.file = file
        self.base_offset = base_offset
        self._entry_count = -1  # unknown until asked for
        self._page: list[tuple[int, int]] = []  # entries from slot _page_slot on
        self._page_slot = 0

    @property
    def entry_count(self) -> int:
        """Number of entries, zeros at the end not counted."""
        if self._entry_count < 0:
            self._entry_count = self._count_entries()
        return self._entry_count

    def detached(self) -> Self:
        """Return the index as it is now, with a page of its own: for a search in a thread."""
        twin = type(self)(self.file, self.base_offset)
        twin._entry_count = self.entry_count
        return twin

    def is_full(self, max_bytes: int) -> bool:
        """Return whether one more entry would exceed `max_bytes` (segment.index.bytes)."""
        return self.entry_count >= max_bytes // self.entry_bytes

    def sanity_check(self) -> str | None:
        """Return what is wrong with the file in half a sentence, or None if nothing is."""
        if self.file.size() % self.entry_bytes:
            return f"its {self.file.size()} bytes are no multiple of {self.entry_bytes}"
        count = self.entry_count
        if count:
            first, last = self._read(0), self._read(count - 1)
            if last[0] < first[0] or last[1] < first[1] or min(*first, *last) < 0:
                return f"its last entry {last} is before its first {first}"
        return None

    def write_entries(self, packed: bytes) -> None:
        """Write entries behind the last one, without counting them; what stood there goes.

        Raises:
            OSError: The index is as before.
        """
        end = self.entry_count * self.entry_bytes + len(packed)
        if packed:
            self.file.write_at(end - len(packed), packed)
        if self.file.size() > end:
            self.file.truncate(end)

    def commit_entries(self, count: int) -> None:
        """Count `count` entries that `write_entries` has written."""
        self._entry_count = self.entry_count + count

    def cut_uncounted(self) -> None:
        """Cut what stands behind the last entry."""
        length = self.entry_count * self.entry_bytes
        if self.file.size() > length:
            self.file.truncate(length)

    def trim(self) -> None:
        """Cut what stands behind the last entry and create the file if there is none."""
        self.cut_uncounted()
        self.file.create()

    def ascending_below(self, offset: int) -> tuple[int, int, int]:
        """Look at the entries as they stand, however damaged the file may be.

        Returns:
            How many at the beginning rise in both fields and are of offsets below `offset`, and
            both fields of the last of these, offsets no longer relative. (What stands for no
            entry if there is none.)
        """
        raise NotImplementedError

    def _ascending(self, relative_offset: int, *, offset_field: int) -> tuple[int, tuple[int, int]]:
        """Do what ascending_below says, with offsets as they are in the file."""
        count, last = 0, (-1, -1)
        end = self.file.size()
        while True:
            position = count * self.entry_bytes
            length = min(_CHECK_ENTRIES * self.entry_bytes, end - position)
            data = (
                self.file.read_at(position, length - length % self.entry_bytes)
                if length > 0
                else b""
            )
            for entry in self.layout.iter_unpack(data):
                if (
                    entry[0] <= last[0]
                    or entry[1] <= last[1]
                    or entry[offset_field] >= relative_offset
                    or entry == _FILLER
                ):
                    return count, last
                count += 1
                last = entry
            if not data:
                return count, last

    def replace_entries(self, packed: bytes, *, keep: int = 0) -> None:
        """Put entries in the place of all that were there but the first `keep`."""
        self._keep_entries(keep)
        self.write_entries(packed)
        self.commit_entries(len(packed) // self.entry_bytes)

    def disregard(self) -> None:
        """Count no entry, whatever the file holds; it is cut at the next write."""
        self._page = []
        self._entry_count = 0

    def _keep_entries(self, count: int) -> None:
        """Cut the file to its first `count` entries."""
        self._page = []
        self._entry_count = count
        if self.file.size() > count * self.entry_bytes:
            self.file.truncate(count * self.entry_bytes)

    def _read(self, slot: int) -> tuple[int, int]:
        first, second = self.layout.unpack(
            self.file.read_at(slot * self.entry_bytes, self.entry_bytes)
        )
        return first, second

    def _load_page(self, slot: int) -> list[tuple[int, int]]:
        count = min(PAGE_ENTRIES, self.entry_count - slot)
        data = self.file.read_at(slot * self.entry_bytes, count * self.entry_bytes)
        self._page = list(self.layout.iter_unpack(data))
        self._page_slot = slot
        return self._page

    def _floor(self, target: int, *, field: int) -> int:
        """Return the slot of the last entry whose `field` is at most `target`; -1 if there is none.

        The entry at that slot is then in the page.
        """
        low, high = 0, self.entry_count  # the answer is in [low - 1, high - 1]
        page = self._page
        if page and page[0][field] <= target:
            if target >= page[-1][field] and self._page_slot + len(page) < high:
                page = self._load_page(self._page_slot + len(page) - 1)  # a reader that moves on
            low = self._page_slot
            if page[-1][field] > target:
                high = low + len(page)
        elif page:
            high = self._page_slot
        while high - low > PAGE_ENTRIES:
            middle = (low + high) // 2
            if self._read(middle)[field] <= target:
                low = middle
            else:
                high = middle
        if low >= high:
            return -1
        if not self._page or not (
            self._page_slot <= low and high <= self._page_slot + len(self._page)
        ):
            self._load_page(low)
        page, first = self._page, self._page_slot
        low, high = low - first, high - first
        while low < high:
            middle = (low + high) // 2
            if page[middle][field] <= target:
                low = middle + 1
            else:
                high = middle
        return first + low - 1

    def _entry(self, slot: int) -> tuple[int, int]:
        """Return an entry, from the page where possible."""
        if self._page_slot <= slot < self._page_slot + len(self._page):
            return self._page[slot - self._page_slot]
        return self._read(slot)

    def _count_entries(self) -> int:
        """Return the number of entries before the zeros (one read; some 20 if there are any)."""
        count = self.file.size() // self.entry_bytes
        if count == 0 or self._read(count - 1) != (0, 0):
            return count
        low, high = 0, count - 1  # entries below low are real, entry high is filler
        while low < high:
            middle = (low + high) // 2
            if self._read(middle) == (0, 0):
                high = middle
            else:
                low = middle + 1
        return low
