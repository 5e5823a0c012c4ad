"""The aborted transactions of a segment, whose records read_committed readers skip (`.txnindex`).

A search ends when a last stable offset has reached its upper bound, because transactions aborted
later began at or above that offset. An incomplete last entry is ignored and overwritten.

Source: Kafka's TransactionIndex and AbortedTxn; format and order in storage/README.md.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wirebroker.storage.files import DataFile

_VERSION: Final = 0
_ENTRY: Final = struct.Struct(">hqqqq")
ENTRY_BYTES: Final = _ENTRY.size
# Enough for most searches.
_CHUNK_ENTRIES: Final = 240


class AbortedTransaction(NamedTuple):
    """One entry of the index."""

    producer_id: int
    first_offset: int
    last_offset: int  # the abort marker
    last_stable_offset: int  # after the marker


class AbortedSearch(NamedTuple):
    """The search result from one segment's index."""

    transactions: list[AbortedTransaction]
    is_complete: bool  # no later segment can add entries


class TransactionIndex:
    """The aborted transactions whose markers are in one segment."""

    __slots__ = ("_entry_count", "file")

    def __init__(self, file: DataFile) -> None:
        self.file = file
        self._entry_count = -1

    def __iter__(self) -> Iterator[AbortedTransaction]:
        return self._read_from(0)

    @property
    def entry_count(self) -> int:
        """The number of entries."""
        if self._entry_count < 0:
            self._entry_count = self.file.size() // ENTRY_BYTES
        return self._entry_count

    def collect(self, fetch_offset: int, up_to_offset: int) -> AbortedSearch:
        """Return the transactions that records in [fetch_offset, up_to_offset) may belong to.

        Raises:
            KafkaError: UNKNOWN_SERVER_ERROR: an entry has another version.
        """
        transactions: list[AbortedTransaction] = []
        if not self.entry_count:
            return AbortedSearch(transactions, is_complete=False)
        for entry in self._read_from(self._first_slot(fetch_offset)):
            if entry.first_offset < up_to_offset:
                transactions.append(entry)
            if entry.last_stable_offset >= up_to_offset:
                return AbortedSearch(transactions, is_complete=True)
        return AbortedSearch(transactions, is_complete=False)

    def write_entries(self, entries: Iterable[AbortedTransaction]) -> None:
        """See SparseIndex."""
        packed = encode_entries(entries)
        if packed:
            self.file.write_at(self.entry_count * ENTRY_BYTES, packed)

    def commit_entries(self, count: int) -> None:
        """See SparseIndex."""
        self._entry_count = self.entry_count + count

    def truncate_to_offset(self, offset: int) -> None:
        """Delete the entries whose marker is at or above `offset`."""
        if self.file.size():
            self._keep(self._first_slot(offset))

    def sanity_check(self, base_offset: int) -> str | None:
        """Return the file's damage, or None."""
        if self.file.size() % ENTRY_BYTES:
            return f"its {self.file.size()} bytes are not a multiple of {ENTRY_BYTES}"
        last_offset = base_offset - 1
        stable_offset = -1
        try:
            for entry in self:
                if entry.last_offset <= last_offset or entry.last_stable_offset < stable_offset:
                    return f"its entries are not in ascending order at {entry}"
                if not 0 <= entry.first_offset < entry.last_offset:
                    return f"it has the invalid entry {entry}"
                last_offset, stable_offset = entry.last_offset, entry.last_stable_offset
        except KafkaError as error:
            return error.message
        return None

    def _keep(self, count: int) -> None:
        self._entry_count = count
        if count:
            self.file.truncate(count * ENTRY_BYTES)
        elif self.file.size():
            self.file.unlink()

    def _first_slot(self, offset: int) -> int:
        low, high = 0, self.entry_count
        while low < high:
            middle = (low + high) // 2
            if self._read(middle).last_offset < offset:
                low = middle + 1
            else:
                high = middle
        return low

    def _read(self, slot: int) -> AbortedTransaction:
        return _unpack(self.file.read_at(slot * ENTRY_BYTES, ENTRY_BYTES), 0)

    def _read_from(self, slot: int) -> Iterator[AbortedTransaction]:
        count = self.entry_count
        while slot < count:
            chunk_count = min(_CHUNK_ENTRIES, count - slot)
            data = self.file.read_at(slot * ENTRY_BYTES, chunk_count * ENTRY_BYTES)
            for position in range(0, len(data) - ENTRY_BYTES + 1, ENTRY_BYTES):
                yield _unpack(data, position)
            slot += chunk_count


def encode_entries(entries: Iterable[AbortedTransaction]) -> bytes:
    """Return a file's content."""
    return b"".join(_ENTRY.pack(_VERSION, *entry) for entry in entries)


def _unpack(data: bytes, position: int) -> AbortedTransaction:
    version, *fields = _ENTRY.unpack_from(data, position)
    if version != _VERSION:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"an entry has the version {version}")
    return AbortedTransaction(*fields)
