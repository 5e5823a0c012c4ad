"""`preallocate`: an active segment's file has the length of a full one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.storage.log_kit import NOW, append, batch, commit_all, make_log
from wirebroker.storage.files import Files
from wirebroker.storage.recovery.log_recovery import load_log

SEGMENT_BYTES = 1 << 20
SETTINGS = {"preallocate": True, "segment_bytes": SEGMENT_BYTES}


def new_log(directory: Path):
    log = make_log(directory, **SETTINGS)
    load_log(log, recovery_point=0, clean=False, now_ms=NOW)
    return log


def file_of(directory: Path, base_offset: int) -> Path:
    return directory / f"{base_offset:020d}.log"


def values(log) -> int:
    return sum(
        header.record_count for segment in log.segments for _, header in segment.iterate_headers()
    )


def test_the_active_segment_has_the_size_of_a_full_one(tmp_path):
    log = new_log(tmp_path)
    assert file_of(tmp_path, 0).stat().st_size == SEGMENT_BYTES
    append(log, batch(3))
    assert file_of(tmp_path, 0).stat().st_size == SEGMENT_BYTES
    assert log.size_bytes == log.segments.active.size < 1000
    # As in Kafka, the file is sparse where nothing is written.
    assert file_of(tmp_path, 0).stat().st_blocks * 512 < SEGMENT_BYTES // 2


def test_a_roll_cuts_the_closed_segment_and_reserves_the_next(tmp_path):
    log = new_log(tmp_path)
    append(log, batch(3))
    size = log.segments.active.size
    log.roll(now_ms=NOW)
    assert file_of(tmp_path, 0).stat().st_size == size
    assert file_of(tmp_path, 3).stat().st_size == SEGMENT_BYTES
    log.flush()
    assert log.flush_target() is None
    commit_all(log)


def test_a_clean_stop_cuts_it_and_a_start_appends_behind_what_is_there(tmp_path):
    log = new_log(tmp_path)
    append(log, batch(3))
    size = log.segments.active.size
    commit_all(log)
    log.close(clean=True)
    assert file_of(tmp_path, 0).stat().st_size == size
    again = make_log(tmp_path, **SETTINGS)
    load_log(again, recovery_point=5, clean=True, now_ms=NOW)
    assert append(again, batch(2)).base_offset == 3
    assert values(again) == 5


@pytest.mark.parametrize("recovery_point", [0, 3])
def test_recovery_cuts_the_zeros_that_a_crash_leaves(tmp_path, recovery_point):
    log = new_log(tmp_path)
    append(log, batch(3))
    append(log, batch(2))
    log.flush()
    content = file_of(tmp_path, 0).read_bytes()
    size = log.segments.active.size
    assert content[size:] == bytes(SEGMENT_BYTES - size)
    again = make_log(tmp_path, **SETTINGS)
    load_log(again, recovery_point=recovery_point, clean=False, now_ms=NOW)
    assert file_of(tmp_path, 0).stat().st_size == size
    assert again.log_end_offset == 5
    assert append(again, batch(1)).base_offset == 5
    assert values(again) == 6


def test_a_truncation_keeps_what_is_below_and_a_failed_write_what_was_there(tmp_path, monkeypatch):
    log = new_log(tmp_path)
    append(log, batch(3))
    size = log.segments.active.size

    def no_room(*_args: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("wirebroker.storage.files.pwrite", no_room)
        patch.setattr("wirebroker.storage.system_calls.pwritev", no_room)
        with pytest.raises(OSError, match="No space"):
            append(log, batch(2))
    assert append(log, batch(2)).base_offset == 3
    log.truncate_to(3, now_ms=NOW)
    assert log.segments.active.size == size
    assert append(log, batch(2)).base_offset == 3
    assert values(log) == 5


def test_preallocated_bytes_are_not_counted_and_freed_once(tmp_path):
    file = Files().data(f"{tmp_path}/a")
    file.reserve(100)
    file.write_at(0, b"abc")
    assert (file.size(), Path(file.path).stat().st_size) == (3, 100)
    file.close()
    file.write_at(3, b"de")
    file.trim()
    assert (file.size(), Path(file.path).stat().st_size) == (5, 5)
    file.trim()
    assert file.read_at(0, 100) == b"abcde"
