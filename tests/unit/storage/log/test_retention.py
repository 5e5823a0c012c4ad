"""Retention by time, size and start offset, and the log afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.storage.log_kit import NOW, append, batch, commit_all, read_all
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.config.rows.topic import LONG_MAX, TopicSettings
from wirebroker.storage.log.removal import set_aside_segment
from wirebroker.storage.log.retention import MOST_SEGMENTS, expired_count
from wirebroker.storage.log.wall_clocks import ClockReading, FormerClock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wirebroker.storage.log.log import Log

HOUR = 3_600_000
YEAR = 365 * 24 * HOUR


class Seen(NamedTuple):
    base_offset: int
    size: int = 100
    timestamp: int = NOW
    changed_ms: int = NOW

    def largest_timestamp(self) -> int:
        return self.timestamp if self.timestamp >= 0 else self.changed_ms

    def modified_ms(self) -> int:
        return self.changed_ms


def count(
    segments: list[Seen],
    *,
    now_ms: int = NOW,
    former: tuple[FormerClock, ...] = (),
    uptime_ms: int = 0,
    start: int = 0,
    high_watermark: int | None = None,
    end: int | None = None,
    **settings: Any,
) -> int:
    """Count the deletable segments among segments of ten offsets each."""
    if end is None:
        end = segments[-1].base_offset + (10 if segments[-1].size else 0)
    return expired_count(
        segments,
        TopicSettings(**settings),
        ClockReading(now_ms, former, uptime_ms),
        log_start_offset=start,
        high_watermark=end if high_watermark is None else high_watermark,
        log_end_offset=end,
    )


# -- the decision --


def test_segments_older_than_retention_ms_go():
    segments = [Seen(0, timestamp=NOW - 2 * HOUR), Seen(10, timestamp=NOW - HOUR), Seen(20)]
    assert count(segments, retention_ms=HOUR) == 1
    assert count(segments, retention_ms=HOUR - 1) == 2
    assert count(segments, retention_ms=-1) == 0


def test_the_last_segment_goes_too_unless_it_is_empty():
    old = NOW - 2 * HOUR
    assert count([Seen(0, timestamp=old)], retention_ms=HOUR) == 1
    assert count([Seen(0, timestamp=old), Seen(10, 0, old)], retention_ms=HOUR) == 1
    assert count([Seen(0, 0, old)], retention_ms=HOUR) == 0


def test_only_so_many_segments_go_at_a_time():
    segments = [Seen(base, timestamp=0) for base in range(0, 1_000, 10)]
    assert count(segments, retention_ms=1) == MOST_SEGMENTS
    assert count(segments, retention_bytes=0) == MOST_SEGMENTS
    assert count(segments, start=900) == MOST_SEGMENTS


def test_a_fresh_segment_protects_those_behind_it():
    segments = [Seen(0), Seen(10, timestamp=NOW - 2 * HOUR), Seen(20)]
    assert count(segments, retention_ms=HOUR) == 0


def test_nothing_at_or_above_the_high_watermark_goes():
    segments = [Seen(base, timestamp=0) for base in (0, 10, 20)]
    assert count(segments, retention_ms=1, high_watermark=19) == 1
    assert count(segments, retention_ms=1, high_watermark=20) == 2
    assert count(segments, retention_ms=1, high_watermark=29) == 2
    assert count(segments, retention_ms=1, high_watermark=30) == 3


def test_size_retention_deletes_only_segments_above_the_limit():
    segments = [Seen(base) for base in (0, 10, 20)]
    assert count(segments, retention_bytes=300) == 0
    assert count(segments, retention_bytes=201) == 0
    assert count(segments, retention_bytes=200) == 1
    assert count(segments, retention_bytes=0) == 3
    assert count(segments, retention_bytes=-1) == 0
    assert count(segments, retention_bytes=0, high_watermark=15) == 1


def test_segments_below_log_start_are_deleted_under_any_policy():
    segments = [Seen(base) for base in (0, 10, 20)]
    for policy in (("delete",), ("compact",), ("compact", "delete"), ()):
        assert count(segments, start=9, cleanup_policy=policy) == 0
        assert count(segments, start=10, cleanup_policy=policy) == 1
        assert count(segments, start=30, cleanup_policy=policy) == 2


def test_only_a_policy_with_delete_looks_at_time_and_size():
    segments = [Seen(base, timestamp=0) for base in (0, 10, 20)]
    for policy, expected in ((("compact",), 0), ((), 0), (("compact", "delete"), 3)):
        limits: dict[str, Any] = {"retention_ms": 1, "retention_bytes": 1, "cleanup_policy": policy}
        assert count(segments, **limits) == expected


def test_size_counts_after_log_start_and_time_after_size():
    segments = [Seen(0), Seen(10), Seen(20, timestamp=NOW - 2 * HOUR), Seen(30)]
    assert count(segments, start=10, retention_bytes=200, retention_ms=-1) == 2
    assert count(segments, start=10, retention_bytes=200, retention_ms=HOUR) == 3


def test_records_without_timestamps_are_as_old_as_the_file():
    assert count([Seen(0, 100, -1, NOW - 2 * HOUR)], retention_ms=HOUR) == 1
    assert count([Seen(0, 100, -1, NOW)], retention_ms=HOUR) == 0


# -- clocks --


def test_a_jump_of_a_year_ahead_deletes_nothing_fresh():
    jumped: dict[str, Any] = {"now_ms": NOW + YEAR, "former": (FormerClock(NOW, 0),)}
    assert count([Seen(0)], retention_ms=HOUR, **jumped) == 0
    # Segments that had expired before are still expired.
    assert count([Seen(0, timestamp=NOW - 2 * HOUR)], retention_ms=HOUR, **jumped) == 1


def test_after_a_jump_ahead_records_expire_when_their_time_has_passed():
    later = FormerClock(NOW + HOUR + 1, HOUR + 1)
    before = FormerClock(NOW + HOUR, HOUR)
    assert count([Seen(0)], retention_ms=HOUR, now_ms=NOW + YEAR, former=(before,)) == 0
    assert count([Seen(0)], retention_ms=HOUR, now_ms=NOW + YEAR, former=(later,)) == 1


def test_after_a_jump_back_records_expire_when_their_time_has_passed():
    segments = [Seen(0)]
    for passed_ms, expected in ((0, 0), (HOUR, 0), (2 * HOUR, 1)):
        former = (FormerClock(NOW + passed_ms, passed_ms),)
        clock: dict[str, Any] = {
            "now_ms": NOW - YEAR + passed_ms,
            "former": former,
            "uptime_ms": 9 * HOUR,
        }
        assert count(segments, retention_ms=HOUR, **clock) == expected


def test_a_timestamp_from_the_far_future_does_not_keep_a_segment_for_ever():
    segments = [Seen(0, timestamp=NOW + YEAR, changed_ms=NOW)]
    assert count(segments, retention_ms=HOUR, now_ms=NOW + HOUR) == 0
    assert count(segments, retention_ms=HOUR, now_ms=NOW + HOUR + 1) == 1


def test_a_timestamp_as_far_ahead_as_the_topic_allows_counts():
    segments = [Seen(0, timestamp=NOW + YEAR, changed_ms=NOW)]
    allowed: dict[str, Any] = {"retention_ms": HOUR, "message_timestamp_after_max_ms": YEAR}
    assert count(segments, now_ms=NOW + 2 * HOUR, **allowed) == 0
    assert count(segments, now_ms=NOW + YEAR + HOUR + 1, **allowed) == 1


def test_a_file_from_the_future_is_as_old_as_the_process():
    segments = [Seen(0, timestamp=NOW + 3 * YEAR, changed_ms=NOW + YEAR)]
    assert count(segments, retention_ms=HOUR, uptime_ms=HOUR) == 0
    assert count(segments, retention_ms=HOUR, uptime_ms=HOUR + 1) == 1


seen_segments = st.lists(
    st.tuples(st.integers(1, 1000), st.integers(-1, 2_000), st.integers(0, 2_000)),
    min_size=1,
    max_size=8,
).map(lambda rows: [Seen(index * 10, *row) for index, row in enumerate(rows)])


@given(
    segments=seen_segments,
    start=st.integers(0, 80),
    high_watermark=st.integers(0, 80),
    now_ms=st.integers(0, 3_000),
    retention_ms=st.integers(-1, 3_000),
    retention_bytes=st.integers(-1, 5_000),
    policy=st.sampled_from([("delete",), ("compact",), ("compact", "delete"), ()]),
)
def test_deleted_segments_are_committed_and_retained_are_needed(
    *,
    segments: list[Seen],
    start: int,
    high_watermark: int,
    now_ms: int,
    retention_ms: int,
    retention_bytes: int,
    policy: tuple[str, ...],
) -> None:
    end = segments[-1].base_offset + 10
    high_watermark = min(high_watermark, end)
    start = min(start, high_watermark)
    deleted = count(
        segments,
        now_ms=now_ms,
        start=start,
        high_watermark=high_watermark,
        end=end,
        retention_ms=retention_ms,
        retention_bytes=retention_bytes,
        message_timestamp_after_max_ms=LONG_MAX,
        cleanup_policy=policy,
    )
    retained = segments[deleted:]
    ends = [segment.base_offset + 10 for segment in segments]
    assert all(segment_end <= high_watermark for segment_end in ends[:deleted])
    if "delete" not in policy:
        assert all(segment_end <= start for segment_end in ends[:deleted])
    size = sum(segment.size for segment in retained)
    if (
        retained
        and ends[deleted] <= high_watermark
        and (len(retained) > 1 or ends[deleted] > start)
    ):
        assert len(retained) == 1 or ends[deleted] > start
        if "delete" in policy:
            first = retained[0]
            assert retention_ms < 0 or now_ms - first.largest_timestamp() <= retention_ms
            assert retention_bytes < 0 or size - first.size < retention_bytes


# -- the log --


def fill(log: Log, *, segments: int, age_ms: int = 0) -> None:
    for _ in range(segments):
        if log.segments.active.size:
            log.roll(now_ms=NOW)
        append(log, batch(2, timestamp_ms=NOW - age_ms))


def retain(log: Log, now_ms: int = NOW) -> int:
    """Run retention except for removing files; return the number of deleted segments."""
    removed = log.delete_old_segments(ClockReading(now_ms))
    for segment in removed:
        set_aside_segment(log, segment)
    commit_all(log)
    return len(removed)


def names(path: Path) -> set[str]:
    return {entry.name for entry in path.iterdir()}


def test_the_log_begins_where_the_first_segment_that_is_kept_does(
    open_log: Callable[..., Log], tmp_path: Path
):
    log = open_log(retention_ms=HOUR)
    fill(log, segments=2, age_ms=2 * HOUR)
    fill(log, segments=1)
    assert retain(log) == 2
    assert (log.log_start_offset, log.log_end_offset, log.segments.base_offsets) == (4, 6, [4])
    assert log.leader_epochs.entries == [(0, 4)]
    assert log.producer_state.snapshots.offsets == [4]
    with pytest.raises(KafkaError) as refused:
        read_all(log, 3)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert read_all(log, 4)
    assert {name for name in names(tmp_path) if name.endswith(".log.deleted")} == {
        "00000000000000000000.log.deleted",
        "00000000000000000002.log.deleted",
    }
    assert {name for name in names(tmp_path) if "snapshot" in name} == {
        "00000000000000000002.snapshot.deleted",
        "00000000000000000004.snapshot",
    }


def test_the_snapshot_of_a_deleted_segment_is_removed_with_its_files(
    open_log: Callable[..., Log], tmp_path: Path
):
    log = open_log(retention_ms=HOUR)
    fill(log, segments=3, age_ms=2 * HOUR)
    fill(log, segments=1)
    removed = log.delete_old_segments(ClockReading(NOW))
    for segment in removed:
        set_aside_segment(log, segment)
    for segment in removed:
        segment.remove()
    assert not [name for name in names(tmp_path) if name.endswith(".deleted")]
    assert "00000000000000000006.snapshot" in names(tmp_path)


def test_a_last_segment_that_has_expired_is_rolled_first(open_log: Callable[..., Log]):
    log = open_log(retention_ms=HOUR)
    fill(log, segments=2, age_ms=2 * HOUR)
    assert retain(log) == 2
    assert (log.log_start_offset, log.segments.base_offsets, log.size_bytes) == (4, [4], 0)
    assert retain(log) == 0
    assert append(log).base_offset == 4


def test_a_log_whose_oldest_segments_went_opens_again(open_log: Callable[..., Log], tmp_path: Path):
    log = open_log(retention_ms=HOUR)
    fill(log, segments=3, age_ms=2 * HOUR)
    fill(log, segments=1)
    retain(log)
    log.close(clean=True)
    for clean in (True, False):
        again = open_log(recovery_point=log.recovery_point, clean=clean)
        assert (again.log_start_offset, again.log_end_offset) == (6, 8)
        again.close(clean=True)
    assert not any(name.endswith(".deleted") for name in names(tmp_path))


def test_a_crash_in_the_middle_leaves_a_log_without_holes(open_log: Callable[..., Log]):
    log = open_log(retention_ms=HOUR)
    fill(log, segments=4, age_ms=2 * HOUR)
    fill(log, segments=1)
    removed = log.delete_old_segments(ClockReading(NOW))
    for segment in removed[:2]:
        set_aside_segment(log, segment)
    again = open_log(clean=False)
    assert (again.log_start_offset, again.log_end_offset) == (4, 10)
    assert again.segments.base_offsets == [4, 6, 8]


def test_bytes_that_are_being_sent_can_be_read_until_the_end(
    open_log: Callable[..., Log], tmp_path: Path
):
    log = open_log(retention_ms=HOUR)
    fill(log, segments=1, age_ms=2 * HOUR)
    slice_in_flight = log.read(0, 1 << 20, up_to_offset=2).slice
    assert slice_in_flight is not None
    before = slice_in_flight.read()
    (removed,) = log.delete_old_segments(ClockReading(NOW))
    assert slice_in_flight.read() == before
    set_aside_segment(log, removed)
    slice_in_flight.file.close()  # evicted meanwhile
    removed.remove()
    assert not any(name.endswith(".deleted") for name in names(tmp_path))
    assert slice_in_flight.read() == before


def test_deleted_records_go_with_their_segments(open_log: Callable[..., Log]):
    log = open_log(cleanup_policy=("compact",), retention_ms=1)
    fill(log, segments=3, age_ms=HOUR)
    log.increment_log_start_offset(3)
    assert retain(log) == 1
    assert (log.log_start_offset, log.segments.base_offsets) == (3, [2, 4])


def test_rolled_segment_is_flushed_alongside_other_flushes(open_log: Callable[..., Log]):
    rolled: list[Log] = []
    log = open_log()
    log.on_roll = rolled.append
    fill(log, segments=3)
    assert rolled == [log, log]
    target = log.closed_flush_target()
    assert target is not None
    assert target.offset == 4
    assert [segment.base_offset for segment in target.segments] == [0, 2]
    everything = log.flush_target()
    assert everything is not None
    assert everything.is_directory_dirty, "the other flush has taken nothing off its hands"
    target.sync()
    log.mark_flushed(target.offset)
    assert log.recovery_point == 4
    assert log.closed_flush_target() is None
