"""The index from offsets to positions."""

import struct

import pytest

from wirebroker.storage.files import DataFile, Files
from wirebroker.storage.log.index.offset_index import OFFSET_ENTRY, OffsetIndex

BASE = 1000


def make_index(tmp_path, entries, tail=b""):
    path = tmp_path / "00000000000000001000.index"
    packed = b"".join(OFFSET_ENTRY.pack(offset - BASE, position) for offset, position in entries)
    path.write_bytes(packed + tail)
    return OffsetIndex(Files().data(str(path)), BASE)


def entries_of(count):
    return [(BASE + 7 * number + 3, 5000 * (number + 1)) for number in range(count)]


@pytest.mark.parametrize("count", [0, 1, 2, 127, 128, 129, 1000])
def test_every_offset_finds_the_last_entry_at_or_before_it(tmp_path, count):
    entries = entries_of(count)
    expected = (BASE, 0)
    index = make_index(tmp_path, entries)
    remaining = list(entries)
    for offset in range(BASE, BASE + 7 * count + 20):  # as a sequential reader asks
        while remaining and remaining[0][0] <= offset:
            expected = remaining.pop(0)
        assert index.lookup(offset) == expected
    assert index.last_entry() == (entries or [(BASE, 0)])[-1]


def test_offsets_in_any_order_find_their_entry(tmp_path):
    entries = entries_of(700)
    index = make_index(tmp_path, entries)
    for step in (311, 97, 13):
        for number in range(0, 700 * step, step):
            offset, position = entries[number % 700]
            assert index.lookup(offset) == (offset, position)
            assert index.lookup(offset + 6) == (offset, position)


def test_a_reader_that_moves_on_finds_its_entries_in_memory(tmp_path, monkeypatch):
    index = make_index(tmp_path, entries_of(1000))
    reads = []
    real = DataFile.read_at

    def read_at(file, position, length):
        reads.append(position)
        return real(file, position, length)

    monkeypatch.setattr(DataFile, "read_at", read_at)
    for offset in range(BASE, BASE + 7000):
        index.lookup(offset)
    assert len(reads) < 20


@pytest.mark.parametrize("count", [0, 1, 5, 300])
def test_zeros_that_a_killed_kafka_leaves_are_no_entries(tmp_path, count):
    index = make_index(tmp_path, entries_of(count), tail=bytes(8 * 1000))
    assert index.entry_count == count
    assert index.lookup(BASE + 100_000) == (entries_of(count) or [(BASE, 0)])[-1]
    assert index.sanity_check() is None
    index.trim()
    assert index.file.size() == 8 * count


def test_entries_are_appended_over_the_zeros(tmp_path):
    index = make_index(tmp_path, entries_of(2), tail=bytes(80))
    index.write_entries(OFFSET_ENTRY.pack(50, 20_000))
    assert index.last_entry() == entries_of(2)[-1]
    index.commit_entries(1)
    assert index.last_entry() == (BASE + 50, 20_000)
    assert index.lookup(BASE + 50) == (BASE + 50, 20_000)


def test_an_appended_entry_is_found_after_a_lookup_that_missed_it(tmp_path):
    index = make_index(tmp_path, entries_of(2))
    assert index.lookup(BASE + 90) == entries_of(2)[-1]
    index.write_entries(OFFSET_ENTRY.pack(60, 20_000))
    index.commit_entries(1)
    assert index.lookup(BASE + 90) == (BASE + 60, 20_000)


@pytest.mark.parametrize(("offset", "kept"), [(BASE, 0), (BASE + 3, 0), (BASE + 4, 1), (9999, 300)])
def test_truncation_keeps_the_entries_below_the_offset(tmp_path, offset, kept):
    index = make_index(tmp_path, entries_of(300), tail=bytes(800))
    index.lookup(BASE + 5)
    index.truncate_to_offset(offset)
    assert index.entry_count == kept
    assert index.file.size() == 8 * kept
    assert index.lookup(99_999) == (entries_of(kept) or [(BASE, 0)])[-1]


def test_full_index_reports_that_it_is_full(tmp_path):
    index = make_index(tmp_path, entries_of(3))
    assert index.is_full(8 * 3 + 7)
    assert not index.is_full(8 * 4)


def test_damage_is_noticed(tmp_path):
    assert "multiple of 8" in (make_index(tmp_path, entries_of(2), tail=b"x").sanity_check() or "")
    assert make_index(tmp_path, [(BASE + 9, 9000), (BASE + 4, 9900)]).sanity_check()
    assert make_index(tmp_path, [(BASE + 9, 9000), (BASE + 10, -4)]).sanity_check()
    assert make_index(tmp_path, entries_of(2)).sanity_check() is None


def test_a_missing_file_is_an_empty_index_and_trimming_creates_it(tmp_path):
    index = OffsetIndex(Files().data(f"{tmp_path}/x.index"), BASE)
    assert index.lookup(BASE + 5) == (BASE, 0)
    assert index.sanity_check() is None
    index.trim()
    assert (tmp_path / "x.index").read_bytes() == b""
    index.replace_entries(struct.pack(">ii", 3, 4097))
    assert index.last_entry() == (BASE + 3, 4097)
