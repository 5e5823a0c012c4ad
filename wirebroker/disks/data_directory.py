"""A log directory while the broker runs: its partitions, and whether its disk still works.

    online  --a sync fails, or a write or read for another reason than room-->  offline, until a
                                                                                restart

Once offline, all its partitions answer KAFKA_STORAGE_ERROR, nothing is written there any more (no
checkpoint either), and it does not count as cleanly stopped: the next start recovers it.

A full disk is none that failed: what could not be written was taken back, the request is answered
KAFKA_STORAGE_ERROR, reads go on, and so do writes once there is room (docs/decisions/0005).

Source: Kafka's LogManager and LogDirFailureChannel (KIP-112).
"""

from __future__ import annotations

import asyncio
import errno
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from enum import Flag, auto
from typing import TYPE_CHECKING, Protocol

from wirebroker.base.clock import Slices
from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.controller.image.cluster_image import UNASSIGNED_DIRECTORY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.base.clock import Clock
    from wirebroker.storage.log.log import Log
    from wirebroker.storage.log_directory import LogDirectory

logger = logging.getLogger(__name__)

_OffsetsByPartition = dict[tuple[str, int], int]


class StoredPartition(Protocol):
    """A partition as its log directory knows it."""

    @property
    def topic(self) -> str:
        """Name of its topic."""
        ...

    @property
    def index(self) -> int:
        """Its number in the topic."""
        ...

    @property
    def log(self) -> Log:
        """Its records."""
        ...

    @property
    def is_retired(self) -> bool:
        """Whether it was deleted."""
        ...


# Shortages that pass and say nothing about the disk: the request fails, the directory stays.
_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EINTR})
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})

_CLOSING_THREADS = 16
# From so many logs on the whole volume is synced at the stop.
_MANY_LOGS = 20


def is_shortage(error: OSError) -> bool:
    """Tell whether an error says nothing about the disk."""
    return error.errno in _SHORTAGES


def is_disk_full(error: OSError) -> bool:
    """Tell whether a write failed for lack of room; then it was taken back.

    Of a sync it says something else: what was written is lost.
    """
    return error.errno in _NO_ROOM


class Checkpoint(Flag):
    """The checkpoint files of a directory.

    Recovery points come with log start offsets: they may have passed segments that were deleted
    without a flush, and whose deletion a power loss may undo.
    """

    RECOVERY_POINTS = auto()
    LOG_START_OFFSETS = auto()
    HIGH_WATERMARKS = auto()
    ALL = RECOVERY_POINTS | LOG_START_OFFSETS | HIGH_WATERMARKS


def offline_ids(directories: Iterable[DataDirectory]) -> list[bytes]:
    """Return the ids of those that are offline, as far as they are known."""
    return [
        each.directory_id
        for each in directories
        if not each.is_online and each.directory_id != UNASSIGNED_DIRECTORY
    ]


def cordoned_ids(directories: Iterable[DataDirectory]) -> list[bytes]:
    """Return the ids of those that new replicas are kept out of, as far as they are known."""
    return [
        each.directory_id
        for each in directories
        if each.is_cordoned and each.directory_id != UNASSIGNED_DIRECTORY
    ]


def is_disk_failure(error: OSError) -> bool:
    """Tell whether a failed read or write means that the disk cannot be trusted any more."""
    return not (is_shortage(error) or is_disk_full(error))


