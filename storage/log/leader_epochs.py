"""The start offset of each leader epoch of a partition, used for truncation and fencing.

Epochs and start offsets ascend together. `leader-epoch-checkpoint` is read at first use, to restart
quickly with 10,000 partitions. For the same reason an epoch without records (`begin`) is only kept
in memory; the next leader's epoch begins at the same offset and replaces it. Epochs with records
can be restored from the batches: after a crash by recovery, otherwise when the file is read
(stored_epochs.py).

Source: KIP-101, KIP-279, Kafka's LeaderEpochFileCache and LeaderEpochCheckpointFile.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from wirebroker.storage.checkpoints import encode_rows, parse_rows

if TYPE_CHECKING:
    from wirebroker.storage.files import Files
    from wirebroker.storage.log.stored_epochs import StoredEpochs

UNDEFINED_EPOCH: Final = -1
UNDEFINED_EPOCH_OFFSET: Final = -1
FILE_NAME: Final = "leader-epoch-checkpoint"


class LeaderEpochs:
    """The epochs of one log."""

    __slots__ = (
        "_epochs",
        "_files",
        "_is_loaded",
        "_path",
        "_starts",
        "_stored",
        "_unrecorded_epoch",
        "is_dirty",
        "was_unreadable",
    )

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._path = f"{directory}/{FILE_NAME}"
        # Both ascend strictly.
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self._is_loaded = False
        # This leader's epoch and its start offset, until it has records.
        self._unrecorded_epoch: tuple[int, int] | None = None
        self._stored: StoredEpochs | None = None
        self.is_dirty = False
        # The file was damaged, so recovery reads all batches.
        self.was_unreadable = False

    def relocate(self, directory: str) -> None:
        """Switch to a copy of the file in another directory."""
        self._path = f"{directory}/{FILE_NAME}"

    @property
    def entries(self) -> list[tuple[int, int]]:
        """(epoch, start offset) of every known epoch, oldest first."""
        self._load()
        return list(zip(self._epochs, self._starts, strict=True))

    @property
    def latest_epoch(self) -> int:
        """The newest epoch, or -1."""
        self._load()
        return self._epochs[-1] if self._epochs else UNDEFINED_EPOCH

    @property
    def latest_recorded_epoch(self) -> int:
        """The newest epoch; -1 if none, or if it has no records."""
        self._load()
        return (
            self._epochs[-1] if self._epochs and self._unrecorded_epoch is None else UNDEFINED_EPOCH
        )

    @property
    def earliest(self) -> tuple[int, int] | None:
        """(epoch, start offset) of the oldest known epoch."""
        self._load()
        return (self._epochs[0], self._starts[0]) if self._epochs else None

    def load(self) -> None:
        """Read the file, before an append in a thread would."""
        self._load()

    def compare_with(self, stored: StoredEpochs) -> None:
        """Compare the file, when it is read, with a loaded log's batches."""
        self._stored = stored
        if self._is_loaded:
            self._compare()

    def begin(self, epoch: int, start_offset: int) -> None:
        """Start this replica's `epoch` at the log's end; nothing is read or written yet."""
        self._unrecorded_epoch = epoch, start_offset
        if self._is_loaded:
            self._put_unrecorded()

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Set an epoch's first offset with records; return whether anything changed.

        Conflicting entries are removed.
        """
        assert epoch >= 0, f"epoch {epoch}"
        assert start_offset >= 0, f"start offset {start_offset}"
        self._load()
        if self._epochs and epoch == self._epochs[-1] and start_offset >= self._starts[-1]:
            if self._unrecorded_epoch is None:
                return False
        else:
            self._put(epoch, start_offset)
        self._unrecorded_epoch = None
        self.is_dirty = True
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return (the largest known epoch at or below `epoch`, its end offset).

        (-1, -1) if `epoch` is undefined or above all known ones. If it is below all of them, its
        records were deleted: (epoch, start of the oldest).
        """
        self._load()
        if epoch == UNDEFINED_EPOCH or not self._epochs or epoch > self._epochs[-1]:
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
        if epoch == self._epochs[-1]:
            return epoch, log_end_offset
        next_index = bisect_right(self._epochs, epoch)
        floor_epoch = self._epochs[next_index - 1] if next_index else epoch
        return floor_epoch, self._starts[next_index]

    def epoch_for_offset(self, offset: int) -> int | None:
        """Return the epoch of the record at `offset`, or None."""
        self._load()
        index = bisect_right(self._starts, offset)
        return self._epochs[index - 1] if index else None

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove epochs that begin at or after the log's new end."""
        self._load()
        keep = bisect_left(self._starts, end_offset)
        if keep < len(self._starts):
            del self._epochs[keep:], self._starts[keep:]
            self.is_dirty = True

    def truncate_from_start(self, start_offset: int) -> None:
        """Remove epochs that ended before the log's new start; the first now begins there."""
        self._load()
        past = bisect_right(self._starts, start_offset)
        if past and self._starts[past - 1] != start_offset:
            del self._epochs[: past - 1], self._starts[: past - 1]
            self._starts[0] = start_offset
            self.is_dirty = True
        elif past > 1:
            del self._epochs[: past - 1], self._starts[: past - 1]
            self.is_dirty = True

    def clear(self) -> None:
        """Remove every epoch."""
        self._load()
        if self._epochs:
            self._epochs.clear()
            self._starts.clear()
            self.is_dirty = True

    def encode(self) -> bytes:
        """Return the checkpoint file's content."""
        return encode_rows([f"{epoch} {start_offset}" for epoch, start_offset in self.entries])

    def persist(self, *, sync: bool = False) -> None:
        """Write the file if it is out of date.

        Appends do not sync it, because recovery finds unflushed epochs in the batches.
        """
        if self.is_dirty:
            self._files.write_file(self._path, self.encode(), sync=sync)
            self.is_dirty = False
            self._unrecorded_epoch = None  # in the file now

    def check(self) -> None:
        """Assert the invariants."""
        assert len(self._epochs) == len(self._starts)
        for values in (self._epochs, self._starts):
            assert all(a < b for a, b in pairwise(values)), self.entries

    def _put(self, epoch: int, start_offset: int) -> None:
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            self._epochs.pop()
            self._starts.pop()
        self._epochs.append(epoch)
        self._starts.append(start_offset)

    def _put_unrecorded(self) -> None:
        assert self._unrecorded_epoch is not None
        epoch, start_offset = self._unrecorded_epoch
        if self._epochs and epoch == self._epochs[-1]:
            self._unrecorded_epoch = None  # this replica led before
        else:
            self._put(epoch, start_offset)

    def _compare(self) -> None:
        stored, self._stored = self._stored, None
        if stored is None:
            return
        self.truncate_from_end(stored.end_offset)
        latest = self._epochs[-1] if self._epochs else UNDEFINED_EPOCH
        if stored.latest() <= latest:
            return
        for epoch, offset in stored.since(self._starts[-1] if self._starts else 0):
            if epoch > latest:
                self._put(epoch, offset)
                latest = epoch
                self.is_dirty = True
        if stored.start_offset:
            self.truncate_from_start(stored.start_offset)

    def _load(self) -> None:
        if self._is_loaded:
            return
        self._is_loaded = True
        with contextlib.suppress(FileNotFoundError):
            entries = _parse(self._files.read_file(self._path))
            self.was_unreadable = entries is None
            for epoch, start_offset in entries or ():
                self._put(epoch, start_offset)
        self._compare()
        if self._unrecorded_epoch is not None:
            self._put_unrecorded()


def _parse(content: bytes) -> list[tuple[int, int]] | None:
    try:
        rows = parse_rows(content, columns=2)
    except ValueError:
        return None
    return [(int(epoch), int(start_offset)) for epoch, start_offset in rows]
