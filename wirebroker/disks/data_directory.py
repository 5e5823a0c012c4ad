"""A log directory of a running broker: its partitions, and whether its disk works.

Failed writes to a full disk are undone (docs/decisions/0005).

Source: Kafka's LogManager and LogDirFailureChannel (KIP-112).
"""

from __future__ import annotations

import asyncio
import errno
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from enum import Flag, auto
from operator import attrgetter
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
    """A partition as seen by its log directory."""

    @property
    def topic(self) -> str:
        """Its topic's name."""
        ...

    @property
    def index(self) -> int:
        """Its number."""
        ...

    @property
    def log(self) -> Log:
        """Its log."""
        ...

    @property
    def is_retired(self) -> bool:
        """Whether it was deleted."""
        ...


# These do not concern the disk: only the request fails.
_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EINTR})
_NO_FREE_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})

# From here on, a stop syncs the whole volume.
_MANY_LOGS = 20


def is_shortage(error: OSError) -> bool:
    """Return whether an error does not concern the disk."""
    return error.errno in _SHORTAGES


def is_disk_full(error: OSError) -> bool:
    """Return whether a write failed for lack of space, and was undone.

    For a sync this error means that data is lost.
    """
    return error.errno in _NO_FREE_SPACE


class Checkpoint(Flag):
    """The checkpoint files of a directory.

    Log start offsets are written with recovery points, which may have passed segments deleted
    without a flush.
    """

    RECOVERY_POINTS = auto()
    LOG_START_OFFSETS = auto()
    HIGH_WATERMARKS = auto()
    ALL = RECOVERY_POINTS | LOG_START_OFFSETS | HIGH_WATERMARKS


def offline_ids(directories: Iterable[DataDirectory]) -> list[bytes]:
    """Return the known ids of offline directories."""
    return [
        directory.directory_id
        for directory in directories
        if not directory.is_online and directory.directory_id != UNASSIGNED_DIRECTORY
    ]


def cordoned_ids(directories: Iterable[DataDirectory]) -> list[bytes]:
    """Return the known ids of cordoned directories."""
    return [
        directory.directory_id
        for directory in directories
        if directory.is_cordoned and directory.directory_id != UNASSIGNED_DIRECTORY
    ]


def is_disk_failure(error: OSError) -> bool:
    """Return whether a failed read or write means that the disk has failed."""
    return not (is_shortage(error) or is_disk_full(error))


class DataDirectory:
    """One of `log.dirs`.

    Attributes:
        directory_id: UNASSIGNED_DIRECTORY if it could not be opened.
        is_cordoned: Whether new replicas are placed elsewhere if possible (KIP-1066).
        is_full: Whether a write failed recently for lack of space.
        volume: Its volume, if syncfs reports all errors.
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
        self.files = files
        self.directory_id = files.directory_id
        self.partitions: set[StoredPartition] = set()
        self.is_online = not files.has_failed
        self.is_cordoned = False
        self.is_full = False
        self._refused_count = 0  # since the last check
        self.volume = files.open_volume() if self.is_online else None
        # Counts created partition directories; those of earlier processes are 1.
        self._names_made = 1
        self._names_synced = 0
        self._names_lock = threading.Lock()
        self._written = Offsets()
        # Checkpoints are written in the order of gathering.
        self._gathering = asyncio.Lock()
        # An abandoned checkpoint's thread may still write.
        self._write_lock = threading.Lock()

    @property
    def path(self) -> str:
        """Its path."""
        return self.files.path

    def check_online(self) -> None:
        """Check that the directory is online.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        if not self.is_online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.path} is offline")

    def note_full(self, error: OSError) -> None:
        """Record a failed write for lack of space; log the first one."""
        self._refused_count += 1
        if not self.is_full:
            self.is_full = True
            logger.error(
                "the data directory %s is full: %s; writes fail with KAFKA_STORAGE_ERROR"
                " until space is freed, reads continue",
                self.path,
                error,
            )

    def check_free_space(self) -> None:
        """Check, regularly, whether writes succeed again."""
        if self.is_full and not self._refused_count:
            self.is_full = False
            logger.info("the data directory %s accepts writes again", self.path)
        self._refused_count = 0

    def note_new_names(self) -> None:
        """Record that a partition directory was created, for the next sync."""
        self._names_made += 1

    def sync_names(self) -> None:
        """Sync the names of the partition directories. Blocks; thread-safe.

        Raises:
            OSError: The disk failed.
        """
        made = self._names_made
        if self._names_synced < made:
            with self._names_lock:
                if self._names_synced < made:
                    self.files.sync_names()
                    self._names_synced = made

    def read_checkpoints(self) -> Offsets:
        """Return the offsets in the checkpoint files."""
        written = self._written
        written.recovery_points = self.files.read_recovery_points()
        written.log_start_offsets = self.files.read_log_start_offsets()
        written.high_watermarks = self.files.read_high_watermarks()
        return written

    async def checkpoint(self, clock: Clock, kinds: Checkpoint = Checkpoint.ALL) -> None:
        """Write the offsets of all partitions, if they have changed.

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
        """Remove deleted partitions from the checkpoints.

        Otherwise a new topic of the same name would use them after a crash.

        Raises:
            OSError: The disk failed.
        """
        written = self._written
        async with self._gathering:  # a running checkpoint may have them
            keys = {(partition.topic, partition.index) for partition in deleted}
            is_known = any(written.recovery_points.get(key) for key in keys)
            is_known |= not keys.isdisjoint(written.log_start_offsets)
        if is_known:
            await self.checkpoint(clock, Checkpoint.RECOVERY_POINTS)

    def close(self, *, broker_epoch: int) -> None:
        """Flush and close every log, then write the clean-stop marker. Blocks.

        Raises:
            OSError: The disk failed; the next start recovers.
        """
        is_clean = self.is_online
        if is_clean:
            self.files.check_in_place()
        # Syncing a log takes 8 ms; syncing the volume takes no longer than 20 logs.
        syncs_volume = self.volume is not None and len(self.partitions) >= _MANY_LOGS
        # The order of a set depends on addresses; that of a simulation must not.
        partitions = sorted(self.partitions, key=attrgetter("topic", "index"))
        with ThreadPoolExecutor(self.files.closing_threads) as pool:
            closing = [
                pool.submit(partition.log.close, clean=is_clean, sync=not syncs_volume)
                for partition in partitions
            ]
        for future in closing:
            future.result()
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
            # Each write waits for the disk. Log starts precede recovery points: see Checkpoint.
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
    """The offsets in a directory's checkpoint files."""

    __slots__ = ("high_watermarks", "log_start_offsets", "recovery_points")

    def __init__(self) -> None:
        self.recovery_points: _OffsetsByPartition = {}
        self.log_start_offsets: _OffsetsByPartition = {}
        self.high_watermarks: _OffsetsByPartition = {}

    def add(self, partition: StoredPartition) -> None:
        """Add a partition's offsets."""
        log = partition.log
        key = (partition.topic, partition.index)
        self.recovery_points[key] = log.recovery_point
        self.high_watermarks[key] = log.high_watermark
        # Even if the first segment begins there: a power loss may bring earlier ones back.
        if log.log_start_offset:
            self.log_start_offsets[key] = log.log_start_offset
