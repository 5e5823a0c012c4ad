"""A segment swap step by step, and its recovery at a start."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.storage.compaction import MAP_BYTES, append, records_of
from tests.unit.storage.log_kit import NOW, make_log, read_all
from wirebroker.codecs.records.batch import build_batch
from wirebroker.storage.compaction.compaction import Compaction
from wirebroker.storage.compaction.map import OffsetMap
from wirebroker.storage.compaction.range import dirty_range, make_job
from wirebroker.storage.compaction.segment_swap import (
    begin_swap,
    discard_cleaned,
    enter_swapped,
    finish_swap,
    recover_swap,
    set_aside_old,
    undo_swap,
)
from wirebroker.storage.compaction.segment_swap import old_segments as find_old_segments
from wirebroker.storage.files import Files
from wirebroker.storage.recovery.log_recovery import load_log

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = {"cleanup_policy": ("compact",), "segment_bytes": 10_000}
OLD = [0, 2, 4]


def opened(directory):
    log = make_log(directory, **SETTINGS)
    load_log(log, recovery_point=0, clean=False, now_ms=NOW)
    log.set_high_watermark(log.log_end_offset)
    return log


@pytest.fixture
def log(tmp_path):
    log = opened(tmp_path)
    for number in range(7):
        if number % 2 == 0 and number:
            log.roll(now_ms=NOW)
        records = [(b"key %d" % (number % 3), b"%d" % number, ())]
        append(log, build_batch(records, timestamp_ms=NOW), now_ms=NOW)
    job = make_job(log, dirty_range(log, None, now_ms=NOW), now_ms=NOW)
    offset_map = OffsetMap(MAP_BYTES, load_factor=0.9, secret=bytes(16))
    (group,) = Compaction(job, Files(), offset_map).run()
    assert list(group.base_offsets) == OLD
    return log


def names(directory: Path) -> set[str]:
    """Return the names of segments' files without leading zeros and numbers."""
    return {
        path.name.lstrip("0") or "0"
        for path in directory.iterdir()
        if any(part in path.name for part in (".log", "index"))
    }


def offsets(log):
    return [record.offset for record in records_of(log)]


def old_segments(log):
    segments = find_old_segments(log, OLD)
    assert segments is not None
    return segments


def at_each_step(log, tmp_path):
    """Yield a copy of the directory after each step, and whether the swap counts as done."""
    files = Files()

    def copied(step):
        return shutil.copytree(tmp_path, tmp_path.parent / f"{tmp_path.name}-{step}")

    yield copied(0), False
    begin_swap(files, log.directory, 0)
    yield copied(1), True
    old = old_segments(log)
    new = enter_swapped(log, files, old)
    for step, segment in enumerate(old):
        set_aside_old(log, segment)
        yield copied(2 + step), True
    finish_swap(log, files, new)
    yield copied(9), True


def test_crash_after_any_step_is_completed_or_undone_at_start(log, tmp_path):
    for directory, is_swapped in at_each_step(log, tmp_path):
        reopened = opened(directory)
        assert offsets(reopened) == ([3, 4, 5, 6] if is_swapped else list(range(7)))
        assert reopened.segments.base_offsets == ([0, 6] if is_swapped else [0, 2, 4, 6])
        assert not any("swap" in name or "cleaned" in name for name in names(directory))
        reopened.close(clean=False)


def test_readers_find_the_new_segment_at_once_and_keep_their_slices(log, tmp_path):
    files = Files()
    before = log.read(0, 1000, up_to_offset=7).slice
    content = before.read()
    begin_swap(files, log.directory, 0)
    assert offsets(log) == list(range(7))
    old = old_segments(log)
    new = enter_swapped(log, files, old)
    assert offsets(log) == [3, 4, 5, 6]
    for segment in old:
        set_aside_old(log, segment)
    during = log.read(0, 1000, up_to_offset=7).slice
    finish_swap(log, files, new)
    assert offsets(log) == [3, 4, 5, 6]
    assert before.read() == content
    assert during.read() == read_all(log)
    assert log.size_bytes == sum(path.stat().st_size for path in tmp_path.glob("*.log"))
    for segment in old:
        segment.remove()
    assert before.read() == content
    assert all("deleted" not in name for name in names(tmp_path))
    assert offsets(opened(tmp_path)) == [3, 4, 5, 6]


