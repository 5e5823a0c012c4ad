"""The snapshots that a replica writes of its own committed records.

A snapshot begins while everything is applied and on disk, so that a segment ends where the snapshot
does.

Source: Kafka's SnapshotGenerator (KIP-630).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.quorum.log.snapshot_writer import SnapshotWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.codecs.records.control import ControlRecord
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.quorum.log.metadata_snapshot import SnapshotId
    from wirebroker.quorum.raft.raft_log import RaftLog


class RaftSnapshots:
    """Writes snapshots of one log when they are due.

    Attributes:
        writer: Writes one at a time.
        is_held: Whether snapshots are postponed, for a quick start.
    """

    __slots__ = ("_log", "is_held", "writer")

    def __init__(
        self,
        log: RaftLog,
        *,
        clock: Clock,
        config: Config,
        on_written: Callable[[SnapshotId, int], None],
    ) -> None:
        self._log = log
        self.is_held = False
        self.writer = SnapshotWriter(log.store, clock=clock, config=config, on_written=on_written)

    def look(
        self,
        image: ClusterImage,
        *,
        synced_offset: int,
        controls: Callable[[int], Sequence[ControlRecord]],
    ) -> None:
        """Begin a snapshot if one is due.

        Args:
            image: The applied image.
            synced_offset: The end of what is on disk.
            controls: Returns the log's version and voters at an offset.

        Raises:
            OSError: The disk failed.
        """
        if self.is_held or not self.writer.is_due or image.open_transaction is not None:
            return
        if not image.offset == synced_offset == self._log.end_offset:
            return
        self._log.store.roll()
        self.writer.voters = list(controls(image.offset))
        self.writer.begin(image, timestamp_ms=self._log.last_timestamp_ms)
