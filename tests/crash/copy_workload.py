"""A scripted workload of copies as `wirebroker shadow` makes them (shadow/copied_partition.py).

The source has gaps between batches, before the copy's end and after it. An empty copy may begin
within a batch. After each start the copy compares its last batch.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from tests.crash.history import end_of
from tests.crash.log_points import LogRun
from tests.crash.log_workload import LogWorkload
from wirebroker.shadow.copied_partition import CopiedPartition

if TYPE_CHECKING:
    from tests.crash.log_workload import LogStep
    from wirebroker.storage.log.log import Log

_MOST_BATCHES = 4
_LARGEST_GAP = 20


class CopyWorkload(LogWorkload):
    def steps(self) -> list[tuple[float, LogStep]]:
        return [
            (10, self.copy),
            (2, self.copy_after_gap),
            (2, self.flush),
            (1, self.checkpoint),
            (1, self.begin_epoch),
            (0.4, self.stop_and_start),
            (0.6, self.die_and_start),
        ]

    def step_after_crash(self) -> LogStep:
        return self.random.choice([self.copy, self.copy_after_gap])

    # -- steps -------------------------------------------------------------------------------

    def copy(self, partition: int, log: Log) -> None:
        """Copy the source's batches after the copy's end."""
        self._take(partition, log, self._compared(partition, log))

    def copy_after_gap(self, partition: int, log: Log) -> None:
        """Copy what remains after the source's retention has passed the copy's end."""
        start = log.log_end_offset + self.random.randrange(1, _LARGEST_GAP)
        copied = self._compared(partition, log)
        if not log.size_bytes:
            copied.begin_at(start)
            self._cut(partition, log, self.facts[partition]._replace(lineage=()))
            # The first batch may begin before the source's start.
            first = start - self.random.randrange(min(3, start))
            self._take(partition, log, copied, first=first, least_end=start + 1)
            self._begins_at(partition, log.log_start_offset)
            self.checkpoint(partition, log)
            return
        copied.begin_at(start)
        self._take(partition, log, copied, first=start)

    def _compared(self, partition: int, log: Log) -> CopiedPartition:
        """Return the state of a copy after a start; the source still has its last batch."""
        copied = CopiedPartition(log, clock=self.clock, leader_epoch=self.leader_epoch, until=None)
        offset = copied.fetch_offset
        if offset < log.log_end_offset:
            sent = self.facts[partition].lineage[-1]
            if end_of(sent) < log.log_end_offset:  # a segment begun after a gap is empty
                sent = bytes(self._batch_at(partition, log.log_end_offset))
            assert copied.matches_source(memoryview(sent), turns=1), copied.state
        assert copied.fetch_offset == log.log_end_offset
        return copied

    def _take(
        self,
        partition: int,
        log: Log,
        copied: CopiedPartition,
        *,
        first: int | None = None,
        least_end: int = 0,
    ) -> None:
        begin = offset = log.log_end_offset if first is None else first
        batches = bytearray()
        for number in range(self.random.randrange(1, _MOST_BATCHES + 1)):
            if number and self.random.random() < 0.2:
                offset += self.random.randrange(1, _LARGEST_GAP)
            batch = self._batch_at(partition, offset)
            if end_of(bytes(batch)) < least_end and not number:
                begin = least_end - 1
                batch = self._batch_at(partition, begin)
            batches += batch
            offset = end_of(bytes(batch))
        assert copied.take(memoryview(batches)) == len(batches), copied.state
        self._take_appended(partition, log, begin)

    def _batch_at(self, partition: int, offset: int) -> bytearray:
        batch = self._batch(partition, producer_id=-1)
        # The batch's checksum covers neither field.
        struct.pack_into(">q", batch, 0, offset)
        struct.pack_into(">i", batch, 12, self.leader_epoch)
        return batch


class CopyRun(LogRun):
    def _new_workload(self) -> CopyWorkload:
        return CopyWorkload(self.seed)
