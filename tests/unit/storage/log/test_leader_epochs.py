"""LeaderEpochs against the cases of KIP-101, KIP-279 and Kafka's LeaderEpochFileCache."""

from __future__ import annotations

import pytest

from wirebroker.storage.files import Files
from wirebroker.storage.log.leader_epochs import LeaderEpochs


@pytest.fixture
def epochs(tmp_path):
    return LeaderEpochs(Files(), str(tmp_path))


def assign_all(epochs, *entries):
    for epoch, start_offset in entries:
        epochs.assign(epoch, start_offset)
    epochs.check()


def test_new_log_has_no_epochs(epochs):
    assert epochs.latest_epoch == -1
    assert epochs.earliest is None
    assert epochs.end_offset_for(0, 10) == (-1, -1)
    assert epochs.epoch_for_offset(0) is None


def test_the_newest_epoch_ends_where_the_log_ends(epochs):
    assign_all(epochs, (2, 6))
    assert epochs.end_offset_for(2, 10) == (2, 10)


def test_an_epoch_ends_where_the_next_one_begins(epochs):
    assign_all(epochs, (1, 0), (2, 6), (4, 9))
    assert epochs.end_offset_for(1, 20) == (1, 6)
    assert epochs.end_offset_for(2, 20) == (2, 9)


def test_an_unknown_epoch_in_between_is_answered_with_the_one_before(epochs):
    assign_all(epochs, (1, 0), (4, 9))
    assert epochs.end_offset_for(3, 20) == (1, 9)


def test_an_epoch_older_than_all_known_ends_at_the_first_known_start(epochs):
    assign_all(epochs, (5, 11), (6, 12))
    assert epochs.end_offset_for(3, 20) == (3, 11)


@pytest.mark.parametrize("epoch", [-1, 9])
def test_an_undefined_or_future_epoch_has_no_end(epochs, epoch):
    assign_all(epochs, (5, 11))
    assert epochs.end_offset_for(epoch, 20) == (-1, -1)


def test_assigning_the_current_epoch_again_changes_nothing(epochs):
    assert epochs.assign(3, 5)
    assert not epochs.assign(3, 9)
    assert epochs.entries == [(3, 5)]


def test_an_entry_that_contradicts_later_ones_removes_them(epochs):
    assign_all(epochs, (1, 0), (2, 5), (3, 9))
    assign_all(epochs, (4, 5))
    assert epochs.entries == [(1, 0), (4, 5)]
    assign_all(epochs, (2, 7))
    assert epochs.entries == [(1, 0), (2, 7)]


def test_an_epoch_for_an_offset_is_the_last_that_began_before(epochs):
    assign_all(epochs, (1, 3), (2, 5))
    assert [epochs.epoch_for_offset(offset) for offset in (2, 3, 4, 5, 99)] == [None, 1, 1, 2, 2]


def test_truncation_from_the_end_forgets_epochs_that_begin_there(epochs):
    assign_all(epochs, (1, 0), (2, 5), (3, 9))
    epochs.truncate_from_end(5)
    assert epochs.entries == [(1, 0)]
    epochs.truncate_from_end(5)
    assert epochs.entries == [(1, 0)]


def test_truncation_from_the_start_moves_the_epoch_it_falls_into(epochs):
    assign_all(epochs, (1, 0), (2, 5), (3, 9))
    epochs.truncate_from_start(7)
    assert epochs.entries == [(2, 7), (3, 9)]
    epochs.truncate_from_start(9)
    assert epochs.entries == [(3, 9)]
    epochs.truncate_from_start(4)
    assert epochs.entries == [(3, 9)]


def test_file_has_kafkas_format_and_is_read_back(tmp_path):
    epochs = LeaderEpochs(Files(), str(tmp_path))
    assign_all(epochs, (0, 0), (3, 1041))
    epochs.persist()
    path = tmp_path / "leader-epoch-checkpoint"
    assert path.read_bytes() == b"0\n2\n0 0\n3 1041\n"
    assert LeaderEpochs(Files(), str(tmp_path)).entries == [(0, 0), (3, 1041)]


