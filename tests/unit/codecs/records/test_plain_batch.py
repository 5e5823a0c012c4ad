"""Validation and placement of a plain batch, in Python and in C."""

from __future__ import annotations

import struct

import pytest

from tests.support.harness.pure_modules import pure
from tests.support.records.batches import batch
from tests.transcripts.raw_records import batch_of, record
from wirebroker.codecs.records import plain_batch
from wirebroker.codecs.records.batch import BatchHeader, read_batch_header, write_crc
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.layout import HEADER, HEADER_BYTES
from wirebroker.codecs.records.whole_records import walks_plainly

BOTH = pytest.mark.parametrize(
    "module", [plain_batch, pure("records.plain_batch")], ids=["used", "pure"]
)
INT32_MAX = (1 << 31) - 1


def changed(records: bytes, *, is_crc_right: bool = True, **fields: int) -> memoryview:
    """Return a copy with other header fields."""
    copy = bytearray(records)
    HEADER.pack_into(copy, 0, *read_batch_header(copy)._replace(**fields))
    if is_crc_right:
        write_crc(copy, 0)
    return memoryview(copy)


def of_size(size: int) -> memoryview:
    """Return a plain batch of this many bytes, of which only the header is meaningful."""
    fields = read_batch_header(batch(b""))._replace(length=size - 12)
    records = bytearray(HEADER.pack(*fields) + bytes(range(256)) * (size // 256 + 1))[:size]
    write_crc(records, 0)
    return memoryview(records)


@BOTH
@pytest.mark.parametrize("size", [68, 69, 1023, 1024, 1025, 1026, 4096, 70_001])
def test_a_plain_batch_s_header_is_read(module, size):
    records = of_size(size)
    header = module.checked_header(records, False)
    assert type(header) is BatchHeader
    assert header == read_batch_header(records)
    assert header.size == size


@BOTH
@pytest.mark.parametrize("size", [61, 62, 67])
def test_a_batch_without_room_for_its_record_is_not_plain(module, size):
    assert module.checked_header(of_size(size), False) is None


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
def test_header_fields_the_log_ignores_may_have_any_value(module, fields):
    records = changed(batch(b"a" * 7, b""), **{"record_count": 1, "last_offset_delta": 0} | fields)
    assert module.checked_header(records, False) == read_batch_header(records)


@BOTH
@pytest.mark.parametrize("codec", Codec)
def test_known_codecs_are_plain(module, codec):
    records = memoryview(batch(b"a" * 100, b"b", codec=codec))
    assert module.checked_header(records, False) == read_batch_header(records)


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
def test_any_single_unusual_field_makes_a_batch_not_plain(module, fields):
    data = batch(b"a", b"b")
    assert module.checked_header(memoryview(data), False) is not None
    is_crc_right = "length" not in fields and "magic" not in fields
    assert module.checked_header(changed(data, is_crc_right=is_crc_right, **fields), False) is None


@BOTH
@pytest.mark.parametrize("by", [-1, 1])
def test_batch_with_length_off_by_one_is_not_plain(module, by):
    data = batch(b"a", b"b")
    length = read_batch_header(data).length + by
    assert module.checked_header(changed(data, is_crc_right=False, length=length), False) is None


@BOTH
@pytest.mark.parametrize("count", [2, 3, 40])
def test_record_count_beyond_what_fits_is_not_plain(module, count):
    for size, is_plain in [(61 + 7 * count, True), (61 + 7 * count - 1, False)]:
        fields = {"record_count": count, "last_offset_delta": count - 1}
        records = changed(bytes(of_size(size)), **fields)
        assert (module.checked_header(records, False) is not None) is is_plain


@BOTH
@pytest.mark.parametrize("size", [100, 1024, 1025])
def test_any_flipped_bit_outside_leader_epoch_is_not_plain(module, size):
    records = of_size(size)
    for position in [*range(80), size - 1]:
        for bit in range(8):
            records[position] ^= 1 << bit
            is_plain = module.checked_header(records, False) is not None
            assert is_plain is (12 <= position < 16), (position, bit)
            records[position] ^= 1 << bit


@BOTH
def test_partial_batch_or_trailing_bytes_are_not_plain(module):
    data = batch(b"a", b"b")
    for stop in range(len(data)):
        assert module.checked_header(memoryview(data)[:stop], False) is None
    for suffix in (b"\0", data[:30], data):
        assert module.checked_header(memoryview(data + suffix), False) is None


@BOTH
@pytest.mark.parametrize("size", [69, 1024, 1025])
def test_read_only_views_and_slices_are_accepted(module, size):
    data = bytes(of_size(size))
    within = memoryview(b"!" * 3 + data + b"!" * 5)[3:-5]
    assert module.checked_header(memoryview(data), False) is not None
    assert module.checked_header(within, False) == module.checked_header(
        memoryview(bytearray(data)), False
    )


@BOTH
def test_non_contiguous_views_are_refused(module):
    spread = bytearray(2 * len(batch(b"a")))
    spread[::2] = batch(b"a")
    view = memoryview(spread)[::2]
    with pytest.raises((BufferError, ValueError)):
        module.checked_header(view, False)
    header = module.checked_header(memoryview(bytes(view)), False)
    with pytest.raises((BufferError, TypeError, ValueError)):
        module.place(view, header, 1, 2)


@BOTH
@pytest.mark.parametrize("wrong", [None, 7, "a" * 70, [1] * 70])
def test_non_buffer_argument_is_refused(module, wrong):
    with pytest.raises(TypeError):
        module.checked_header(wrong, False)
    with pytest.raises(TypeError):
        module.place(wrong, read_batch_header(batch(b"a")), 1, 2)


@BOTH
@pytest.mark.parametrize(
    ("base_offset", "leader_epoch"),
    [(0, 0), (1, -1), (0x0102030405060708, 0x11121314), ((1 << 63) - 1, INT32_MAX), (-1, 5)],
)
def test_place_changes_only_base_offset_and_leader_epoch(module, base_offset, leader_epoch):
    data = batch(b"a", b"b", producer_id=7, producer_epoch=1, base_sequence=3)
    records = memoryview(bytearray(data))
    header = module.checked_header(records, False)
    placed = module.place(records, header, base_offset, leader_epoch)
    assert type(placed) is BatchHeader
    assert placed == read_batch_header(records)
    assert placed == header._replace(base_offset=base_offset, leader_epoch=leader_epoch)
    expected = struct.pack(">q", base_offset) + data[8:12] + struct.pack(">i", leader_epoch)
    assert bytes(records) == expected + data[16:]


@BOTH
@pytest.mark.parametrize(
    ("base_offset", "leader_epoch"),
    [(1 << 63, 0), (-(1 << 63) - 1, 0), (0, 1 << 31), (0, -(1 << 31) - 1), (0, 1 << 63)],
)
def test_numbers_out_of_range_are_refused(module, base_offset, leader_epoch):
    header = read_batch_header(batch(b"a"))
    with pytest.raises((OverflowError, struct.error)):
        module.place(memoryview(bytearray(batch(b"a"))), header, base_offset, leader_epoch)


@BOTH
@pytest.mark.parametrize(("base_offset", "leader_epoch"), [("1", 2), (1, None), (1.0, 2)])
def test_non_integer_argument_is_refused(module, base_offset, leader_epoch):
    header = read_batch_header(batch(b"a"))
    with pytest.raises((TypeError, struct.error)):
        module.place(memoryview(bytearray(batch(b"a"))), header, base_offset, leader_epoch)


@BOTH
def test_place_needs_a_writable_buffer_of_full_length(module):
    data = batch(b"a")
    header = read_batch_header(data)
    with pytest.raises((BufferError, TypeError)):
        module.place(memoryview(data), header, 1, 2)
    with pytest.raises((ValueError, struct.error)):
        module.place(memoryview(bytearray(7)), header, 1, 2)


WELL = {
    "one": batch_of(record("a")),
    "many": batch(*[b"value"] * 200),
    "long": batch(b"x" * 5000, b"y" * 70),
    "nothing in it": batch_of(record(None, key=None)),
    "headers": batch_of(record("a", headers=[("h", "v"), ("", None)]), record("b", offset=1)),
    "a later maximum": batch_of(record("a", time=300), max_timestamp=1_700_000_000_300),
    "no timestamps": batch_of(record("a"), record("b", offset=1), base_timestamp=-1),
    "wide numbers": batch_of(record("a", widths=5)),
}
BADLY = {
    "fewer records": batch_of(record("a" * 9), record("b", offset=1), count=3),
    "more records": batch_of(record("a"), record("b", offset=1), count=1),
    "bytes behind": batch_of(record("a"), tail=b"\0"),
    "a longer record": batch_of(record("a", longer=1), tail=b"\0"),
    "a shorter record": batch_of(record("a", longer=-1)),
    "no length": batch_of(record("a", length=0)),
    "a negative length": batch_of(record("a", length=-1)),
    "offsets from 1": batch_of(record("a", offset=1)),
    "an offset twice": batch_of(record("a"), record("b")),
    "a key without end": batch_of(record("a", key_length=99)),
    "a value without end": batch_of(record("a", value_length=(1 << 31) - 1)),
    "fewer headers": batch_of(record("a", header_count=1)),
    "less than no headers": batch_of(record("a", header_count=-1)),
    "a header without key": batch_of(record("a", headers=[(None, "v")])),
    "a timestamp before the base": batch_of(record("a"), record("b", offset=1, time=-1)),
    "a larger maximum": batch_of(record("a"), max_timestamp=1_700_000_000_001),
    "a smaller maximum": batch_of(record("a", time=1)),
    "time without end": batch_of(record("a", time=(1 << 63) - 1), max_timestamp=(1 << 63) - 1),
}


@BOTH
@pytest.mark.parametrize("records", WELL.values(), ids=WELL.keys())
def test_records_matching_the_header_are_plain(module, records):
    assert module.checked_header(memoryview(records), True) == read_batch_header(records)


@BOTH
@pytest.mark.parametrize("records", BADLY.values(), ids=BADLY.keys())
def test_records_contradicting_the_header_are_not_plain(module, records):
    assert module.checked_header(memoryview(records), True) is None
    assert module.checked_header(memoryview(records), False) == read_batch_header(records)


@BOTH
def test_compressed_records_are_not_inspected(module):
    records = memoryview(batch_of(packed=b"this is no lz4 frame", codec="lz4", count=2))
    assert module.checked_header(records, True) == read_batch_header(records)


@BOTH
@pytest.mark.parametrize("value", [None, "a", "x" * 100, "y" * 20_000])
def test_repeated_batch_size_is_checked_as_thoroughly(module, value):
    good = batch_of(record(value, key=None))
    assert module.checked_header(memoryview(good), True) is not None
    for at in [*range(HEADER_BYTES, HEADER_BYTES + 10), len(good) - 1]:
        for bit in range(8):
            damaged = bytearray(good)
            damaged[min(at, len(good) - 1)] ^= 1 << bit
            write_crc(damaged, 0)
            header = read_batch_header(damaged)
            is_plain = walks_plainly(
                bytes(damaged[HEADER_BYTES:]),
                count=1,
                base_timestamp=header.base_timestamp,
                max_timestamp=header.max_timestamp,
            )
            checked = module.checked_header(memoryview(damaged), True)
            assert checked == (header if is_plain else None), (at, bit)
