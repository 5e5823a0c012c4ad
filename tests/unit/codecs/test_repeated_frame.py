"""What counts as a frame like the last one, in Python and (compiled tree) in C alike."""

from __future__ import annotations

import struct

import pytest

from tests.support.batches import batch
from tests.support.produce_frames import VERSIONS, Frame
from tests.support.pure_modules import pure
from wirebroker.codecs import repeated_frame
from wirebroker.codecs.primitives import uvarint

BOTH = pytest.mark.parametrize(
    "module", [repeated_frame, pure("repeated_frame")], ids=["used", "pure"]
)
EACH_VERSION = pytest.mark.parametrize("version", VERSIONS)
EACH_LAYOUT = pytest.mark.parametrize("version", [8, 12, 13])
TWO_MIB = 2 << 20


def of_length(length: int, attributes: int = 0) -> bytes:
    """Return so many bytes with attributes where a batch has them."""
    return bytes(22) + bytes([attributes]) + bytes(length - 23)


@BOTH
@EACH_VERSION
def test_a_frame_like_the_last_one_matches(module, version):
    last = Frame(version, batch(b"a"), correlation_id=1)
    for correlation_id in (0, 5, -1, -(1 << 31), (1 << 31) - 1):
        next_one = Frame(version, batch(b"b" * 300), correlation_id=correlation_id)
        start, stop = next_one.start, next_one.stop
        assert last.match(module, next_one.data) == (correlation_id, start, stop, 0)
        assert next_one.data[start:stop] == batch(b"b" * 300)


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
    assert last.match(module, frame.data) == (0, frame.start, frame.stop, 0x84)


@BOTH
@pytest.mark.parametrize("length", [TWO_MIB - 1, TWO_MIB, TWO_MIB + 1])
def test_more_than_2_mib_match_where_the_length_is_no_varint(module, length):
    records = of_length(length)
    assert Frame(8, batch(b"a")).match(module, Frame(8, records).data) is not None
    assert Frame(12, batch(b"a")).match(module, Frame(12, records).data) is None


@BOTH
@EACH_LAYOUT
@pytest.mark.parametrize("length", [23, 59, 60])
def test_what_is_shorter_than_a_batch_header_does_not_match(module, version, length):
    # As they are, and where the frame is long enough for a batch.
    frame = Frame(version, of_length(length))
    assert frame.match(module, frame.data) is None
    assert frame.match(module, frame.data + bytes(61)) is None


@BOTH
@EACH_LAYOUT
def test_null_records_do_not_match(module, version):
    last = Frame(version, batch(b"a"))
    null = b"\0" if version >= 9 else b"\xff" * 4
    for more in (b"", bytes(3), bytes(61), bytes(64)):
        assert last.match(module, last.data[: last.length_at] + null + more) is None


@BOTH
@EACH_VERSION
def test_each_byte_before_the_records_counts_but_those_of_the_correlation_id(module, version):
    frame = Frame(version, batch(b"a"))
    for position in range(frame.start):
        for bit in range(8):
            data = bytearray(frame.data)
            data[position] ^= 1 << bit
            matches = frame.match(module, data) is not None
            assert matches is (4 <= position < 8), (position, bit)


@BOTH
@EACH_LAYOUT
def test_a_frame_that_is_cut_off_or_goes_on_does_not_match(module, version):
    frame = Frame(version, batch(b"a" * 200))
    for stop in range(len(frame.data)):
        assert frame.match(module, frame.data[:stop]) is None
    for more in (b"\0", b"\0" * 3, frame.data):
        assert frame.match(module, frame.data + more) is None


@BOTH
@pytest.mark.parametrize("tags", [b"\0\0\1", b"\0\1\0", b"\1\0\0", b"\0\0", b"\0\0\0\0", b""])
def test_tagged_fields_do_not_match(module, tags):
    frame = Frame(12, batch(b"a"))
    assert frame.match(module, frame.data[: frame.stop] + tags) is None


