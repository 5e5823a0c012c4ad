"""Checks of an opened log: offsets, indexes, producers and epochs, compared with a full scan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.crash.history import base_of, end_of, gaps_in, stored_batches
from tests.support.storage.time_search import offset_for_timestamp
from wirebroker.codecs.records.batch import batch_crc, iterate_records, read_batch_header
from wirebroker.storage.log.producers.producer_replay import apply_batch
from wirebroker.storage.log.producers.producer_state import ProducerState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from tests.crash.history import Promise
    from wirebroker.storage.log.log import Log
    from wirebroker.storage.log.producers.producer_snapshot import SnapshotRow
    from wirebroker.storage.log.segment.segment import Segment

_MOST_LOOKUPS = 6


def check_log(log: Log, promised: Promise, random: Random) -> list[bytes]:
    """Check a log against its guarantees, and its parts against each other.

    Returns:
        The batches in its files.
    """
    log.check()
    stored = stored_batches(log)
    check_contents(log, stored, promised)
    check_producers(log, stored, promised.older)
    check_transactions(log, stored, promised)
    check_epochs(log, stored, max(log.log_start_offset, promised.known_from))
    for segment in log.segments:
        check_indexes(segment, random)
    check_lookups(log, stored, random)
    return stored


def check_contents(log: Log, stored: Sequence[bytes], promised: Promise) -> None:
    """Check that no batch is lost or unknown, and that all gaps are written ones."""
    by_base = {base_of(batch): batch for batch in stored}
    assert len(by_base) == len(stored), "two batches at one offset"
    for base, batch in promised.required.items():
        assert base in by_base, f"offset {base} is lost; the log has {sorted(by_base)}"
        assert by_base[base] == batch, f"another batch at {base}"
    for base, batch in by_base.items():
        assert batch in promised.allowed.get(base, ()), f"a phantom at {base}"
        assert batch_crc(memoryview(batch), 0, len(batch)) == read_batch_header(batch).crc
    for gap in gaps_in(stored):
        # A gap below the start is unreadable: a segment that was deleted before it was synced.
        is_below = gap[1] <= log.log_start_offset
        # A later segment may have reached the disk before this one; a written gap may follow.
        ends = {
            *log.segments.base_offsets,
            *(end for start, end in promised.gaps if start > gap[0]),
        }
        is_hole = promised.hole_from is not None and gap[0] >= promised.hole_from
        assert gap in promised.gaps or is_below or (is_hole and gap[1] in ends), (
            f"offset {gap[0]} is followed by {gap[1]}, segments begin at "
            f"{log.segments.base_offsets}, the log at {log.log_start_offset}"
        )
    if stored:
        assert log.log_end_offset == max(end_of(stored[-1]), log.segments.active.base_offset)
        assert log.segments[0].base_offset <= base_of(stored[0])
    else:
        assert log.log_end_offset == log.segments.active.base_offset
    assert promised.lowest_start <= log.log_start_offset <= promised.highest_start, (
        f"the log starts at {log.log_start_offset}, not from {promised.lowest_start} "
        f"to {promised.highest_start}"
    )


def check_producers(log: Log, stored: Sequence[bytes], older: Sequence[bytes]) -> None:
    """Check the producers against a replay; without batches they may be forgotten."""
    first = base_of(stored[0]) if stored else log.log_end_offset
    history = [*(batch for batch in older if end_of(batch) <= first), *stored]
    expected = {row.producer_id: row for row in replayed(history)}
    remaining = [batch for batch in stored if end_of(batch) > log.log_start_offset]
    since_start = {row.producer_id: row for row in replayed(remaining)}
    actual = {row.producer_id: row for row in log.producer_state.as_rows()}
    for producer_id, row in actual.items():
        possible = [expected.get(producer_id), since_start.get(producer_id)]
        first_offset = expected[producer_id].current_txn_first_offset
        if 0 <= first_offset < log.log_start_offset:
            # An open transaction may be forgotten if its first records are deleted.
            own = row.current_txn_first_offset
            possible.append(expected[producer_id]._replace(current_txn_first_offset=own))
        assert row in possible, f"producer {producer_id}: {row}, not {possible}"
    for batch in stored:
        header = read_batch_header(batch)
        if header.last_offset >= log.log_start_offset and header.producer_id >= 0:
            assert header.producer_id in actual, f"producer {header.producer_id} is forgotten"


def check_transactions(log: Log, stored: Sequence[bytes], promised: Promise) -> None:
    """Check the index of aborted transactions and the last stable offset.

    A transaction whose first records are deleted counts from its remaining ones.
    """
    first = base_of(stored[0]) if stored else log.log_end_offset
    state = ProducerState(None, "", expiration_ms=1 << 60)  # type: ignore[arg-type]  # no files
    aborted: dict[tuple[int, int], int] = {}
    for batch in (*(batch for batch in promised.older if end_of(batch) <= first), *stored):
        completed = apply_batch(state, read_batch_header(batch), batch)
        if completed is not None and completed.is_aborted and completed.last_offset >= first:
            aborted[completed.producer_id, completed.last_offset] = completed.first_offset
    indexed = {
        (entry.producer_id, entry.last_offset): entry.first_offset
        for segment in log.segments
        for entry in segment.transaction_index
    }
    for key, first_offset in aborted.items():
        if key[1] < log.log_start_offset:
            continue
        later = [
            base_of(batch)
            for batch in stored
            if read_batch_header(batch).producer_id == key[0]
            and first_offset <= base_of(batch) < key[1]
            and end_of(batch) > log.log_start_offset
        ]
        if later:
            assert key in indexed, f"the aborted transaction {key} is not known: {indexed}"
            assert first_offset <= indexed[key] <= min(later)
    assert set(indexed) <= set(aborted), f"{indexed}, but aborted were {aborted}"
    # A transaction whose first record was in a hole left by a power loss is unknown.
    hole_from = first if promised.hole_from is None else promised.hole_from
    unstable = [
        offset
        for offset in state.transactions.ongoing
        if offset >= log.log_start_offset and not hole_from <= offset < first
    ]
    stable = min(unstable, default=log.high_watermark)
    assert log.last_stable_offset <= stable, f"{log.last_stable_offset} is not before {stable}"
    if not state.transactions.ongoing:
        assert log.last_stable_offset == log.high_watermark


def replayed(batches: Sequence[bytes]) -> list[SnapshotRow]:
    state = ProducerState(None, "", expiration_ms=1 << 60)  # type: ignore[arg-type]  # no files
    for batch in batches:
        apply_batch(state, read_batch_header(batch), batch)
    return state.as_rows()


def check_epochs(log: Log, stored: Sequence[bytes], known_from: int) -> None:
    """Check that each batch is found in the epoch in which it was written.

    Epochs below a log start offset that was never written may be forgotten.
    """
    log.leader_epochs.check()
    starts: dict[int, int] = {}
    for batch in stored:
        header = read_batch_header(batch)
        if header.last_offset < known_from:
            continue
        offset = max(header.base_offset, known_from)
        recorded_epoch = log.leader_epochs.epoch_for_offset(offset)
        assert recorded_epoch == header.leader_epoch, (
            f"offset {offset} is of epoch {header.leader_epoch}, not {recorded_epoch}: "
            f"{log.leader_epochs.entries}"
        )
        starts.setdefault(header.leader_epoch, offset)
    for epoch, start in log.leader_epochs.entries:
        assert start <= log.log_end_offset, f"epoch {epoch} begins behind the end"
        if epoch in starts:
            assert start <= starts[epoch]


def check_indexes(segment: Segment, random: Random) -> None:
    """Check that entries point to batches, and that lookups agree with a scan."""
    batches = list(segment.iterate_headers())
    by_position = dict(batches)
    for slot in range(segment.offset_index.entry_count):
        relative, position = segment.offset_index._read(slot)
        assert position in by_position, f"{segment}: no batch begins at {position}"
        assert by_position[position].last_offset == segment.base_offset + relative
    latest, latest_at = -1, {}
    for _, header in batches:
        if header.max_timestamp > latest:
            latest = header.max_timestamp
            latest_at[latest] = header.last_offset
    for slot in range(segment.time_index.entry_count):
        timestamp, relative = segment.time_index._read(slot)
        offset = segment.base_offset + relative
        assert latest_at.get(timestamp) == offset, f"{segment}: {timestamp} is not at {offset}"
    assert segment.max_timestamp == latest, f"{segment}: {segment.max_timestamp}, not {latest}"
    for position, header in random.sample(batches, min(_MOST_LOOKUPS, len(batches))):
        for offset in {header.base_offset, header.last_offset}:
            assert segment.position_for_offset(offset) == (position, header)


def check_lookups(log: Log, stored: Sequence[bytes], random: Random) -> None:
    """Check that lookups of consumers agree with a scan."""
    readable = [batch for batch in stored if end_of(batch) > log.log_start_offset]
    for batch in random.sample(readable, min(_MOST_LOOKUPS, len(readable))):
        offset = max(base_of(batch), log.log_start_offset)
        log_slice = log.read(offset, 1, up_to_offset=log.log_end_offset, min_one=True).slice
        assert log_slice is not None
        assert log_slice.read() == batch
        timestamp = read_batch_header(batch).max_timestamp - random.randrange(3)
        by_time = offset_for_timestamp(log, timestamp, up_to_offset=log.log_end_offset)
        # Compaction keeps a producer's last batch without records, but with their timestamp.
        position = None if by_time is None else (by_time.timestamp, by_time.offset)
        assert position == first_at(readable, timestamp, log)


def first_at(batches: Sequence[bytes], timestamp: int, log: Log) -> tuple[int, int] | None:
    """Return (timestamp, offset) of the first record at or after a timestamp."""
    for batch in batches:
        header = read_batch_header(batch)
        if header.max_timestamp < timestamp:
            continue
        for record in iterate_records(batch, header, max_bytes=1 << 20):
            if record.timestamp >= timestamp and record.offset >= log.log_start_offset:
                return record.timestamp, record.offset
    return None
