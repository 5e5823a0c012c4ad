"""Offsets that are gone: noted once by whom they are missed, taken once, and merged."""

from __future__ import annotations

from wirebroker.segments.loss_report import LostRange, note_loss, take_losses


def test_ranges_that_overlap_are_one_and_are_taken_once(tmp_path):
    folder = tmp_path / "lost"
    assert take_losses(folder) == []
    first = [("a-1", 0, 5, 9), ("a-1", 0, 5, 20), ("a-1", 0, 20, 30), ("a-1", 0, 31, 32)]
    for each in [*first, ("a-1", 1, 7, 7), ("b", 0, 0, 1)]:
        note_loss(str(folder), LostRange(*each))
    assert take_losses(folder) == [
        *(("a-1", 0, 5, 30), ("a-1", 0, 31, 32), ("a-1", 1, 7, 7), ("b", 0, 0, 1)),
    ]
    assert take_losses(folder) == []
    note_loss(str(folder), LostRange("b", 0, 1, 2))
    assert take_losses(folder) == [("b", 0, 1, 2)]
    note_loss(None, LostRange("b", 0, 2, 3))
    assert take_losses(folder) == []
