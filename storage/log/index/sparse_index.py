"""The common part of a segment's two sparse indexes: a file of ascending entries of fixed size.

Apache Kafka fills the index file of an active segment with zeros. So after a crash of Kafka the
entries end at the first zeros, which are truncated at the first change.

A search reads single entries until few enough remain, then caches one page of them for the next
search of a sequential reader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    import struct

    from wirebroker.storage.files import DataFile

# They cover at least 512 KiB of log (index.interval.bytes = 4096).
PAGE_ENTRIES = 128
_CHECK_ENTRIES = 8192
_FILLER = (0, 0)


class SparseIndex:
    """A file of entries that ascend in both of their fields."""

    __slots__ = ("_entry_count", "_page", "_page_slot", "base_offset", "file")

    layout: ClassVar[struct.Struct]  # two integers
    entry_bytes: ClassVar[int]

    def __init__(self, file: DataFile, base_offset: int) -> None:
        self.file = file
        self.base_offset = base_offset
        self._entry_count = -1
        self._page: list[tuple[int, int]] = []
        self._page_slot = 0

    @property
    def entry_count(self) -> int:
        """The number of entries."""
        if self._entry_count < 0:
            self._entry_count = self._count_entries()
        return self._entry_count

    def detached(self) -> Self:
        """Return a copy for a search in a thread.

        A search raises KafkaError, CORRUPT_MESSAGE, if the file is truncated meanwhile.
        """
        twin = type(self)(self.file, self.base_offset)
        twin._entry_count = self.entry_count
        return twin

    def is_full(self, max_bytes: int) -> bool:
        """Return whether one more entry would exceed `max_bytes` (segment.index.bytes)."""
        return self.entry_count >= max_bytes // self.entry_bytes

    def sanity_check(self) -> str | None:
        """Return the file's damage, or None."""
        if self.file.size() % self.entry_bytes:
            return f"its {self.file.size()} bytes are not a multiple of {self.entry_bytes}"
        count = self.entry_count
        if count:
            first, last = self._read(0), self._read(count - 1)
            if last[0] < first[0] or last[1] < first[1] or min(*first, *last) < 0:
                return f"its last entry {last} is before its first {first}"
        return None

    def write_entries(self, packed: bytes) -> None:
        """Write entries after the last one without counting them, and truncate the rest.

        Raises:
            OSError: The index is unchanged.
        """
        end = self.entry_count * self.entry_bytes + len(packed)
        if packed:
            self.file.write_at(end - len(packed), packed)
        if self.file.size() > end:
            self.file.truncate(end)

    def commit_entries(self, count: int) -> None:
        """Count entries written by `write_entries`."""
        self._entry_count = self.entry_count + count

    def cut_uncounted(self) -> None:
        """Truncate the file after the last entry."""
        length = self.entry_count * self.entry_bytes
        if self.file.size() > length:
            self.file.truncate(length)

    def trim(self) -> None:
        """Truncate the file after the last entry, or create it."""
        self.cut_uncounted()
        self.file.create()

    def ascending_below(self, offset: int) -> tuple[int, int, int]:
        """Count the valid entries of a possibly damaged file.

        Returns:
            The number of first entries that ascend in both fields below `offset`, and both fields
            of the last one, with absolute offset.
        """
        raise NotImplementedError

    def _ascending(self, relative_offset: int, *, offset_field: int) -> tuple[int, tuple[int, int]]:
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
        """Replace all entries but the first `keep`."""
        self._keep_entries(keep)
        self.write_entries(packed)
        self.commit_entries(len(packed) // self.entry_bytes)

    def disregard(self) -> None:
        """Reset the number of entries to 0; the next write truncates the file."""
        self._page = []
        self._entry_count = 0

    def _keep_entries(self, count: int) -> None:
        self._page = []
        self._entry_count = count
        if self.file.size() > count * self.entry_bytes:
            self.file.truncate(count * self.entry_bytes)

    def _read(self, slot: int) -> tuple[int, int]:
        first, second = self.layout.unpack(self._read_bytes(slot, 1))
        return first, second

    def _read_bytes(self, slot: int, count: int) -> bytes:
        length = count * self.entry_bytes
        data = self.file.read_at(slot * self.entry_bytes, length)
        if len(data) < length:
            # Truncated, perhaps since the copy for a search in a thread was made.
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{self.file.path} lacks entries")
        return data

    def _load_page(self, slot: int) -> list[tuple[int, int]]:
        count = min(PAGE_ENTRIES, self.entry_count - slot)
        self._page = list(self.layout.iter_unpack(self._read_bytes(slot, count)))
        self._page_slot = slot
        return self._page

    def _floor(self, target: int, *, field: int) -> int:
        """Return the slot, now in the page, of the last entry with `field` <= `target`, or -1."""
        low, high = 0, self.entry_count  # the result is in [low - 1, high - 1]
        page = self._page
        if page and page[0][field] <= target:
            if target >= page[-1][field] and self._page_slot + len(page) < high:
                page = self._load_page(self._page_slot + len(page) - 1)  # a sequential reader
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
        if self._page_slot <= slot < self._page_slot + len(self._page):
            return self._page[slot - self._page_slot]
        return self._read(slot)

    def _count_entries(self) -> int:
        """Count the entries before the zeros."""
        count = self.file.size() // self.entry_bytes
        if count == 0 or self._read(count - 1) != (0, 0):
            return count
        low, high = 0, count - 1
        while low < high:
            middle = (low + high) // 2
            if self._read(middle) == (0, 0):
                high = middle
            else:
                low = middle + 1
        return low