@BOTH
@pytest.mark.parametrize("length", [61, 126, 127, 300, 16_000])
def test_lengths_may_be_written_longer_than_they_need_up_to_three_bytes(module, length):
    frame = Frame(12, of_length(length))
    before, after = frame.data[: frame.length_at], frame.data[frame.start :]
    last = Frame(12, batch(b"a"))
    shortest = uvarint(length + 1)
    for size in range(len(shortest), 6):
        longer = bytearray(shortest)
        while len(longer) < size:
            longer[-1] |= 0x80
            longer.append(0)
        start = frame.length_at + size
        expected = (0, start, start + length, 0) if size <= 3 else None
        assert last.match(module, before + bytes(longer) + after) == expected


@BOTH
@pytest.mark.parametrize("length", [b"\xff" * 4, b"\x80\0\0\0", b"\x7f\xff\xff\xff", b"\0" * 4])
def test_lengths_that_cannot_be_do_not_match(module, length):
    frame = Frame(8, batch(b"a" * 100))
    before, after = frame.data[: frame.length_at], frame.data[frame.start :]
    assert frame.match(module, before + length + after) is None


@BOTH
@pytest.mark.parametrize("lead", [b"\x80\x80\x80", b"\xff\xff\xff", b"\xff\xff\x7f", b"\0", b"\1"])
def test_varints_that_cannot_be_do_not_match(module, lead):
    frame = Frame(12, batch(b"a" * 100))
    before, after = frame.data[: frame.length_at], frame.data[frame.start :]
    assert frame.match(module, before + lead + after) is None


@BOTH
@EACH_LAYOUT
def test_views_may_be_read_only_and_parts_of_others(module, version):
    frame = Frame(version, batch(b"a"))
    within = memoryview(b"!" * 5 + frame.data + b"!" * 7)[5:-7]
    for view in (within, memoryview(frame.data), memoryview(bytearray(frame.data))):
        found = module.match(view, frame.head, frame.same, version >= 9)
        assert found == (0, frame.start, frame.stop, 0)


@BOTH
@EACH_LAYOUT
def test_views_with_gaps_are_refused(module, version):
    frame = Frame(version, batch(b"a"))
    spread = bytearray(2 * len(frame.data))
    spread[::2] = frame.data
    with pytest.raises((BufferError, ValueError)):
        module.match(memoryview(spread)[::2], frame.head, frame.same, version >= 9)


@BOTH
@pytest.mark.parametrize("wrong", [None, 7, "a" * 200])
def test_what_is_no_buffer_is_refused(module, wrong):
    frame = Frame(12, batch(b"a"))
    with pytest.raises(TypeError):
        module.match(wrong, frame.head, frame.same, True)


@BOTH
@pytest.mark.parametrize("numbers_at", [8, 9, 100, 176])
@pytest.mark.parametrize("number", [0, 1, -1, (1 << 63) - 1, -(1 << 63), 0x0102030405060708])
def test_an_answer_is_filled_with_four_numbers_and_stays_as_it_was(module, numbers_at, number):
    answer = bytes(range(200))
    filled = module.fill(answer, numbers_at, number >> 32, number, -1, ~number)
    numbers = struct.pack(">qqq", number, -1, ~number)
    expected = answer[:4] + struct.pack(">i", number >> 32) + answer[8:numbers_at] + numbers
    assert filled == expected + answer[numbers_at + 24 :]
    assert answer == bytes(range(200))


@BOTH
@pytest.mark.parametrize(("size", "numbers_at"), [(200, 177), (200, 200), (200, 1 << 40), (31, 8)])
def test_numbers_that_are_not_within_the_answer_are_refused(module, size, numbers_at):
    with pytest.raises((ValueError, struct.error)):
        module.fill(bytes(size), numbers_at, 1, 2, 3, 4)


@BOTH
def test_numbers_that_have_no_room_in_an_answer_are_refused(module):
    for numbers in ((1 << 63, 3, 4), (2, -(1 << 63) - 1, 4), (2, 3, 1 << 64)):
        with pytest.raises((OverflowError, struct.error)):
            module.fill(bytes(32), 8, 1, *numbers)
    for no_numbers in ((None, 3, 4), (2, "3", 4), (2, 3, 4.0)):
        with pytest.raises((TypeError, struct.error)):
            module.fill(bytes(32), 8, 1, *no_numbers)
