"""A missing, damaged or old leader epoch checkpoint is rebuilt from the batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.storage.log_kit import NOW, append, make_log
from wirebroker.storage.recovery.log_recovery import load_log

if TYPE_CHECKING:
    from pathlib import Path

FILE = "leader-epoch-checkpoint"
WRITTEN = [(0, 0), (1, 3), (4, 5)]


def fill(directory: Path) -> None:
    """Write ten records in three epochs and several segments; close as a clean stop does."""
    log = make_log(directory, segment_bytes=200)
    load_log(log, recovery_point=0, clean=True, now_ms=NOW)
    for epoch in (0, 0, 0, 1, 1, 4, 4, 4, 4, 4):
        append(log, leader_epoch=epoch)
    assert len(log.segments) > 2
    log.close(clean=True)
    assert log.leader_epochs.entries == WRITTEN


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "crashed"])
@pytest.mark.parametrize("recovery_point", [0, 6, 10])
@pytest.mark.parametrize(
    "content",
    [
        None,
        "",
        "torn",
        "0\n0\n",
        "0\n1\n0 0\n",
        "0\n2\n0 0\n1 3\n",
        "0\n3\n0 0\n1 3\n4 5\n",
        "0\n4\n0 0\n1 3\n4 5\n9 10\n",
        f"0\n1\n0 {1 << 63}\n",
    ],
)
def test_epochs_are_those_of_the_batches(
    tmp_path: Path, content: str | None, recovery_point: int, *, clean: bool
) -> None:
    fill(tmp_path)
    if content is None:
        (tmp_path / FILE).unlink()
    else:
        (tmp_path / FILE).write_text(content)
    log = make_log(tmp_path, segment_bytes=200)
    load_log(log, recovery_point=recovery_point, clean=clean, now_ms=NOW)
    assert log.leader_epochs.entries == WRITTEN
    assert log.leader_epochs.end_offset_for(2, log.log_end_offset) == (1, 5)
    log.close(clean=True)
    again = make_log(tmp_path, segment_bytes=200)
    load_log(again, recovery_point=10, clean=True, now_ms=NOW)
    assert again.leader_epochs.entries == WRITTEN


def test_an_epoch_whose_first_record_was_compacted_away_keeps_its_start(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / FILE).write_text("0\n3\n0 0\n1 2\n4 4\n")
    log = make_log(tmp_path, segment_bytes=200)
    load_log(log, recovery_point=10, clean=True, now_ms=NOW)
    assert log.leader_epochs.entries == [(0, 0), (1, 2), (4, 4)]


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "crashed"])
@pytest.mark.parametrize("has_file", [True, False])
@pytest.mark.parametrize(
    ("start", "expected"),
    [(2, [(0, 2), (1, 3), (4, 5)]), (4, [(1, 4), (4, 5)]), (7, [(4, 7)]), (10, [(4, 10)])],
)
def test_epochs_of_deleted_records_do_not_come_back(
    tmp_path: Path, start: int, expected: list[tuple[int, int]], *, has_file: bool, clean: bool
) -> None:
    fill(tmp_path)
    log = make_log(tmp_path, segment_bytes=200)
    load_log(log, recovery_point=10, clean=True, now_ms=NOW)
    log.set_high_watermark(10)
    log.increment_log_start_offset(start)
    log.close(clean=True)
    if not has_file:
        (tmp_path / FILE).unlink()
    again = make_log(tmp_path, segment_bytes=200)
    load_log(again, recovery_point=10, clean=clean, now_ms=NOW, log_start_offset=start)
    assert again.leader_epochs.entries == expected
    again.leader_epochs.begin(6, 10)
    assert again.leader_epochs.earliest == ((6, 10) if start == 10 else expected[0])


def test_damaged_segment_only_ends_the_epoch_search(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / FILE).unlink()
    second = sorted(tmp_path.glob("*.log"))[1]
    second.write_bytes(bytes(len(second.read_bytes())))
    log = make_log(tmp_path, segment_bytes=200)
    load_log(log, recovery_point=10, clean=True, now_ms=NOW)
    assert log.log_end_offset == 10
    assert log.leader_epochs.entries[0] == (0, 0)
