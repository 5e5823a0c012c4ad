"""Writes a metadata snapshot when one is due, then removes the files that it replaces.

Source: Kafka's SnapshotGenerator (KIP-630).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from wirebroker.base.threads import Work, in_thread
from wirebroker.quorum.log.metadata_snapshot import SnapshotId, encode_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.base.clock import Clock
    from wirebroker.codecs.records.control import ControlRecord
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.quorum.log.metadata_store import MetadataStore

LOGGER = logging.getLogger(__name__)

# A snapshot is also due when the later log is as large as the last one, so that a start reads at
# most twice the cluster's size. This minimum is replayed in 0.15 s.
_LEAST_INTERVAL_BYTES: Final = 1 << 20


class SnapshotWriter:
    """The snapshots of one log; used on one event loop.

    Attributes:
        voters: The log's voter records, which snapshots repeat.
    """

    __slots__ = ("_clock", "_config", "_last_at", "_on_written", "_store", "_task", "voters")

    def __init__(
        self,
        store: MetadataStore,
        *,
        clock: Clock,
        config: Config,
        on_written: Callable[[SnapshotId, int], None],
    ) -> None:
        """Write snapshots of a log; `on_written` is called with each one and its size in bytes."""
        self._store = store
        self._on_written = on_written
        self._clock = clock
        self._config = config
        self._last_at = clock.monotonic()
        self._task: asyncio.Task[None] | None = None
        self.voters: list[ControlRecord] = []

    @property
    def is_busy(self) -> bool:
        """Whether a snapshot is being written."""
        return self._task is not None

    @property
    def is_due(self) -> bool:
        """Whether the log has grown enough, and no snapshot is being written."""
        if self._task is not None:
            return False
        size = self._store.bytes_since_snapshot
        interval_ms = self._config.int("metadata.log.max.snapshot.interval.ms")
        age_ms = (self._clock.monotonic() - self._last_at) * 1000
        limit = min(
            self._config.int("metadata.log.max.record.bytes.between.snapshots"),
            max(_LEAST_INTERVAL_BYTES, self._store.snapshot_bytes),
        )
        return size >= limit or (0 < interval_ms <= age_ms and size > 0)

    def begin(self, image: ClusterImage, *, timestamp_ms: int) -> None:
        """Begin to write a committed image without an open transaction.

        A new segment must have begun; `timestamp_ms` is that of the last record.
        """
        assert self._task is None, "another snapshot is being written"
        self._last_at = self._clock.monotonic()
        self._task = asyncio.create_task(self._write(image, timestamp_ms), name="metadata snapshot")

    async def settle(self) -> None:
        """Wait for the snapshot that is being written."""
        if self._task is not None:
            await self._task

    async def _write(self, image: ClusterImage, timestamp_ms: int) -> None:
        snapshot = SnapshotId(image.offset, image.epoch)
        try:
            pieces = await encode_snapshot(
                image, voters=self.voters, timestamp_ms=timestamp_ms, clock=self._clock
            )
            content = b"".join(pieces)
            await in_thread(Work.UPKEEP, self._store.write_snapshot, snapshot, content)
            self._store.advance_start(snapshot)
        except OSError as error:
            # The next snapshot retries.
            LOGGER.warning("cannot write a metadata snapshot: %s", error)
        else:
            LOGGER.info("wrote metadata snapshot %s (%d bytes)", snapshot.file_name, len(content))
            self._on_written(snapshot, len(content))
        finally:
            self._task = None
