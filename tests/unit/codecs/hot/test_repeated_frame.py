"""Recognition of repeated frames, equal in Python and (compiled tree) C."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tests.support.harness.pure_modules import pure
from tests.support.protocol.produce_frames import VERSIONS, Frame, produce_frame
from tests.support.records.batches import batch
from wirebroker.codecs.hot import repeated_frame
from wirebroker.codecs.primitives import uvarint

BOTH = pytest.mark.parametrize(
    "module", [repeated_frame, pure("hot.repeated_frame")], ids=["used", "pure"]
)
EACH_VERSION = pytest.mark.parametrize("version", VERSIONS)
EACH_LAYOUT = pytest.mark.parametrize("version", [8, 12, 13])
TWO_MIB = 2 << 20


def of_length(length: int, attributes: int = 0) -> bytes:
    """Return this many bytes, with a batch's length, magic and attributes."""
    size = (length - 12).to_bytes(4)
    return bytes(8) + size + bytes(4) + b"\2" + bytes(5) + bytes([attributes]) + bytes(length - 23)


def seen(match: tuple[int, list[tuple[int, memoryview, int]]] | None) -> Any:
    if match is None:
        return None
    correlation_id, parts = match
    return correlation_id, [(index, bytes(records), low) for index, records, low in parts]


@BOTH
@EACH_VERSION
def test_frame_with_same_shape_as_previous_matches(module, version):
    last = Frame(version, batch(b"a"), correlation_id=1)
    for correlation_id in (0, 5, -1, -(1 << 31), (1 << 31) - 1):
        next_one = Frame(version, batch(b"b" * 300), correlation_id=correlation_id)
        result = seen(last.match(module, next_one.data))
        assert result == (correlation_id, [(3, batch(b"b" * 300), 0)])


@BOTH
@EACH_VERSION
@pytest.mark.parametrize("count", [1, 2, 7, 99, 100])
def test_partitions_match_in_any_number_and_order(module, version, count):
    last = Frame(version, batch(b"a"))
    records_by_index = {index * 7 % 101: batch(b"b" * index) for index in range(count)}
    data = produce_frame(version, records_by_index, correlation_id=9)
    expected = [(index, records, 0) for index, records in records_by_index.items()]
    assert seen(last.match(module, data)) == (9, expected)
    for position in range(len(data) - 3, len(data)):
        assert last.match(module, data[:position]) is None


@BOTH
@EACH_LAYOUT
def test_no_partition_does_not_match(module, version):
    last = Frame(version, batch(b"a"))
    for count in (b"\0", b"\1") if version >= 9 else (bytes(4), b"\xff" * 4):
        for suffix in (b"", bytes(2), bytes(70)):
            assert last.match(module, last.data[: last.count_at] + count + suffix) is None


@BOTH
@EACH_LAYOUT
@pytest.mark.parametrize("count", [101, 126, 127, 200])
def test_too_many_partitions_do_not_match(module, version, count):
    last = Frame(version, batch(b"a"))
    data = produce_frame(version, dict.fromkeys(range(count), batch(b"b")))
    assert last.match(module, data) is None


@BOTH
@EACH_LAYOUT
def test_frame_with_one_invalid_batch_or_tags_does_not_match(module, version):
    last = Frame(version, batch(b"a"))
    good = batch(b"b" * 70)
    wrong_length, wrong_magic = bytearray(good), bytearray(good)
    wrong_length[11] += 1
    wrong_magic[16] = 1
    for wrong in (bytes(wrong_length), bytes(wrong_magic), good + b"!", good[:60], good[:-1]):
        for index in range(3):
            records_by_index = dict.fromkeys(range(3), good) | {index: wrong}
            assert last.match(module, produce_frame(version, records_by_index)) is None
    if version >= 9:
        data = produce_frame(version, dict.fromkeys(range(3), good))
        for end in (data.index(good) + len(good), len(data) - 2, len(data) - 1):
            assert data[end] == 0
            assert last.match(module, data[:end] + b"\1" + data[end + 1 :]) is None
            assert last.match(module, data[:end] + b"\1\5\0" + data[end + 1 :]) is None


