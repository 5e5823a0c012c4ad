"""A copy of a log equals the log, whatever changes the log meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.storage.log_kit import NOW, append, batch, make_log
from wirebroker.config.rows.topic import TopicSettings
from wirebroker.storage.files import Files
from wirebroker.storage.log.log_copy import LogCopy
from wirebroker.storage.log.wall_clocks import ClockReading
from wirebroker.storage.recovery.log_recovery import load_log

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.storage.log.log import Log

SOME_BYTES = 1000


def opened(folder: Path) -> tuple[Log, LogCopy]:
    """Return a log of some segments, and a copy that has not begun."""
    source, target = folder / "source", folder / "target"
    source.mkdir()
    target.mkdir()
    log = make_log(source, segment_bytes=4_000, retention_bytes=-1)
    load_log(log, recovery_point=0, clean=True, now_ms=NOW)
    for number in range(20):
        append(log, batch(value=b"v" * 900, producer_id=1, producer_epoch=0, base_sequence=number))
    assert len(log.segments) > 3
    return log, LogCopy(log, Files(), str(target))


def copy_some(copy: LogCopy, pieces: int) -> bool:
    for _ in range(pieces):
        for path in copy.drop_removed():
            Files().unlink(path)
        piece = copy.next_piece(SOME_BYTES)
        if piece is None:
            return False
        copy.copy(piece)
        copy.note_copied(piece)
    return True


def finish(log: Log, copy: LogCopy) -> None:
    while copy_some(copy, 1):
        pass
    log.leader_epochs.persist()
    copy.finish()
    assert copy.is_complete


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def check_same(folder: Path) -> None:
    copied = contents(folder / "target")
    assert copied
    assert copied == contents(folder / "source")


def test_records_appended_during_the_copy_are_copied(tmp_path: Path):
    log, copy = opened(tmp_path)
    assert copy.lag == 20
    assert copy_some(copy, 5)
    assert 0 < copy.copied_bytes < log.size_bytes
    for _ in range(8):
        append(log, batch(value=b"w" * 900))
    finish(log, copy)
    assert (copy.lag, copy.lacking_bytes) == (0, 0)
    check_same(tmp_path)
    append(log)
    assert not copy.is_complete


def test_segments_deleted_by_retention_leave_the_copy(tmp_path: Path):
    log, copy = opened(tmp_path)
    assert copy_some(copy, 12)
    log.settings = TopicSettings(segment_bytes=4_000, retention_bytes=6_000)
    removed = log.delete_old_segments(ClockReading(NOW))
    assert removed
    for segment in removed:
        log.producer_state.snapshots.delete(segment.base_offset)
        segment.delete()
    finish(log, copy)
    check_same(tmp_path)


def test_truncated_log_is_copied_from_scratch(tmp_path: Path):
    log, copy = opened(tmp_path)
    assert copy_some(copy, 12)
    log.truncate_to(5, now_ms=NOW)
    append(log, batch(value=b"other" * 100), leader_epoch=3)
    finish(log, copy)
    check_same(tmp_path)


def test_chunk_truncated_during_its_copy_is_discarded(tmp_path: Path):
    log, copy = opened(tmp_path)
    piece = copy.next_piece(SOME_BYTES)
    assert piece is not None
    copy.copy(piece)
    log.truncate_to(0, now_ms=NOW)
    copy.note_copied(piece)
    append(log, batch(value=b"x" * 3_000), leader_epoch=3)
    finish(log, copy)
    check_same(tmp_path)


def test_log_continues_in_its_copy(tmp_path: Path):
    log, copy = opened(tmp_path)
    under_way = log.flush_target()
    assert under_way is not None
    finish(log, copy)
    flushed = log.recovery_point
    log.relocate(copy.directory)
    # The directory's name is not on disk yet, nor were the files when the sync began.
    log.mark_flushed(under_way.offset, cuts=under_way.cuts)
    assert log.recovery_point == flushed < 20
    log.mark_flushed(20, cuts=log.cuts)
    for path in (tmp_path / "source").iterdir():
        path.unlink()
    append(log, batch(value=b"after"), leader_epoch=7)
    assert log.recovery_point == 20
    log.close(clean=True)
    again = make_log(copy.directory)
    load_log(again, recovery_point=21, clean=True, now_ms=NOW)
    assert (again.log_end_offset, again.leader_epochs.latest_epoch) == (21, 7)
    again.check()