def test_nothing_is_written_while_nothing_changed(tmp_path):
    epochs = LeaderEpochs(Files(), str(tmp_path))
    epochs.truncate_from_end(0)
    epochs.persist()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"0\n",
        b"1\n0\n",
        b"0\n2\n0 0\n",
        b"0\n1\nx y\n",
        b"0\n1\n-1 0\n",
        b"0\n1\n3 10",
        b"\0\0",
    ],
)
def test_a_torn_or_foreign_file_counts_as_empty(tmp_path, content):
    (tmp_path / "leader-epoch-checkpoint").write_bytes(content)
    assert LeaderEpochs(Files(), str(tmp_path)).entries == []


def test_empty_file_has_no_epochs_and_is_readable(tmp_path):
    """As Kafka creates it with the log."""
    (tmp_path / "leader-epoch-checkpoint").write_bytes(b"")
    epochs = LeaderEpochs(Files(), str(tmp_path))
    assert epochs.entries == []
    assert not epochs.was_unreadable


def test_clear_forgets_everything(epochs):
    assign_all(epochs, (1, 0))
    epochs.clear()
    assert epochs.entries == []
    assert epochs.encode() == b"0\n0\n"


# -- an epoch that has begun without records --


def test_an_epoch_that_has_begun_ends_the_one_before_it(epochs):
    assign_all(epochs, (0, 0))
    epochs.begin(2, 5)
    assert epochs.end_offset_for(0, 5) == (0, 5)
    assert epochs.end_offset_for(1, 5) == (0, 5)
    assert epochs.end_offset_for(2, 5) == (2, 5)
    assert epochs.end_offset_for(3, 5) == (-1, -1)
    epochs.check()


def test_the_next_epoch_takes_the_place_of_one_without_records(epochs):
    assign_all(epochs, (0, 0))
    epochs.begin(2, 5)
    epochs.begin(4, 5)
    assert epochs.entries == [(0, 0), (4, 5)]
    epochs.begin(6, 3)  # the end was lost
    assert epochs.entries == [(0, 0), (6, 3)]


def test_beginning_an_epoch_reads_and_writes_nothing(tmp_path):
    epochs = LeaderEpochs(Files(), str(tmp_path))
    assign_all(epochs, (0, 0))
    epochs.persist()
    again = LeaderEpochs(Files(), str(tmp_path))
    (tmp_path / "leader-epoch-checkpoint").write_bytes(b"0\n1\n1 0\n")  # found when needed
    again.begin(2, 5)
    assert not again.is_dirty
    assert again.entries == [(1, 0), (2, 5)]
    assert not again.is_dirty


def test_an_epoch_is_written_with_its_first_record(tmp_path):
    epochs = LeaderEpochs(Files(), str(tmp_path))
    epochs.begin(2, 0)
    assert (epochs.latest_epoch, epochs.latest_recorded_epoch) == (2, -1)
    assert epochs.assign(2, 0)
    assert (epochs.is_dirty, epochs.latest_recorded_epoch) == (True, 2)
    epochs.persist()
    assert not epochs.assign(2, 7)
    assert LeaderEpochs(Files(), str(tmp_path)).entries == [(2, 0)]


def test_to_lead_again_in_an_epoch_with_records_changes_nothing(epochs):
    assign_all(epochs, (0, 0), (2, 5))
    epochs.begin(2, 9)
    assert epochs.entries == [(0, 0), (2, 5)]
    assert epochs.latest_recorded_epoch == 2


def test_an_epoch_that_was_truncated_away_comes_back_with_its_first_record(epochs):
    epochs.begin(2, 5)
    epochs.truncate_from_end(5)
    assert epochs.assign(2, 5)
    assert epochs.entries == [(2, 5)]