@BOTH
@EACH_LAYOUT
@pytest.mark.parametrize(
    "length",
    [61, 62, 63, 64, 65, 125, 126, 127, 128, 129, 16_382, 16_383, 16_384, TWO_MIB - 2],
)
def test_records_of_any_length_match(module, version, length):
    frame = Frame(version, of_length(length, 0x84))
    assert frame.stop - frame.start == length
    last = Frame(version, batch(b"a"))
    assert seen(last.match(module, frame.data)) == (0, [(3, of_length(length, 0x84), 0x84)])


@BOTH
@pytest.mark.parametrize("length", [TWO_MIB - 1, TWO_MIB, TWO_MIB + 1])
def test_records_above_2_mib_match_only_with_classic_length(module, length):
    records = of_length(length)
    assert Frame(8, batch(b"a")).match(module, Frame(8, records).data) is not None
    assert Frame(12, batch(b"a")).match(module, Frame(12, records).data) is None


@BOTH
@EACH_LAYOUT
@pytest.mark.parametrize("length", [23, 59, 60])
def test_records_shorter_than_a_batch_header_do_not_match(module, version, length):
    # Unchanged, and where the frame is long enough for a batch.
    frame = Frame(version, of_length(length))
    assert frame.match(module, frame.data) is None
    assert frame.match(module, frame.data + bytes(61)) is None


@BOTH
@EACH_LAYOUT
def test_null_records_do_not_match(module, version):
    last = Frame(version, batch(b"a"))
    null = b"\0" if version >= 9 else b"\xff" * 4
    for suffix in (b"", bytes(3), bytes(61), bytes(64)):
        assert last.match(module, last.data[: last.length_at] + null + suffix) is None


@BOTH
@EACH_VERSION
def test_all_bytes_but_correlation_id_and_index_must_match(module, version):
    frame = Frame(version, batch(b"a"))
    for position in range(frame.start):
        for bit in range(8):
            data = bytearray(frame.data)
            data[position] ^= 1 << bit
            is_free = 4 <= position < 8 or frame.length_at - 4 <= position < frame.length_at
            matches = frame.match(module, data) is not None
            assert matches is is_free, (position, bit)


@BOTH
@EACH_LAYOUT
def test_truncated_or_extended_frame_does_not_match(module, version):
    frame = Frame(version, batch(b"a" * 200))
    for stop in range(len(frame.data)):
        assert frame.match(module, frame.data[:stop]) is None
    for suffix in (b"\0", b"\0" * 3, frame.data):
        assert frame.match(module, frame.data + suffix) is None


@BOTH
@pytest.mark.parametrize("tags", [b"\0\0\1", b"\0\1\0", b"\1\0\0", b"\0\0", b"\0\0\0\0", b""])
def test_tagged_fields_do_not_match(module, tags):
    frame = Frame(12, batch(b"a"))
    assert frame.match(module, frame.data[: frame.stop] + tags) is None


@BOTH
@pytest.mark.parametrize("length", [61, 126, 127, 300, 16_000])
def test_lengths_may_be_non_minimal_varints_up_to_three_bytes(module, length):
    frame = Frame(12, of_length(length))
    before, after = frame.data[: frame.length_at], frame.data[frame.start :]
    last = Frame(12, batch(b"a"))
    shortest = uvarint(length + 1)
    for size in range(len(shortest), 6):
        longer = bytearray(shortest)
        while len(longer) < size:
            longer[-1] |= 0x80
            longer.append(0)
        expected = (0, [(3, of_length(length), 0)]) if size <= 3 else None
        assert seen(last.match(module, before + bytes(longer) + after)) == expected


