"""The index from timestamps to offsets."""

import pytest

from wirebroker.storage.files import Files
from wirebroker.storage.log.index.time_index import TIME_ENTRY, TimeIndex

BASE = 40


def make_index(tmp_path, entries, tail=b""):
    path = tmp_path / "00000000000000000040.timeindex"
    packed = b"".join(TIME_ENTRY.pack(timestamp, offset - BASE) for timestamp, offset in entries)
    path.write_bytes(packed + tail)
    return TimeIndex(Files().data(str(path)), BASE)


ENTRIES = [(100, 41), (150, 45), (160, 50)]


@pytest.mark.parametrize(
    ("timestamp", "entry"),
    [(0, (-1, 40)), (99, (-1, 40)), (100, (100, 41)), (159, (150, 45)), (10**13, (160, 50))],
)
def test_a_timestamp_finds_the_last_entry_at_or_before_it(tmp_path, timestamp, entry):
    assert make_index(tmp_path, ENTRIES, tail=bytes(120)).lookup(timestamp) == entry


def test_only_a_later_timestamp_gets_an_entry(tmp_path):
    index = make_index(tmp_path, ENTRIES)
    assert not index.append_if_later(160, 60)
    assert not index.append_if_later(-1, 60)
    assert index.append_if_later(161, 61)
    assert index.last_entry() == (161, 61)
    assert index.file.size() == 48


def test_an_empty_index_takes_no_record_without_a_timestamp(tmp_path):
    index = make_index(tmp_path, [])
    assert not index.append_if_later(-1, 40)
    assert index.append_if_later(0, 40)
    assert index.last_entry() == (0, 40)


@pytest.mark.parametrize(("offset", "kept"), [(40, 0), (41, 0), (42, 1), (50, 2), (51, 3)])
def test_truncation_keeps_the_entries_below_the_offset(tmp_path, offset, kept):
    index = make_index(tmp_path, ENTRIES, tail=bytes(12))
    assert index.last_entry() == ENTRIES[-1]
    index.truncate_to_offset(offset)
    assert index.entry_count == kept
    assert index.last_entry() == ([(-1, BASE), *ENTRIES][kept])


def test_damage_is_noticed(tmp_path):
    assert make_index(tmp_path, [(100, 41), (90, 45)]).sanity_check()
    assert make_index(tmp_path, [(100, 41), (110, 30)]).sanity_check()
    assert "multiple of 12" in (make_index(tmp_path, ENTRIES, tail=b"1234").sanity_check() or "")
    assert make_index(tmp_path, ENTRIES).sanity_check() is None
