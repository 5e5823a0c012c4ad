"""A log directory while the broker runs: its partitions, and whether its disk still works.

    online  --a write, sync or read fails-->  offline, until a restart

Once offline, all its partitions answer KAFKA_STORAGE_ERROR, nothing is written there any more (no
checkpoint either), and it does not count as cleanly stopped: the next start recovers it.

Source: Kafka's LogManager and LogDirFailureChannel (KIP-112).
"""

from __future__ import annotations

import asyncio
import errno
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from wirebroker.clock import Slices
from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from wirebroker.clock import Clock
    from wirebroker.cluster.partition import Partition
    from wirebroker.storage.log_directory import LogDirectory

# Shortages that pass and say nothing about the disk: the request fails, the directory stays.
_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EINTR})

_CLOSING_THREADS = 16


def is_disk_failure(error: OSError) -> bool:
    """Tell whether an error means that the disk cannot be trusted any more."""
    return error.errno not in _SHORTAGES


class DataDirectory:
    """One of `log.dirs`.

    Attributes:
        files: Its names, checkpoints and markers.
        partitions: What lies in it, for the choice of the emptiest and for checkpoints.
        is_online: Whether it may be read and written.
    """

    __slots__ = ("_write_lock", "_written", "files", "is_online", "partitions")

    def __init__(self, files: LogDirectory) -> None:
        self.files = files
        self.partitions: set[Partition] = set()
        self.is_online = True
        self._written = _Offsets()
        # A checkpoint that was given up at the stop may still be writing in its thread.
        self._write_lock = threading.Lock()

    @property
    def path(self) -> str:
        """Where it lies."""
        return self.files.path

    def check_online(self) -> None:
        """Refuse to go on if the disk has failed.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        if not self.is_online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.path} is offline")

    async def checkpoint(self, clock: Clock) -> None:
        """Write down recovery points, log start offsets and high watermarks if they changed.

        Raises:
            OSError: The disk failed.
        """
        offsets = _Offsets()
        slices = Slices(clock)
        for partition in tuple(self.partitions):
            offsets.add(partition)
            await slices.turn()
        if self.is_online:
            await asyncio.to_thread(self._write, offsets)

    def close(self, *, broker_epoch: int) -> None:
        """Flush and close every log, then note that the stop was clean. Blocks.

        Raises:
            OSError: The disk failed; the next start recovers.
        """
        is_clean = self.is_online
        # Some 8 ms for each log that was written to; those of one moment share the disk's journal.
        with ThreadPoolExecutor(_CLOSING_THREADS) as pool:
            closing = [
                pool.submit(partition.log.close, clean=is_clean) for partition in self.partitions
            ]
        for each in closing:
            each.result()
        offsets = _Offsets()
        for partition in self.partitions:
            offsets.add(partition)
        if is_clean:
            self._write(offsets)
            self.files.mark_clean_shutdown(broker_epoch=broker_epoch)

    def _write(self, offsets: _Offsets) -> None:
        with self._write_lock:
            # Three files are synced: an idle broker leaves them alone.
            if offsets.recovery_points != self._written.recovery_points:
                self.files.write_recovery_points(offsets.recovery_points)
            if offsets.log_start_offsets != self._written.log_start_offsets:
                self.files.write_log_start_offsets(offsets.log_start_offsets)
            if offsets.high_watermarks != self._written.high_watermarks:
                self.files.write_high_watermarks(offsets.high_watermarks)
            self._written = offsets


class _Offsets:
    """What the checkpoint files of a directory hold."""

    __slots__ = ("high_watermarks", "log_start_offsets", "recovery_points")

    def __init__(self) -> None:
        self.recovery_points: dict[tuple[str, int], int] = {}
        self.log_start_offsets: dict[tuple[str, int], int] = {}
        self.high_watermarks: dict[tuple[str, int], int] = {}

    def add(self, partition: Partition) -> None:
        log = partition.log
        key = (partition.topic, partition.index)
        self.recovery_points[key] = log.recovery_point
        self.high_watermarks[key] = log.high_watermark
        if log.log_start_offset > log.segments[0].base_offset:
            self.log_start_offsets[key] = log.log_start_offset
