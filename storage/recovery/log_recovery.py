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

from wirebroker.storage.compaction.segment_swap import recover_swap
from wirebroker.storage.file_names import DELETED_SUFFIX
from wirebroker.storage.log.leader_epochs import FILE_NAME as LEADER_EPOCHS_NAME
from wirebroker.storage.log.producers.producer_snapshot import SUFFIX as SNAPSHOT_SUFFIX
from wirebroker.storage.log.producers.producer_snapshot import snapshot_offset
from wirebroker.storage.log.segment.segment import Segment
from wirebroker.storage.log.segment.segment_files import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    segment_base_offsets,
)
from wirebroker.storage.log.stored_epochs import StoredEpochs
from wirebroker.storage.recovery.clean_open import open_clean
from wirebroker.storage.recovery.crash_recovery import CrashRecovery

if TYPE_CHECKING:
    from wirebroker.storage.log.log import Log

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
        end = open_clean(log, names, recovery_point=recovery_point, start=start, now_ms=now_ms)
    if end is None:
        recovery = CrashRecovery(
            log, names, recovery_point=recovery_point, start=start, now_ms=now_ms
        )
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
