"""The recovery of a log after a crash: checks, truncation, indexes, epochs and producers.

Source: Kafka's LogLoader.recoverLog, UnifiedLog.rebuildProducerState, LogSegment.recover.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.storage.log.producer_rebuild import replay_into, replay_producers
from wirebroker.storage.log.producers.producer_replay import ProducerReplay, apply_batch
from wirebroker.storage.log.producers.producer_state import ProducerState
from wirebroker.storage.log.segment.batch_scan import scan_headers
from wirebroker.storage.log.segment.segment_files import TXN_INDEX_SUFFIX
from wirebroker.storage.log.segment.segment_recovery import from_the_first
from wirebroker.storage.log.stored_epochs import StoredEpochs
from wirebroker.storage.recovery.clean_open import lacks_index

if TYPE_CHECKING:
    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.storage.log.index.transaction_index import AbortedTransaction
    from wirebroker.storage.log.log import Log
    from wirebroker.storage.log.segment.segment import Segment
    from wirebroker.storage.log.segment.segment_recovery import CheckStart

_log = logging.getLogger(__name__)


class CrashRecovery:
    """One run over a log that was not closed cleanly.

    Args:
        log: Its segments are known, in order; at least one.
        names: The files of its directory.
        recovery_point: From the checkpoint; batches below it are on disk.
        start: The log start offset.
        now_ms: For the expiration of producers.
    """

    __slots__ = ("_current", "_log", "_names", "_now_ms", "_recovery_point", "_start")

    def __init__(
        self,
        log: Log,
        names: set[str],
        *,
        recovery_point: int,
        start: int,
        now_ms: int,
    ) -> None:
        self._log = log
        self._names = names
        self._recovery_point = recovery_point
        self._start = start
        self._now_ms = now_ms
        self._current: Segment | None = None

    def run(self) -> int:
        """Recover the log, and return the offset at which it ends.

        Raises:
            OSError: The disk failed.
            KafkaError: UNSUPPORTED_FOR_MESSAGE_FORMAT: flushed batches have magic 0 or 1.
        """
        log = self._log
        log.mark_touched()
        self._remove_below_start()
        unflushed = log.segments.since_flush(self._recovery_point)
        for segment in log.segments:
            if segment is unflushed[0]:
                break
            self._repair_indexes(segment)
        try:
            end = self._check_unflushed(unflushed)
        except KafkaError as error:
            if error.code is not ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
                raise
            if not self._cut_false_old_format():
                raise
            end = self._check_unflushed(log.segments.since_flush(self._recovery_point))
        log.leader_epochs.truncate_from_end(end)
        if self._start:
            log.leader_epochs.truncate_from_start(self._start)
        return end

    def _remove_below_start(self) -> None:
        """Delete the segments that end at or before the log's start again.

        A power loss may bring them back incomplete, because the recovery point passes them without
        a flush (Log.delete_old_segments).
        """
        log = self._log
        first = log.segments.since(self._start)[0]
        for segment in log.segments.remove_before(first.base_offset):
            log.producer_state.snapshots.delete(segment.base_offset)
            segment.delete()
        if self._recovery_point <= self._start:
            self._recovery_point = min(self._recovery_point, first.base_offset)

    def _check_unflushed(self, unflushed: list[Segment]) -> int:
        """Check segments up to the first damage; delete everything after it."""
        log = self._log
        first = unflushed[0]
        state = log.producer_state
        start = first.check_start(self._recovery_point)
        if self._has_aborts(first) and first.transaction_index.sanity_check(first.base_offset):
            start = from_the_first(first.base_offset)  # the replay finds them again
        if start.position:
            first.trust(start)
        end = start.next_offset
        self._repair_epochs(first, end)
        state.reload(
            log_start_offset=self._start,
            end_offset=end,
            now_ms=self._now_ms,
            keep_up_to=self._recovery_point,
        )
        replay_producers(log, end)
        for index, segment in enumerate(unflushed):
            is_flushed = segment.base_offset <= self._recovery_point
            if segment.base_offset < end and index and not is_flushed:
                _log.warning(
                    "%s begins below offset %d, the end of the previous segment: deleted",
                    segment.log.path,
                    end,
                )
                self._drop(unflushed[index:])
                break
            if index or end == segment.base_offset:
                state.end_offset = segment.base_offset
                state.take_snapshot()
            end, was_cut = self._recover_segment(
                segment,
                from_the_first(segment.base_offset) if index else start,
                is_active=segment is unflushed[-1],
            )
            if was_cut:
                self._drop(unflushed[index + 1 :])
                break
        state.snapshots.delete_outside(-1, end)  # flushed data was damaged
        state.end_offset = end
        # Kafka writes a snapshot here and reads it again, which drops expired producers.
        state.remove_expired(self._now_ms)
        return end

    def _has_aborts(self, segment: Segment) -> bool:
        return f"{segment.base_offset:020d}{TXN_INDEX_SUFFIX}" in self._names

    def _drop(self, segments: list[Segment]) -> None:
        if segments:
            for segment in reversed(self._log.segments.remove_from(segments[0].base_offset)):
                segment.delete()
            # so that a power loss does not bring them back
            self._log.files.sync_directory(self._log.directory)

    def _repair_indexes(self, segment: Segment) -> None:
        problem = segment.sanity_check()
        if lacks_index(segment, self._names):
            problem = "an index is missing"
        if problem is not None:
            _log.warning("%s: %s; rebuilding its indexes", segment.log.path, problem)
            segment.recover(
                _ignore_batch, index_interval_bytes=self._log.settings.index_interval_bytes
            )
        if not self._has_aborts(segment):
            return
        problem = segment.transaction_index.sanity_check(segment.base_offset)
        if problem is not None:
            _log.warning("%s: its .txnindex is corrupt: %s", segment.log.path, problem)
            _rebuild_transaction_index(self._log, segment, self._now_ms)

    def _repair_epochs(self, first_unflushed: Segment, end_offset: int) -> None:
        """Restore the epochs of flushed batches if the checkpoint is missing, damaged or old.

        It is replaced without a sync when an epoch gets its first batch, so a power loss may remove
        earlier entries as well.
        """
        epochs = self._log.leader_epochs
        begin = 0
        if epochs.latest_epoch >= 0 and not epochs.was_unreadable:
            stored = StoredEpochs(
                self._log.segments,
                start_offset=self._start,
                end_offset=end_offset,
                name=self._log.directory,
            )
            if stored.latest() <= epochs.latest_epoch:
                return
            begin = epochs.entries[-1][1]
        for segment in self._log.segments.since(begin):
            if segment.base_offset >= end_offset:
                return
            for _, header in segment.iterate_headers():
                if header.leader_epoch > epochs.latest_epoch:
                    epochs.assign(header.leader_epoch, header.base_offset)
                if header.last_offset + 1 >= end_offset:
                    return  # other bytes may follow
            if segment is first_unflushed:
                return

    def _recover_segment(
        self, segment: Segment, start: CheckStart, *, is_active: bool
    ) -> tuple[int, bool]:
        """Check and replay a segment; return the offset after it, and whether it was truncated."""
        log = self._log
        state, epochs = log.producer_state, log.leader_epochs
        aborted: list[AbortedTransaction] = []
        replay = ProducerReplay(state, from_offset=self._start)

        def on_batch(header: BatchHeader, batch: memoryview) -> None:
            completed = replay.apply(header, batch)
            if completed is not None and completed.is_aborted:
                aborted.append(state.transactions.aborted_entry(completed))
            # The file may contain truncated epochs. Entries that agree with the batches are kept
            # (see stored_epochs.py).
            assigned_epoch = epochs.epoch_for_offset(header.base_offset)
            if header.leader_epoch >= 0 and (
                assigned_epoch is None or header.leader_epoch > assigned_epoch
            ):
                epochs.assign(header.leader_epoch, header.base_offset)

        self._current = segment
        result = segment.recover(
            on_batch,
            index_interval_bytes=log.settings.index_interval_bytes,
            start=start,
            recent=replay.recent,
            is_active=is_active,
        )
        replay.finish(result.next_offset)
        if aborted or self._has_aborts(segment):
            index = segment.transaction_index
            retained = (
                [entry for entry in index if entry.last_offset < start.next_offset]
                if start.position
                else []
            )
            segment.replace_aborted([*retained, *aborted])
        if result.cut_bytes:
            # So that a power loss does not bring whole lost batches back after later records.
            segment.log.sync()
            _log.warning(
                "%s: truncated %d bytes %s; the log ends at offset %d",
                segment.log.path,
                result.cut_bytes,
                result.reason,
                result.next_offset,
            )
        return result.next_offset, bool(result.cut_bytes)

    def _cut_false_old_format(self) -> bool:
        """Truncate an incomplete batch that looks like magic 0 or 1 (a header that ends in zeros).

        Only beyond the recovery point are such batches damage.
        """
        segment = self._current
        assert segment is not None
        next_offset = segment.base_offset
        position = 0
        try:
            for start, header in scan_headers(segment.log, 0, segment.log.size()):
                next_offset = header.last_offset + 1
                position = start + header.size
        except KafkaError as error:
            if error.code is not ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
                raise
        if next_offset < self._recovery_point:
            return False
        _log.warning("%s: damaged at position %d, truncated there", segment.log.path, position)
        segment.log.truncate(position)
        segment.log.sync()
        self._drop(
            [later for later in self._log.segments if later.base_offset > segment.base_offset]
        )
        return True


def _rebuild_transaction_index(log: Log, segment: Segment, now_ms: int) -> None:
    """Rebuild a segment's transaction index from its batches and earlier producer state."""
    state = ProducerState(log.files, log.directory, expiration_ms=1 << 62)
    state.snapshots.use(log.producer_state.snapshots.newest_first(segment.base_offset))
    state.reload(
        log_start_offset=log.log_start_offset, end_offset=segment.base_offset, now_ms=now_ms
    )
    aborted: list[AbortedTransaction] = []
    replay_into(state, log, segment.base_offset)
    for _, header, batch in segment.iterate_batches():
        completed = apply_batch(state, header, batch)
        if completed is not None and completed.is_aborted:
            aborted.append(state.transactions.aborted_entry(completed))
    segment.replace_aborted(aborted)


def _ignore_batch(header: BatchHeader, batch: memoryview) -> None:
    pass