class DataDirectory:
    """One of `log.dirs`.

    Attributes:
        files: Its names, checkpoints and markers.
        directory_id: What the metadata calls it; UNASSIGNED_DIRECTORY if it could not be opened.
        partitions: What lies in it, for the choice of the emptiest and for checkpoints.
        is_online: Whether it may be read and written.
        is_cordoned: Whether no replicas are made here that may be made elsewhere (KIP-1066).
        is_full: Whether a write has failed lately for lack of room.
        volume: What syncs its whole file system, if that tells all errors.
    """

    __slots__ = (
        "_gathering",
        "_names_lock",
        "_names_made",
        "_names_synced",
        "_refused_count",
        "_write_lock",
        "_written",
        "directory_id",
        "files",
        "is_cordoned",
        "is_full",
        "is_online",
        "partitions",
        "volume",
    )

    def __init__(self, files: LogDirectory) -> None:
        """Begin with one that was opened, or is offline because it could not be."""
        self.files = files
        self.directory_id = files.directory_id
        self.partitions: set[StoredPartition] = set()
        self.is_online = not files.has_failed
        self.is_cordoned = False
        self.is_full = False
        self._refused_count = 0  # writes since the last look
        self.volume = files.open_volume() if self.is_online else None
        # How often partitions' directories were made, the first time perhaps by an earlier process.
        self._names_made = 1
        self._names_synced = 0
        self._names_lock = threading.Lock()
        self._written = Offsets()
        # One checkpoint after the other, so that the last to be written is the last gathered.
        self._gathering = asyncio.Lock()
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

    def note_full(self, error: OSError) -> None:
        """Note that a write failed for lack of room: one line, however many there are."""
        self._refused_count += 1
        if not self.is_full:
            self.is_full = True
            logger.error(
                "the data directory %s is full: %s; what is written there answers"
                " KAFKA_STORAGE_ERROR until there is room, reads go on",
                self.path,
                error,
            )

    def look_for_room(self) -> None:
        """Note, from time to time, whether writes are taken again."""
        if self.is_full and not self._refused_count:
            self.is_full = False
            logger.info("nothing is refused for lack of room in %s any more", self.path)
        self._refused_count = 0

    def note_new_names(self) -> None:
        """Note that a partition's directory was made here: the next sync keeps its name."""
        self._names_made += 1

    def sync_names(self) -> None:
        """Wait until the names of the partitions' directories are on the disk. Blocks.

        Several threads may do it at a time: none returns before they are.

        Raises:
            OSError: They may not be.
        """
        made = self._names_made
        if self._names_synced < made:
            with self._names_lock:
                if self._names_synced < made:
                    self.files.sync_names()
                    self._names_synced = made

    def read_checkpoints(self) -> Offsets:
        """Return what the last run wrote down."""
        written = self._written
        written.recovery_points = self.files.read_recovery_points()
        written.log_start_offsets = self.files.read_log_start_offsets()
        written.high_watermarks = self.files.read_high_watermarks()
        return written

    async def checkpoint(self, clock: Clock, kinds: Checkpoint = Checkpoint.ALL) -> None:
        """Write down offsets of all partitions if they changed.

        Raises:
            OSError: The disk failed.
        """
        async with self._gathering:
            offsets = Offsets()
            slices = Slices(clock, Slices.BESIDE_OTHERS_SECONDS)
            for partition in tuple(self.partitions):
                offsets.add(partition)
                await slices.turn()
            if self.is_online:
                await in_thread(Work.TOPICS, self._write, offsets, kinds)

    async def forget(self, deleted: Iterable[StoredPartition], clock: Clock) -> None:
        """Take deleted partitions out of the checkpoints.

        A topic of the same name would take their offsets for its own, after a crash: its log begin
        where the other began, or be believed to be on the disk.

        Raises:
            OSError: The disk failed.
        """
        written = self._written
        async with self._gathering:  # one that is being written may hold them
            keys = {(partition.topic, partition.index) for partition in deleted}
            is_known = any(written.recovery_points.get(key) for key in keys)
            is_known |= not keys.isdisjoint(written.log_start_offsets)
        if is_known:
            await self.checkpoint(clock, Checkpoint.RECOVERY_POINTS)

    def close(self, *, broker_epoch: int) -> None:
        """Flush and close every log, then note that the stop was clean. Blocks.

        Raises:
            OSError: The disk failed; the next start recovers.
        """
        is_clean = self.is_online
        if is_clean:
            self.files.check_in_place()
        # Some 8 ms for each log that is synced; one sync of the volume takes no longer than 20.
        syncs_volume = self.volume is not None and len(self.partitions) >= _MANY_LOGS
        with ThreadPoolExecutor(_CLOSING_THREADS) as pool:
            closing = [
                pool.submit(partition.log.close, clean=is_clean, sync=not syncs_volume)
                for partition in self.partitions
            ]
        for each in closing:
            each.result()
        if is_clean and syncs_volume:
            assert self.volume is not None
            self.volume.sync()
        offsets = Offsets()
        for partition in self.partitions:
            offsets.add(partition)
        if is_clean:
            self._write(offsets)
            self.files.mark_clean_shutdown(broker_epoch=broker_epoch)

    def _write(self, offsets: Offsets, kinds: Checkpoint = Checkpoint.ALL) -> None:
        with self._write_lock:
            written = self._written
            # Each write waits for the disk: an idle broker leaves the files alone.
            # Starts before recovery points: see Checkpoint.
            if (
                kinds & (Checkpoint.LOG_START_OFFSETS | Checkpoint.RECOVERY_POINTS)
                and offsets.log_start_offsets != written.log_start_offsets
            ):
                self.files.write_log_start_offsets(offsets.log_start_offsets)
                written.log_start_offsets = offsets.log_start_offsets
            if (
                Checkpoint.RECOVERY_POINTS in kinds
                and offsets.recovery_points != written.recovery_points
            ):
                self.files.write_recovery_points(offsets.recovery_points)
                written.recovery_points = offsets.recovery_points
            if (
                Checkpoint.HIGH_WATERMARKS in kinds
                and offsets.high_watermarks != written.high_watermarks
            ):
                self.files.write_high_watermarks(offsets.high_watermarks)
                written.high_watermarks = offsets.high_watermarks


class Offsets:
    """What the checkpoint files of a directory hold, by topic and partition."""

    __slots__ = ("high_watermarks", "log_start_offsets", "recovery_points")

    def __init__(self) -> None:
        self.recovery_points: _OffsetsByPartition = {}
        self.log_start_offsets: _OffsetsByPartition = {}
        self.high_watermarks: _OffsetsByPartition = {}

    def add(self, partition: StoredPartition) -> None:
        """Add what is to be written down of a partition."""
        log = partition.log
        key = (partition.topic, partition.index)
        self.recovery_points[key] = log.recovery_point
        self.high_watermarks[key] = log.high_watermark
        # Also if the first segment begins there: a power loss may bring back the ones before it.
        if log.log_start_offset:
            self.log_start_offsets[key] = log.log_start_offset
