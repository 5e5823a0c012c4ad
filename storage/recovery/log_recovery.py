"""The loading of a log: from a directory listing after a clean stop, with recovery after a crash.

Only damage ends a log. Gaps in the offsets are not damage: compaction leaves gaps, which stay after
a change of cleanup.policy; a follower gets gaps from its leader, and a copy from retention. So a
power loss may leave a gap where a closed segment was not flushed, as in Kafka (not with
`wirebroker.durability=fsync`).

Source: Kafka's LogLoader, UnifiedLog.rebuildProducerState, LogSegment.recover.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.storage.compaction.segment_swap import recover_swap
from wirebroker.storage.file_names import DELETED_SUFFIX
from wirebroker.storage.log.leader_epochs import FILE_NAME as LEADER_EPOCHS_NAME
from wirebroker.storage.log.producer_rebuild import (
    rebuild_producer_state,
    replay_into,
    replay_producers,
)
from wirebroker.storage.log.producers.producer_replay import ProducerReplay, apply_batch
from wirebroker.storage.log.producers.producer_snapshot import SUFFIX as SNAPSHOT_SUFFIX
from wirebroker.storage.log.producers.producer_snapshot import snapshot_offset
from wirebroker.storage.log.producers.producer_state import ProducerState
from wirebroker.storage.log.segment.batch_scan import scan_headers
from wirebroker.storage.log.segment.segment import Segment
from wirebroker.storage.log.segment.segment_files import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    segment_base_offsets,
)
from wirebroker.storage.log.segment.segment_recovery import from_the_first
from wirebroker.storage.log.stored_epochs import StoredEpochs

if TYPE_CHECKING:
    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.storage.log.index.transaction_index import AbortedTransaction
    from wirebroker.storage.log.log import Log
    from wirebroker.storage.log.segment.segment_recovery import CheckStart

_log = logging.getLogger(__name__)

_TEMPORARY_SUFFIX: Final = ".tmp"


def load_log(
    log: Log,
    *,
    recovery_point: int,
    clean: bool,
    now_ms: int,
    log_start_offset: int = 0,
) -> None:
    """Load a new log from its directory, which may be empty.

    `recovery_point` and `log_start_offset` are from the checkpoints, 0 if missing.

    Raises:
        OSError: The disk failed.
        KafkaError: UNSUPPORTED_FOR_MESSAGE_FORMAT: flushed batches have magic 0 or 1.
    """
    regular, others = log.files.list_by_kind(log.directory)
    names = set(regular)
    _remove_odd_indexes(log, others)
    if recover_swap(log.files, log.directory, names):
        names = set(log.files.list_files(log.directory))
        log.mark_touched()
    _remove_leftovers(log, names)
    for base_offset in segment_base_offsets(list(names)):
        log.segments.add(Segment(log.files, log.directory, base_offset, created_ms=now_ms))
    offsets = (snapshot_offset(name) for name in names if name.endswith(SNAPSHOT_SUFFIX))
    log.producer_state.snapshots.use(offset for offset in offsets if offset is not None)
    if not len(log.segments):
        _begin(log, log_start_offset, now_ms)
        _open_empty(log, log_start_offset)
        return
    start = max(log_start_offset, log.segments[0].base_offset)
    end = None
    if clean:
        end = _open_clean(log, names, recovery_point=recovery_point, start=start, now_ms=now_ms)
    if end is None:
        recovery = _Recovery(log, names, recovery_point=recovery_point, start=start, now_ms=now_ms)
        end = recovery.run()
        clean = False
    if end < start:
        _log.warning("%s ends at %d, below its start %d: emptied", log.directory, end, start)
        log.truncate_fully(start, now_ms=now_ms)
        _open_empty(log, start)
        return
    log.producer_state.snapshots.delete_strays(set(log.segments.base_offsets))
    log.leader_epochs.compare_with(
        StoredEpochs(log.segments, start_offset=start, end_offset=end, name=log.directory)
    )
    if LEADER_EPOCHS_NAME not in names:
        log.leader_epochs.load()  # here, because it reads all batches
    log.open_at(
        log_start_offset=start,
        log_end_offset=end,
        recovery_point=end if clean else min(recovery_point, end),
    )


def _open_empty(log: Log, offset: int) -> None:
    log.open_at(log_start_offset=offset, log_end_offset=offset, recovery_point=offset)


def rebuild_transaction_index(log: Log, segment: Segment, now_ms: int) -> None:
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
            aborted.append(state.aborted_entry(completed))
    segment.replace_aborted(aborted)


def _begin(log: Log, offset: int, now_ms: int) -> None:
    log.producer_state.snapshots.delete_all()
    log.producer_state.reset(offset)
    segment = Segment(log.files, log.directory, offset, created_ms=now_ms)
    segment.create(log.settings)
    log.segments.add(segment)
    log.leader_epochs.truncate_from_end(offset)
    log.mark_touched()


def _remove_odd_indexes(log: Log, others: list[str]) -> None:
    for name in others:
        if name.endswith((INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)):
            _log.warning("%s/%s is not a regular file: removed", log.directory, name)
            log.files.remove_obstacle(f"{log.directory}/{name}")


def _remove_leftovers(log: Log, names: set[str]) -> None:
    """Delete unfinished files, and indexes without a log file."""
    for name in list(names):
        is_leftover = name.endswith((DELETED_SUFFIX, _TEMPORARY_SUFFIX))
        if name.endswith((INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)):
            is_leftover = f"{name.partition('.')[0]}{LOG_SUFFIX}" not in names
        if is_leftover:
            names.discard(name)
            log.files.unlink(f"{log.directory}/{name}")


def _open_clean(
    log: Log, names: set[str], *, recovery_point: int, start: int, now_ms: int
) -> int | None:
    """Open a log that was closed cleanly; return None if a clean stop would leave another state.

    Its end is known without reading if it is empty, or if there is a snapshot at the recovery
    point. The snapshot is written after the last batch, so a younger log file was changed by
    another program and is checked: nothing may be appended after unknown data.

    Producers in a snapshot at the log's start are forgotten, because their records are deleted, as
    in Kafka's ProducerStateManager.truncateAndReload.
    """
    active = log.segments.active
    state = log.producer_state
    for segment in log.segments:
        if _lacks_index(segment, names):
            return None
    snapshots = state.snapshots.offsets
    if recovery_point in snapshots and recovery_point >= max(active.base_offset, start + 1):
        if snapshots[-1] == recovery_point:
            end = recovery_point
            if _is_younger_than_its_end(log, end) and _has_more(active, end):
                _log.warning(
                    "%s was changed after the clean stop at offset %d", active.log.path, end
                )
                return None

            def rebuild() -> None:
                rebuild_producer_state(log, end_offset=log.log_end_offset, now_ms=now_ms)

            state.open_at(end, rebuild, now_ms=now_ms)
            return end
    elif active.size == 0 and active.base_offset == 0:
        state.reset(0)
        return 0
    try:
        end = _next_offset(active)
    except KafkaError as error:
        _log.warning("%s is corrupt despite the clean stop: %s", active.log.path, error)
        return None
    state.reload(log_start_offset=start, end_offset=end, now_ms=now_ms)
    replay_producers(log, end)
    state.end_offset = end
    state.take_snapshot()
    return end


def _is_younger_than_its_end(log: Log, end_offset: int) -> bool:
    snapshot = f"{log.directory}/{end_offset:020d}{SNAPSHOT_SUFFIX}"
    return log.segments.active.modified_ms() >= log.files.modified_ms(snapshot)


def _has_more(segment: Segment, end_offset: int) -> bool:
    """Return whether anything, even damaged, follows the batch that ends at `end_offset`."""
    next_offset = segment.base_offset
    try:
        for _, header in segment.iterate_headers(segment.offset_index.last_entry().position):
            next_offset = header.last_offset + 1
    except KafkaError:
        return next_offset >= end_offset
    return next_offset > end_offset


def _lacks_index(segment: Segment, names: set[str]) -> bool:
    name = f"{segment.base_offset:020d}"
    has_both = f"{name}{INDEX_SUFFIX}" in names and f"{name}{TIME_INDEX_SUFFIX}" in names
    return not has_both and segment.size > 0


def _next_offset(segment: Segment) -> int:
    next_offset = segment.base_offset
    for _, header in segment.iterate_headers(segment.offset_index.last_entry().position):
        next_offset = header.last_offset + 1
    return next_offset


class _Recovery:
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
        if _lacks_index(segment, self._names):
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
            rebuild_transaction_index(self._log, segment, self._now_ms)

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
                aborted.append(state.aborted_entry(completed))
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


def _ignore_batch(header: BatchHeader, batch: memoryview) -> None:
    pass
