"""The directory with the indexes of assigned partitions."""

from __future__ import annotations

import logging
import sqlite3
from typing import TYPE_CHECKING, Final

from wirebroker.delivery.pending.partition import PendingPartition
from wirebroker.delivery.pending.store import PendingStore

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from wirebroker.base.clock import Clock

logger = logging.getLogger(__name__)

INDEX_FILES: Final = "pending-*.sqlite*"
# Half of delete.retention.ms of the pending topic.
_STALE_MS: Final = 12 * 3_600_000
_SUFFIXES: Final = ("", "-wal", "-shm")


class IndexDirectory:
    """Opens and saves indexes; they belong to the pending topic with an id."""

    def __init__(self, directory: Path, topic_id: str, clock: Clock) -> None:
        self._directory = directory
        self._topic_id = topic_id
        self._clock = clock

    def open(self, number: int, end: int, *, open_count: int) -> PendingPartition:
        """Return a partition with its index, which is rebuilt if it cannot be used.

        The partition is loaded once it is read up to `end`. `open_count` is the number of
        partitions that are open at the same time.
        """
        path = self._directory / f"pending-{number}.sqlite"
        now_ms = self._clock.now_ms()
        try:
            store = PendingStore(path, open_count=open_count)
        except sqlite3.DatabaseError as error:
            logger.warning("the index %s is rebuilt: %s", path, error)
            return PendingPartition(number, self._new_store(path, open_count), end)
        is_fresh = 0 <= now_ms - store.stamp_ms <= _STALE_MS and store.next_offset <= end
        if not (is_fresh and store.topic_id == self._topic_id):
            if store.next_offset:
                logger.info("the index %s is rebuilt: it is too old, or of another topic", path)
            store.close()
            store = self._new_store(path, open_count)
        return PendingPartition(number, store, end)

    def _new_store(self, path: Path, open_count: int) -> PendingStore:
        for suffix in _SUFFIXES:
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        store = PendingStore(path, open_count=open_count)
        store.commit(0, self._clock.now_ms(), self._topic_id)
        return store

    def save(self, partitions: Iterable[PendingPartition]) -> None:
        """Make the indexes durable."""
        now_ms = self._clock.now_ms()
        for partition in partitions:
            partition.save(now_ms, self._topic_id)
