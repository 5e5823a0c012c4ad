"""Lost offsets: each range is recorded once, returned once, and merged with others."""

from __future__ import annotations

import pytest

from wirebroker.segments.loss_report import LostRange, note_loss, take_losses


def test_overlapping_ranges_are_merged_and_taken_once(tmp_path):
    folder = tmp_path / "lost"
    assert take_losses(folder) == []
    first = [("a-1", 0, 5, 9), ("a-1", 0, 5, 20), ("a-1", 0, 20, 30), ("a-1", 0, 31, 32)]
    for loss in [*first, ("a-1", 1, 7, 7), ("b", 0, 0, 1)]:
        note_loss(str(folder), LostRange(*loss))
    assert take_losses(folder) == [
        *(("a-1", 0, 5, 30), ("a-1", 0, 31, 32), ("a-1", 1, 7, 7), ("b", 0, 0, 1)),
    ]
    assert take_losses(folder) == []
    note_loss(str(folder), LostRange("b", 0, 1, 2))
    assert take_losses(folder) == [("b", 0, 1, 2)]
    note_loss(None, LostRange("b", 0, 2, 3))
    assert take_losses(folder) == []


@pytest.mark.parametrize("length", [1, 229, 230, 240, 249])
def test_a_topic_of_any_length_is_reported(tmp_path, length):
    lost = LostRange("t" * length, 1_000_000, 0, 9_000_000_000_000_000_000)
    note_loss(str(tmp_path), lost)
    note_loss(str(tmp_path), lost)
    assert take_losses(tmp_path) == [lost]
    assert take_losses(tmp_path) == []


@pytest.mark.parametrize(
    "ranges",
    [
        [("a", 0, 5, 10), ("a", 0, 10, 10)],
        [("a", 0, 5, 10), ("a", 0, 7, 7)],
        [("a", 0, 5, 5), ("a", 0, 5, 10)],
        [("a", 0, 5, 5), ("a", 0, 7, 7)],
    ],
)
def test_missing_partition_is_reported_next_to_its_ranges(tmp_path, ranges):
    for loss in ranges:
        note_loss(str(tmp_path), LostRange(*loss))
    assert take_losses(tmp_path) == ranges


def test_missing_partition_does_not_separate_ranges(tmp_path):
    for loss in [("a", 0, 5, 10), ("a", 0, 10, 10), ("a", 0, 10, 15)]:
        note_loss(str(tmp_path), LostRange(*loss))
    assert take_losses(tmp_path) == [("a", 0, 5, 15), ("a", 0, 10, 10)]
