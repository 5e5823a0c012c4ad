"""The files of a segment: reopened, damaged, full, renamed, deleted."""

import os

import pytest

from tests.unit.storage.log.segment.segment_kit import append, filled, make_batch, make_segment
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.storage.files import Files
from wirebroker.storage.log.segment.segment import Segment
from wirebroker.storage.log.segment.segment_files import segment_base_offsets


def test_a_segment_that_was_only_listed_is_not_touched_by_close(tmp_path):
    (tmp_path / "00000000000000000000.log").write_bytes(make_batch(0))
    Segment(Files(), str(tmp_path), 0, created_ms=0).close()
    assert [path.name for path in tmp_path.iterdir()] == ["00000000000000000000.log"]


def test_a_new_segment_has_all_its_files_after_close(tmp_path):
    make_segment(tmp_path).close()
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".index", ".log", ".timeindex"]


def test_reopened_segment_accepts_appends(tmp_path):
    filled(tmp_path, 7).close()
    segment = Segment(Files(), str(tmp_path), 0, created_ms=0)
    assert (segment.size, segment.max_timestamp, segment.first_batch_timestamp) == (1400, 60, 0)
    append(segment, make_batch(14, timestamp=3))
    segment.close()
    segment = Segment(Files(), str(tmp_path), 0, created_ms=0)
    assert (segment.max_timestamp, segment.offset_of_max_timestamp) == (60, 13)
    assert segment.sanity_check() is None


def test_damaged_indexes_are_noticed(tmp_path):
    segment = filled(tmp_path, 20)
    segment.close()
    os.truncate(segment.log.path, 300)
    assert "beyond the end" in (
        Segment(Files(), str(tmp_path), 0, created_ms=0).sanity_check() or ""
    )


def test_garbage_in_the_middle_is_a_read_error(tmp_path):
    segment = filled(tmp_path, 20, interval=10**6)
    segment.log.write_at(1000, bytes(200))
    with pytest.raises(KafkaError) as raised:
        segment.position_for_offset(15)
    assert raised.value.code is ErrorCode.CORRUPT_MESSAGE


def test_an_index_that_is_full_asks_for_a_new_segment(tmp_path):
    segment = filled(tmp_path, 20)
    count = segment.time_index.entry_count
    assert segment.is_index_full(count * 12)
    assert not segment.is_index_full(count * 12 + 12)


def test_deleted_segments_are_renamed_and_removed(tmp_path):
    segment = filled(tmp_path, 3)
    segment.close()
    (tmp_path / "00000000000000000000.txnindex").write_bytes(b"")
    piece = segment.read_slice(0, 100, end_position=600, min_one=False)
    assert piece is not None
    contents = piece.read()
    segment.mark_deleted()
    assert {path.suffix for path in tmp_path.iterdir()} == {".deleted"}
    assert piece.read() == contents
    segment.delete()
    assert list(tmp_path.iterdir()) == []


def test_a_segment_follows_its_directory(tmp_path):
    old, new = tmp_path / "t-0", tmp_path / "t-0.uuid-delete"
    old.mkdir()
    segment = filled(old, 3)
    old.rename(new)
    segment.relocate(str(new))
    segment.close_files()
    assert segment.position_for_offset(3) is not None
    assert segment.offset_index.file.path.startswith(str(new))


def test_segments_are_found_by_their_names():
    names = ["00000000000000000012.log", "00000000000000000003.log", "00000000000000000003.index",
             "x.log", "00000000000000000004.log.deleted", "partition.metadata"]  # fmt: skip
    assert segment_base_offsets(names) == [3, 12]


def test_sync_covers_the_files_that_are_there(tmp_path):
    segment = make_segment(tmp_path)
    append(segment, make_batch(0))
    segment.sync()
    segment.max_timestamp  # noqa: B018 - opens the time index, which has no file yet
    segment.sync()
