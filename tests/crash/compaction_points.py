"""Checks of compacted logs after a crash: old or new segments, and no lost record."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.crash.compaction_workload import CompactionWorkload
from tests.crash.history import Facts, base_of, end_of, stored_batches
from tests.crash.log_checks import check_epochs, check_indexes, check_lookups, replayed
from tests.crash.log_points import LogRun
from tests.support.storage.compaction import committed_records_of, map_of
from wirebroker.codecs.records.batch import batch_crc, iterate_records, read_batch_header

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from random import Random

    from tests.simulation.machine.disk import Disk
    from wirebroker.codecs.records.record import Record
    from wirebroker.config.rows.topic import TopicSettings
    from wirebroker.storage.log.log import Log
    from wirebroker.storage.log.producers.producer_snapshot import SnapshotRow

_READERS = 3
_ABORT_KEY = b"\x00\x00\x00\x00"


class CompactionRun(LogRun):
    def _new_workload(self) -> CompactionWorkload:
        return CompactionWorkload(self.seed)

    def _settings_of_start(self, disk: Disk) -> TopicSettings:
        policies = (self.workload.settings.cleanup_policy, ("delete",))
        return replace(self.workload.settings, cleanup_policy=policies[len(disk.nodes) % 2])

    def _check(
        self, log: Log, before: Facts, after: Facts, random: Random, *, loses_power: bool
    ) -> Facts:
        log.check()
        end = log.log_end_offset
        history = _up_to(end, _longest(before.lineage, after.lineage))
        known_from = max(before.deleted_to, after.deleted_to)
        required_end = min(before.flushed, after.flushed) if loses_power else before.end
        assert end >= required_end, f"the log ends at {end}, not {required_end}"
        possible_ends = {log.segments.active.base_offset, *map(end_of, history)}
        assert end in possible_ends, f"it ends at {end}"
        lowest = min(before.flushed_start, after.flushed_start)
        highest = max(before.log_start_offset, after.log_start_offset)
        assert lowest <= log.log_start_offset <= highest, (
            f"the log starts at {log.log_start_offset}, not from {lowest} to {highest}"
        )
        stored = stored_batches(log)
        lost = _lost_from_shape(
            stored, (*after.shapes, *before.shapes), known_from=known_from, safe_to=required_end
        )
        history = tuple(batch for batch in history if batch not in lost)
        _check_batches(stored, history)
        _check_readers(log, history, stored, known_from, random)
        _check_producers(log, history, stored, known_from)
        check_epochs(log, stored, max(log.log_start_offset, known_from))
        for segment in log.segments:
            check_indexes(segment, random)
        check_lookups(log, stored, random)
        return Facts(
            history,
            log.log_start_offset,
            log.recovery_point,
            deleted_to=known_from,
            shapes=(tuple(stored),),
            clean_to=before.clean_to,
        )


def _longest(first: tuple[bytes, ...], second: tuple[bytes, ...]) -> tuple[bytes, ...]:
    return first if len(first) > len(second) else second


def _up_to(end: int, batches: Iterable[bytes]) -> tuple[bytes, ...]:
    return tuple(batch for batch in batches if end_of(batch) <= end)


def _lost_from_shape(
    stored: Sequence[bytes], shapes: Iterable[Sequence[bytes]], *, known_from: int, safe_to: int
) -> set[bytes]:
    """Check that a group's segments are all old or all new (exceptions: compaction_workload.py).

    A power loss may take any unflushed segment, not only the last ones. A start cannot detect that,
    because compaction leaves gaps as well (Apache Kafka does not try).

    Returns:
        The batches missing after `safe_to`.
    """
    present = [batch for batch in stored if end_of(batch) > known_from]
    last = base_of(present[-1]) if present else -1
    allowed = []
    for shape in shapes:
        expected = [batch for batch in shape if end_of(batch) > known_from]
        lost = {batch for batch in expected if end_of(batch) > safe_to}.difference(present)
        if present == [batch for batch in expected if batch not in lost]:
            return lost
        allowed.append([base_of(batch) for batch in expected if base_of(batch) <= last])
    raise AssertionError(f"batches at {list(map(base_of, present))}, not one of {allowed}")


def _check_batches(stored: Sequence[bytes], history: Sequence[bytes]) -> None:
    """Check that offsets rise, checksums are right, and each record is the written one."""
    for first, second in pairwise(stored):
        assert end_of(first) <= base_of(second), "offsets do not rise"
    written = {record.offset: record for batch in history for record in _records(batch)}
    for batch in stored:
        assert batch_crc(memoryview(batch), 0, len(batch)) == read_batch_header(batch).crc
        for record in _records(batch):
            assert written.get(record.offset) == record, f"a phantom at {record.offset}"


def _check_readers(
    log: Log, history: Sequence[bytes], stored: Sequence[bytes], known_from: int, random: Random
) -> None:
    """Check that a replay from any offset ends with the last committed value of each key."""
    first_open, committed = _committed(history)
    stable = min((offset for offset in first_open if offset >= known_from), default=None)
    if stable is None and not first_open:
        came_back, _ = _committed(_with_holes(history, stored, known_from))
        assert log.last_stable_offset in (log.high_watermark, *came_back)
    elif stable is not None:
        assert log.last_stable_offset <= stable
    stable = log.last_stable_offset
    model = [record for record in committed if known_from <= record.offset < stable]
    records = [
        record for record in committed_records_of(log) if known_from <= record.offset < stable
    ]
    offsets = {record.offset for record in model}
    for record in records:
        assert record.offset in offsets, f"the record at {record.offset} was aborted"
    for start in {known_from, *(random.randrange(stable + 1) for _ in range(_READERS))}:
        actual = map_of([record for record in records if record.offset >= start])
        expected = map_of([record for record in model if record.offset >= start])
        assert actual == expected, f"a reader from {start} finds {actual}, not {expected}"


def _committed(history: Iterable[bytes]) -> tuple[list[int], list[Record]]:
    """Return the first offsets of open transactions, and all committed records by offset."""
    committed: list[Record] = []
    is_open: dict[int, list[Record]] = {}
    for batch in history:
        header = read_batch_header(batch)
        if header.is_control:
            (marker,) = _records(batch)
            records = is_open.pop(header.producer_id, [])
            if marker.key != _ABORT_KEY:
                committed += records
        elif header.is_transactional:
            is_open.setdefault(header.producer_id, []).extend(_records(batch))
        else:
            committed += _records(batch)
    return [records[0].offset for records in is_open.values()], sorted(committed)


def _check_producers(
    log: Log, history: Sequence[bytes], stored: Sequence[bytes], known_from: int
) -> None:
    """Check that producers keep their state; without batches they may be forgotten."""
    actual = {row.producer_id: row for row in log.producer_state.as_rows()}
    expected = {row.producer_id: row for row in replayed(history)}
    remaining = [batch for batch in history if end_of(batch) > log.log_start_offset]
    since_start = {row.producer_id: row for row in replayed(remaining)}
    came_back = replayed(_with_holes(history, stored, known_from))
    with_holes = {row.producer_id: row for row in came_back}
    for producer_id, row in actual.items():
        replays = (expected, since_start, with_holes)
        possible = [_position(rows.get(producer_id)) for rows in replays]
        first_offset = expected[producer_id].current_txn_first_offset
        actual_position = _position(row)
        if 0 <= first_offset < log.log_start_offset:
            # An open transaction may be forgotten if its first records are deleted.
            actual_position, possible = actual_position[:2], [position[:2] for position in possible]
        assert actual_position in possible, (
            f"producer {producer_id}: {actual_position}, not {possible}"
        )
    for batch in history:
        header = read_batch_header(batch)
        if header.base_offset >= known_from and header.producer_id >= 0:
            assert header.producer_id in actual, f"producer {header.producer_id} is forgotten"


def _with_holes(history: Sequence[bytes], stored: Sequence[bytes], known_from: int) -> list[bytes]:
    """Return a history in which a power loss has restored a part of the deleted batches.

    That may be a transaction without its marker.
    """
    came_back = [batch for batch in stored if end_of(batch) <= known_from]
    return [*came_back, *(batch for batch in history if end_of(batch) > known_from)]


def _position(row: SnapshotRow | None) -> tuple[int, ...]:
    if row is None:
        return ()
    return row.producer_epoch, row.last_sequence, row.current_txn_first_offset


@lru_cache(maxsize=4_096)
def _records(batch: bytes) -> tuple[Record, ...]:
    return tuple(iterate_records(batch, read_batch_header(batch), max_bytes=1 << 20))