@BOTH
@pytest.mark.parametrize("length", [b"\xff" * 4, b"\x80\0\0\0", b"\x7f\xff\xff\xff", b"\0" * 4])
def test_impossible_lengths_do_not_match(module, length):
    frame = Frame(8, batch(b"a" * 100))
    before, after = frame.data[: frame.length_at], frame.data[frame.start :]
    assert frame.match(module, before + length + after) is None


@BOTH
@pytest.mark.parametrize("lead", [b"\x80\x80\x80", b"\xff\xff\xff", b"\xff\xff\x7f", b"\0", b"\1"])
def test_impossible_varints_do_not_match(module, lead):
    frame = Frame(12, batch(b"a" * 100))
    before, after = frame.data[: frame.length_at], frame.data[frame.start :]
    assert frame.match(module, before + lead + after) is None


@BOTH
@EACH_LAYOUT
def test_read_only_views_and_slices_are_accepted(module, version):
    frame = Frame(version, batch(b"a"))
    within = memoryview(b"!" * 5 + frame.data + b"!" * 7)[5:-7]
    for view in (within, memoryview(frame.data), memoryview(bytearray(frame.data))):
        match = module.match(view, frame.head, frame.same, version >= 9)
        assert seen(match) == (0, [(3, batch(b"a"), 0)])


@BOTH
@EACH_LAYOUT
def test_non_contiguous_views_are_refused(module, version):
    frame = Frame(version, batch(b"a"))
    spread = bytearray(2 * len(frame.data))
    spread[::2] = frame.data
    with pytest.raises((BufferError, ValueError)):
        module.match(memoryview(spread)[::2], frame.head, frame.same, version >= 9)


@BOTH
@pytest.mark.parametrize("wrong", [None, 7, "a" * 200])
def test_non_buffer_argument_is_refused(module, wrong):
    frame = Frame(12, batch(b"a"))
    with pytest.raises(TypeError):
        module.match(wrong, frame.head, frame.same, True)


@pytest.mark.parametrize(("at", "count"), [(8, 1), (9, 2), (100, 3)])
@pytest.mark.parametrize("tail_bytes", [0, 3, 6])
@pytest.mark.parametrize("number", [0, 1, -1, (1 << 63) - 1, -(1 << 63), 0x0102030405060708])
def test_response_template_is_filled_and_otherwise_unchanged(at, count, tail_bytes, number):
    answer = bytes(range(1, 251))
    part_bytes = 30 + tail_bytes
    kind = repeated_frame.AnswerKind(answer, count, at=at, part_bytes=part_bytes)
    parts = [(index, number, -1, ~number, kind.tail) for index in range(count)]
    fields = (field for part in parts for field in part)
    filled = kind.fill(kind.before, number >> 32, kind.between, *fields, kind.behind)
    tail = answer[at + 30 : at + part_bytes]
    expected = answer[:4] + struct.pack(">i", number >> 32) + answer[8:at]
    for index in range(count):
        expected += struct.pack(">ihqqq", index, 0, number, -1, ~number) + tail
    assert filled == expected + answer[at + count * part_bytes :]


@pytest.mark.parametrize(
    ("size", "count", "at", "part_bytes"),
    [(200, 1, 171, 30), (200, 2, 141, 30), (200, 1, 1 << 40, 30), (37, 1, 8, 30), (200, 1, 8, 29)],
)
def test_template_positions_outside_the_response_are_refused(size, count, at, part_bytes):
    with pytest.raises(AssertionError):
        repeated_frame.AnswerKind(bytes(size), count, at=at, part_bytes=part_bytes)


def test_templates_with_equal_layout_share_their_struct():
    kinds = [repeated_frame.AnswerKind(bytes(500), 10, at=8, part_bytes=40) for _ in range(2)]
    other = repeated_frame.AnswerKind(bytes(500), 11, at=8, part_bytes=40)
    assert kinds[0].fill is kinds[1].fill
    assert kinds[0].fill is not other.fill