def test_snapshots_of_removed_segments_are_deleted(log, tmp_path):
    assert log.producer_state.snapshots.offsets == [2, 4, 6]
    files = Files()
    begin_swap(files, log.directory, 0)
    old = old_segments(log)
    enter_swapped(log, files, old)
    for segment in old:
        set_aside_old(log, segment)
    assert log.producer_state.snapshots.offsets == [6]
    assert {path.name for path in tmp_path.glob("*.snapshot*")} == {
        f"{2:020d}.snapshot.deleted",
        f"{4:020d}.snapshot.deleted",
        f"{6:020d}.snapshot",
    }


def test_a_swap_that_has_begun_can_be_undone(log, tmp_path):
    files = Files()
    before = names(tmp_path)
    begin_swap(files, log.directory, 0)
    undo_swap(files, log.directory, 0)
    assert names(tmp_path) == {name for name in before if "cleaned" not in name}
    assert offsets(opened(tmp_path)) == list(range(7))


def test_leftovers_of_an_aborted_compaction_can_be_deleted(log, tmp_path):
    discard_cleaned(Files(), log.directory)
    assert not any("cleaned" in name for name in names(tmp_path))
    assert offsets(opened(tmp_path)) == list(range(7))


def test_segments_that_have_changed_are_no_longer_the_old_ones(log):
    assert [segment.base_offset for segment in old_segments(log)] == OLD
    assert find_old_segments(log, [0, 4]) is None
    assert find_old_segments(log, [4, 6]) is None  # the last one is active
    log.segments.remove_before(2)
    assert find_old_segments(log, OLD) is None


def swap_files(tmp_path, suffix):
    for path in tmp_path.glob("*.cleaned"):
        path.rename(path.with_suffix(suffix))


def test_swap_files_beside_cleaned_ones_are_not_complete(log, tmp_path):
    path = tmp_path / f"{0:020d}.log.cleaned"
    path.rename(path.with_suffix(".swap"))
    assert offsets(opened(tmp_path)) == list(range(7))


def test_index_with_swap_suffix_is_renamed(log, tmp_path):
    swap_files(tmp_path, ".swap")
    for base in OLD:
        for path in tmp_path.glob(f"{base:020d}.*"):
            if path.suffix != ".swap":
                path.unlink()
    log_file = tmp_path / f"{0:020d}.log.swap"
    log_file.rename(log_file.with_suffix(""))
    assert recover_swap(Files(), str(tmp_path), [path.name for path in tmp_path.iterdir()])
    assert {"0.log", "0.index", "0.timeindex"} <= {
        name.replace(f"{0:020d}", "0") for name in (path.name for path in tmp_path.iterdir())
    }
    assert offsets(opened(tmp_path)) == [3, 4, 5, 6]


def test_old_segments_left_by_a_crash_are_removed(log, tmp_path):
    # Apache Kafka's state between two renames of the old segments.
    swap_files(tmp_path, ".swap")
    for path in tmp_path.glob(f"{0:020d}.*"):
        if path.suffix != ".swap":
            path.rename(f"{path}.deleted")
    assert offsets(opened(tmp_path)) == [3, 4, 5, 6]
    assert {name for name in names(tmp_path) if name.startswith(("2", "4"))} == set()


def test_a_new_segment_without_records_takes_the_place_of_the_old_one(tmp_path):
    log = opened(tmp_path)
    append(log, build_batch([(b"k", b"v", ())], timestamp_ms=NOW), now_ms=NOW)
    log.roll(now_ms=NOW)
    append(log, build_batch([(b"k", b"w", ())], timestamp_ms=NOW), now_ms=NOW)
    log.close(clean=True)
    for suffix in ("log", "index", "timeindex"):
        (tmp_path / f"{0:020d}.{suffix}.swap").write_bytes(b"")
    (tmp_path / f"{0:020d}.txnindex").write_bytes(b"stale")
    reopened = opened(tmp_path)
    assert offsets(reopened) == [1]
    assert not (tmp_path / f"{0:020d}.txnindex").exists()
    assert reopened.segments.base_offsets == [0, 1]


def test_files_that_are_not_segments_are_ignored(tmp_path):
    (tmp_path / "notes.swap").write_text("mine")
    assert not recover_swap(Files(), str(tmp_path), ["notes.swap", f"{0:020d}.log"])
    assert (tmp_path / "notes.swap").exists()
