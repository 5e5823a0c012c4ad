"""The check and the placing of a plain batch, in Python and (compiled tree) in C alike."""

from __future__ import annotations

import struct

import pytest

from tests.support.batches import batch
from tests.support.pure_modules import pure
from wirebroker.codecs import plain_batch
from wirebroker.codecs.compression import Codec
from wirebroker.codecs.record_batch import (
    HEADER,
    BatchHeader,
    read_batch_header,
    write_crc,
)

BOTH = pytest.mark.parametrize("module", [plain_batch, pure("plain_batch")], ids=["used", "pure"])
INT32_MAX = (1 << 31) - 1


def changed(records: bytes, *, is_crc_right: bool = True, **fields: int) -> memoryview:
    """Return a copy with other header fields."""
    copy = bytearray(records)
    HEADER.pack_into(copy, 0, *read_batch_header(copy)._replace(**fields))
    if is_crc_right:
        write_crc(copy, 0)
    return memoryview(copy)


def of_size(size: int) -> memoryview:
    """Return a plain batch of so many bytes, of which only the header has a meaning."""
    fields = read_batch_header(batch(b""))._replace(length=size - 12)
    records = bytearray(HEADER.pack(*fields) + bytes(range(256)) * (size // 256 + 1))[:size]
    write_crc(records, 0)
    return memoryview(records)


@BOTH
@pytest.mark.parametrize("size", [68, 69, 1023, 1024, 1025, 1026, 4096, 70_001])
def test_a_plain_batch_s_header_is_read(module, size):
    records = of_size(size)
    header = module.checked_header(records)
    assert type(header) is BatchHeader
    assert header == read_batch_header(records)
    assert header.size == size


@BOTH
@pytest.mark.parametrize("size", [61, 62, 67])
def test_a_batch_without_room_for_its_record_is_not_plain(module, size):
    assert module.checked_header(of_size(size)) is None


@BOTH
@pytest.mark.parametrize(
    "fields",
    [
        {"leader_epoch": -1},
        {"leader_epoch": -(1 << 31)},
        {"attributes": 0x10},
        {"attributes": 0x14},
        {"base_timestamp": -1, "max_timestamp": (1 << 63) - 1},
        {"base_timestamp": -(1 << 63), "max_timestamp": -(1 << 63)},
        {"producer_id": 7, "producer_epoch": 3, "base_sequence": 0},
        {"producer_id": 0, "producer_epoch": -(1 << 15), "base_sequence": INT32_MAX},
        {"producer_id": (1 << 63) - 1, "base_sequence": 1},
        {"producer_id": -2, "base_sequence": -2},
        {"record_count": 2, "last_offset_delta": 1},
    ],
)
def test_what_the_log_does_not_depend_on_may_be_anything(module, fields):
    records = changed(batch(b"a" * 7, b""), **{"record_count": 1, "last_offset_delta": 0} | fields)
    assert module.checked_header(records) == read_batch_header(records)


@BOTH
@pytest.mark.parametrize("codec", Codec)
def test_known_codecs_are_plain(module, codec):
    records = memoryview(batch(b"a" * 100, b"b", codec=codec))
    assert module.checked_header(records) == read_batch_header(records)


@BOTH
@pytest.mark.parametrize(
    "fields",
    [
        {"base_offset": 1},
        {"base_offset": -1},
        {"base_offset": 1 << 32},
        {"length": 0},
        {"length": -12},
        {"length": INT32_MAX},
        {"magic": 1},
        {"magic": 3},
        {"magic": -2},
        {"attributes": 5},
        {"attributes": 7},
        {"attributes": 0x08},
        {"attributes": 0x20},
        {"attributes": 0x40},
        {"attributes": 0x80},
        {"attributes": 0x100},
        {"attributes": -(1 << 15)},
        {"last_offset_delta": 0},
        {"last_offset_delta": 2},
        {"last_offset_delta": -1},
        {"record_count": 0},
        {"record_count": 1},
        {"record_count": -2},
        {"record_count": 0, "last_offset_delta": -1},
        {"record_count": -1, "last_offset_delta": -2},
        {"record_count": -(1 << 31), "last_offset_delta": INT32_MAX},
        {"record_count": INT32_MAX, "last_offset_delta": INT32_MAX - 1},
        {"producer_id": 7, "base_sequence": -1},
        {"producer_id": 0, "base_sequence": -(1 << 31)},
    ],
)
def test_each_field_alone_makes_a_batch_one_that_is_not_plain(module, fields):
    whole = batch(b"a", b"b")
    assert module.checked_header(memoryview(whole)) is not None
    is_crc_right = "length" not in fields and "magic" not in fields
    assert module.checked_header(changed(whole, is_crc_right=is_crc_right, **fields)) is None


@BOTH
@pytest.mark.parametrize("by", [-1, 1])
def test_a_length_that_is_one_off_is_not_plain(module, by):
    whole = batch(b"a", b"b")
    length = read_batch_header(whole).length + by
    assert module.checked_header(changed(whole, is_crc_right=False, length=length)) is None


@BOTH
@pytest.mark.parametrize("count", [2, 3, 40])
def test_as_many_records_as_could_fit_are_plain_and_one_more_is_not(module, count):
    for size, is_plain in [(61 + 7 * count, True), (61 + 7 * count - 1, False)]:
        fields = {"record_count": count, "last_offset_delta": count - 1}
        records = changed(bytes(of_size(size)), **fields)
        assert (module.checked_header(records) is not None) is is_plain


@BOTH
@pytest.mark.parametrize("size", [100, 1024, 1025])
def test_every_bit_counts_but_those_of_the_leader_epoch(module, size):
    records = of_size(size)
    for position in [*range(80), size - 1]:
        for bit in range(8):
            records[position] ^= 1 << bit
            is_plain = module.checked_header(records) is not None
            assert is_plain is (12 <= position < 16), (position, bit)
            records[position] ^= 1 << bit


@BOTH
def test_a_part_of_a_batch_or_more_than_one_is_not_plain(module):
    whole = batch(b"a", b"b")
    for stop in range(len(whole)):
        assert module.checked_header(memoryview(whole)[:stop]) is None
    for more in (b"\0", whole[:30], whole):
        assert module.checked_header(memoryview(whole + more)) is None


@BOTH
@pytest.mark.parametrize("size", [69, 1024, 1025])
def test_views_may_be_read_only_and_parts_of_others(module, size):
    whole = bytes(of_size(size))
    within = memoryview(b"!" * 3 + whole + b"!" * 5)[3:-5]
    assert module.checked_header(memoryview(whole)) is not None
    assert module.checked_header(within) == module.checked_header(memoryview(bytearray(whole)))


@BOTH
def test_views_with_gaps_are_refused(module):
    spread = bytearray(2 * len(batch(b"a")))
    spread[::2] = batch(b"a")
    view = memoryview(spread)[::2]
    with pytest.raises((BufferError, ValueError)):
        module.checked_header(view)
    header = module.checked_header(memoryview(bytes(view)))
    with pytest.raises((BufferError, TypeError, ValueError)):
        module.place(view, header, 1, 2)


@BOTH
@pytest.mark.parametrize("wrong", [None, 7, "a" * 70, [1] * 70])
def test_what_is_no_buffer_is_refused(module, wrong):
    with pytest.raises(TypeError):
        module.checked_header(wrong)
    with pytest.raises(TypeError):
        module.place(wrong, read_batch_header(batch(b"a")), 1, 2)


@BOTH
@pytest.mark.parametrize(
    ("base_offset", "leader_epoch"),
    [(0, 0), (1, -1), (0x0102030405060708, 0x11121314), ((1 << 63) - 1, INT32_MAX), (-1, 5)],
)
def test_placing_changes_offset_and_epoch_and_nothing_else(module, base_offset, leader_epoch):
    whole = batch(b"a", b"b", producer_id=7, producer_epoch=1, base_sequence=3)
    records = memoryview(bytearray(whole))
    header = module.checked_header(records)
    placed = module.place(records, header, base_offset, leader_epoch)
    assert type(placed) is BatchHeader
    assert placed == read_batch_header(records)
    assert placed == header._replace(base_offset=base_offset, leader_epoch=leader_epoch)
    expected = struct.pack(">q", base_offset) + whole[8:12] + struct.pack(">i", leader_epoch)
    assert bytes(records) == expected + whole[16:]


@BOTH
@pytest.mark.parametrize(
    ("base_offset", "leader_epoch"),
    [(1 << 63, 0), (-(1 << 63) - 1, 0), (0, 1 << 31), (0, -(1 << 31) - 1), (0, 1 << 63)],
)
def test_numbers_that_have_no_room_are_refused(module, base_offset, leader_epoch):
    header = read_batch_header(batch(b"a"))
    with pytest.raises((OverflowError, struct.error)):
        module.place(memoryview(bytearray(batch(b"a"))), header, base_offset, leader_epoch)


@BOTH
@pytest.mark.parametrize(("base_offset", "leader_epoch"), [("1", 2), (1, None), (1.0, 2)])
def test_what_is_no_number_is_refused(module, base_offset, leader_epoch):
    header = read_batch_header(batch(b"a"))
    with pytest.raises((TypeError, struct.error)):
        module.place(memoryview(bytearray(batch(b"a"))), header, base_offset, leader_epoch)


@BOTH
def test_only_what_is_writable_and_long_enough_is_placed(module):
    whole = batch(b"a")
    header = read_batch_header(whole)
    with pytest.raises((BufferError, TypeError)):
        module.place(memoryview(whole), header, 1, 2)
    with pytest.raises((ValueError, struct.error)):
        module.place(memoryview(bytearray(7)), header, 1, 2)
