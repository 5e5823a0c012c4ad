"""At which offset each leader epoch of a partition began: truncation and fencing go by it.

    leader-epoch-checkpoint        0            the format's version
                                   2            entries that follow
                                   0 0          epoch, its first offset
                                   3 1041

Laws: epochs and start offsets rise together; the end of an epoch is the start of the next one,
and the end of the last is the log's end. The file is read at first use, because 10,000 partitions
must come back from a clean stop without being read.

An epoch that has no records yet (`begin`) is kept in memory only: whoever leads next begins another
one at the same offset, which takes its place. So a start of 10,000 partitions writes none of these
files, and whoever asks where an older epoch ended is told the truth. Epochs that have records are
found again in the batches, after a crash by recovery and else when the file is read: see
stored_epochs.py.

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
    """The epochs of one log, oldest first."""

    __slots__ = (
        "_begun",
        "_epochs",
        "_files",
        "_is_loaded",
        "_path",
        "_starts",
        "_stored",
        "is_dirty",
        "was_unreadable",
    )

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._path = f"{directory}/{FILE_NAME}"
        # Both rise strictly, and have the same length.
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self._is_loaded = False
        # The epoch in which this replica leads and where it began, until it has records. Once the
        # file is read, it is the last one above.
        self._begun: tuple[int, int] | None = None
        self._stored: StoredEpochs | None = None
        self.is_dirty = False
        # The file held no checkpoint when it was read: recovery looks through all batches instead.
        self.was_unreadable = False

    def relocate(self, directory: str) -> None:
        """Go on with a copy of the file in another directory."""
        self._path = f"{directory}/{FILE_NAME}"

    @property
    def entries(self) -> list[tuple[int, int]]:
        """Return (epoch, start offset) of every known epoch, oldest first."""
        self._load()
        return list(zip(self._epochs, self._starts, strict=True))

    @property
    def latest_epoch(self) -> int:
        """Return the newest epoch, -1 when none is known."""
        self._load()
        return self._epochs[-1] if self._epochs else UNDEFINED_EPOCH

    @property
    def latest_recorded_epoch(self) -> int:
        """Return the newest epoch; -1 if it has no records yet, or none is known."""
        self._load()
        return self._epochs[-1] if self._epochs and self._begun is None else UNDEFINED_EPOCH

    @property
    def earliest(self) -> tuple[int, int] | None:
        """Return (epoch, start offset) of the oldest known epoch."""
        self._load()
        return (self._epochs[0], self._starts[0]) if self._epochs else None

    def load(self) -> None:
        """Read the file if it wasn't, before a thread that appends would: two must not read it.

        Raises:
            OSError: The disk failed.
        """
        self._load()

    def compare_with(self, stored: StoredEpochs) -> None:
        """Have the file compared with the batches of a loaded log when it is read."""
        self._stored = stored
        if self._is_loaded:
            self._compare()

    def begin(self, epoch: int, start_offset: int) -> None:
        """Note that this replica leads in `epoch` from now on, and that its log ends here.

        Entries that contradict it go. Nothing is read or written yet.
        """
        self._begun = epoch, start_offset
        if self._is_loaded:
            self._put_begun()

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that `epoch` has records from `start_offset` on; entries that contradict it go.

        Returns:
            True if anything changed; the file is written by persist().
        """
        assert epoch >= 0, f"epoch {epoch}"
        assert start_offset >= 0, f"start offset {start_offset}"
        self._load()
        if self._epochs and epoch == self._epochs[-1] and start_offset >= self._starts[-1]:
            if self._begun is None:
                return False
        else:
            self._put(epoch, start_offset)
        self._begun = None
        self.is_dirty = True
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return (the largest known epoch that is not above `epoch`, where that epoch ends).

        (-1, -1) when `epoch` is above every known one or undefined. For an epoch below every known
        one it is (epoch, start of the oldest known): its records are gone, whatever came after them
        begins there.
        """
        self._load()
        if epoch == UNDEFINED_EPOCH or not self._epochs or epoch > self._epochs[-1]:
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
        if epoch == self._epochs[-1]:
            return epoch, log_end_offset
        next_index = bisect_right(self._epochs, epoch)
        known = self._epochs[next_index - 1] if next_index else epoch
        return known, self._starts[next_index]

    def epoch_for_offset(self, offset: int) -> int | None:
        """Return the epoch under which the record at `offset` was written, None if not known."""
        self._load()
        index = bisect_right(self._starts, offset)
        return self._epochs[index - 1] if index else None

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that begin at or after `end_offset`: the log now ends there."""
        self._load()
        keep = bisect_left(self._starts, end_offset)
        if keep < len(self._starts):
            del self._epochs[keep:], self._starts[keep:]
            self.is_dirty = True

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget epochs that ended before `start_offset`; the one it lies in now begins there."""
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
        """Forget every epoch (the log starts anew elsewhere)."""
        self._load()
        if self._epochs:
            self._epochs.clear()
            self._starts.clear()
            self.is_dirty = True

    def encode(self) -> bytes:
        """Return the checkpoint file's content."""
        return encode_rows([f"{epoch} {start_offset}" for epoch, start_offset in self.entries])

    def persist(self, *, sync: bool = False) -> None:
        """Write the file if it lags behind memory.

        Args:
            sync: Also push it to the device. Appends don't: until the recovery point has passed
                them, recovery finds epochs in the batches themselves.
        """
        if self.is_dirty:
            self._files.write_whole(self._path, self.encode(), sync=sync)
            self.is_dirty = False
            self._begun = None  # it stands in the file now

    def check(self) -> None:
        """Assert the laws above."""
        assert len(self._epochs) == len(self._starts)
        for values in (self._epochs, self._starts):
            assert all(a < b for a, b in pairwise(values)), self.entries

    def _put(self, epoch: int, start_offset: int) -> None:
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            self._epochs.pop()
            self._starts.pop()
        self._epochs.append(epoch)
        self._starts.append(start_offset)

    def _put_begun(self) -> None:
        assert self._begun is not None
        epoch, start_offset = self._begun
        if self._epochs and epoch == self._epochs[-1]:
            self._begun = None  # led before, and it has records
        else:
            self._put(epoch, start_offset)

    def _compare(self) -> None:
        """Drop what begins behind the log's end, and add epochs of batches that are not known."""
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
            entries = _parse(self._files.read_whole(self._path))
            self.was_unreadable = entries is None
            for epoch, start_offset in entries or ():
                self._put(epoch, start_offset)
        self._compare()
        if self._begun is not None:
            self._put_begun()


def _parse(content: bytes) -> list[tuple[int, int]] | None:
    """Read the checkpoint's lines; None if the file is torn or foreign."""
    try:
        rows = parse_rows(content, columns=2)
    except ValueError:
        return None
    return [(int(epoch), int(start_offset)) for epoch, start_offset in rows]
