"""The file of aborted transactions: bytes, searches, truncation, and damage."""

from __future__ import annotations

import struct

import pytest

from wirebroker.codecs.errors import KafkaError
from wirebroker.storage.files import Files
from wirebroker.storage.log.index.transaction_index import AbortedTransaction, TransactionIndex

ONE = AbortedTransaction(producer_id=7, first_offset=0, last_offset=10, last_stable_offset=3)
TWO = AbortedTransaction(8, 3, 20, 12)
THREE = AbortedTransaction(7, 12, 30, 31)


@pytest.fixture
def index(tmp_path):
    return TransactionIndex(Files().data(f"{tmp_path}/{0:020d}.txnindex"))


def fill(index, *entries):
    index.write_entries(entries)
    index.commit_entries(len(entries))


def test_there_is_no_file_before_the_first_entry(index, tmp_path):
    assert index.entry_count == 0
    assert index.collect(0, 100) == ([], False)
    index.truncate_to_offset(5)
    assert index.sanity_check(0) is None
    assert list(tmp_path.iterdir()) == []


def test_an_entry_has_34_bytes(index, tmp_path):
    fill(index, ONE)
    content = (tmp_path / f"{0:020d}.txnindex").read_bytes()
    assert content == struct.pack(">hqqqq", 0, 7, 0, 10, 3)
    assert len(content) == 34


def test_entries_that_are_not_committed_do_not_count(index):
    fill(index, ONE)
    index.write_entries([TWO])
    assert list(index) == [ONE]
    index.write_entries([THREE])
    index.commit_entries(1)
    assert list(index) == [ONE, THREE]


@pytest.mark.parametrize(
    ("fetch_offset", "up_to_offset", "found", "is_complete"),
    [
        (0, 2, [ONE], True),  # the stable offset 3 has reached the bound
        (0, 4, [ONE, TWO], True),
        (0, 12, [ONE, TWO], True),
        (0, 13, [ONE, TWO, THREE], True),
        (11, 13, [TWO, THREE], True),
        (21, 32, [THREE], False),
        (31, 40, [], False),
    ],
)
def test_a_search_finds_what_overlaps(index, fetch_offset, up_to_offset, found, is_complete):
    fill(index, ONE, TWO, THREE)
    assert index.collect(fetch_offset, up_to_offset) == (found, is_complete)


def test_truncation_drops_entries_of_removed_markers(index, tmp_path):
    fill(index, ONE, TWO, THREE)
    index.truncate_to_offset(21)
    assert list(index) == [ONE, TWO]
    index.truncate_to_offset(20)
    assert list(index) == [ONE]
    index.truncate_to_offset(0)
    assert list(index) == []
    assert list(tmp_path.iterdir()) == []


def test_many_entries_are_read_in_pieces(index):
    entries = [AbortedTransaction(1, 10 * n, 10 * n + 5, 10 * n + 6) for n in range(1_000)]
    fill(index, *entries)
    assert list(index) == entries
    assert index.collect(5_006, 9_000).transactions == entries[501:900]


def test_a_piece_of_an_entry_at_the_end_is_overwritten(index, tmp_path):
    fill(index, ONE)
    path = tmp_path / f"{0:020d}.txnindex"
    path.write_bytes(path.read_bytes() + b"torn")
    again = TransactionIndex(Files().data(str(path)))
    assert again.sanity_check(0) == "its 38 bytes are not a multiple of 34"
    fill(again, TWO)
    assert list(TransactionIndex(Files().data(str(path)))) == [ONE, TWO]


@pytest.mark.parametrize(
    ("entries", "base_offset"),
    [
        ([TWO, ONE], 0),
        ([ONE, ONE], 0),
        ([ONE], 11),  # the marker is in another segment
        ([AbortedTransaction(7, 10, 10, 3)], 0),
        ([ONE, AbortedTransaction(7, 12, 30, 2)], 0),
    ],
)
def test_non_increasing_entries_are_corruption(index, entries, base_offset):
    fill(index, *entries)
    assert index.sanity_check(base_offset) is not None


def test_an_entry_of_another_version_is_not_read(index, tmp_path):
    (tmp_path / f"{0:020d}.txnindex").write_bytes(struct.pack(">hqqqq", 1, 7, 0, 10, 3))
    assert index.sanity_check(0) == "an entry has the version 1"
    with pytest.raises(KafkaError):
        index.collect(0, 100)
