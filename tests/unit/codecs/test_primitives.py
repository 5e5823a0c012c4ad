import base64
import itertools
import struct
import uuid

import pytest

from wirebroker.codecs import primitives
from wirebroker.codecs.errors import MalformedFrameError

UVARINTS = [
    (0, "00"),
    (1, "01"),
    (127, "7f"),
    (128, "8001"),
    (300, "ac02"),
    (16383, "ff7f"),
    (16384, "808001"),
    (2**21 - 1, "ffff7f"),
    (2**21, "80808001"),
    (2**31 - 1, "ffffffff07"),
    (2**32 - 1, "ffffffff0f"),
]


@pytest.mark.parametrize(("value", "encoded"), UVARINTS)
def test_a_uvarint_has_seven_bits_a_byte_lowest_first(value: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert primitives.uvarint(value) == data
    assert primitives.read_uvarint(b"\xff" + data + b"\xff", 1) == (value, 1 + len(data))
    assert primitives.read_uvarint(memoryview(data), 0) == (value, len(data))


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (-1, "01"), (1, "02"), (-64, "7f"), (64, "8001"), (2**31 - 1, "feffffff0f")],
)
def test_a_varint_is_zigzag(value: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert primitives.varint(value) == data
    assert primitives.read_varint(data, 0) == (value, len(data))
    assert primitives.read_varlong(data, 0) == (value, len(data))


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 2**40, -(2**40) - 1])
def test_a_varlong_holds_64_bits(value: int) -> None:
    data = primitives.varint(value)
    assert primitives.read_varlong(data, 0) == (value, len(data))


@pytest.mark.parametrize("value", [-(2**31), 2**31 - 1])
def test_a_varint_holds_32_bits(value: int) -> None:
    assert primitives.read_varint(primitives.varint(value), 0)[0] == value


@pytest.mark.parametrize("encoded", ["", "80", "8080", "ffffffff", "ffffffff10", "808080808000"])
def test_a_uvarint_that_is_cut_off_or_too_long_is_refused(encoded: str) -> None:
    with pytest.raises(MalformedFrameError):
        primitives.read_uvarint(bytes.fromhex(encoded), 0)
    with pytest.raises(MalformedFrameError):
        primitives.read_varint(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("encoded", ["", "80", "ff" * 9, "ff" * 9 + "02", "80" * 10 + "00"])
def test_a_varlong_that_is_cut_off_or_too_long_is_refused(encoded: str) -> None:
    with pytest.raises(MalformedFrameError):
        primitives.read_varlong(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("text", ["", "topic", "ä", "x" * 127, "y" * 32767])
def test_strings_round_trip(text: str) -> None:
    for encode, read in (
        (primitives.string, primitives.read_string),
        (primitives.nullable_string, primitives.read_nullable_string),
        (primitives.compact_string, primitives.read_compact_string),
        (primitives.compact_nullable_string, primitives.read_compact_nullable_string),
    ):
        data = encode(text)
        assert read(b"?" + data + b"?", 1) == (text, 1 + len(data))


def test_null_is_read_only_where_it_may_be() -> None:
    assert primitives.nullable_string(None) == b"\xff\xff"
    assert primitives.compact_nullable_string(None) == b"\x00"
    assert primitives.read_nullable_string(b"\xff\xff", 0) == (None, 2)
    assert primitives.read_compact_nullable_string(b"\x00", 0) == (None, 1)
    with pytest.raises(MalformedFrameError, match="null"):
        primitives.read_string(b"\xff\xff", 0)
    with pytest.raises(MalformedFrameError, match="null"):
        primitives.read_compact_string(b"\x00", 0)


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"\x00\x01", b"\xff\xfe", b"\x80\x00a", b"\x00\x01\xff"]
)
def test_a_bad_string_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedFrameError):
        primitives.read_nullable_string(data, 0)


@pytest.mark.parametrize("data", [b"", b"\x02", b"\xff\xff\xff\xff\x0f", b"\x02\xff"])
def test_a_bad_compact_string_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedFrameError):
        primitives.read_compact_nullable_string(data, 0)


def test_an_array_count_is_compared_with_the_bytes_that_remain() -> None:
    data = struct.pack(">i", 3) + bytes(12)
    assert primitives.read_array_count(data, 0, compact=False, element_bytes=4) == (3, 4)
    with pytest.raises(MalformedFrameError):
        primitives.read_array_count(data, 0, compact=False, element_bytes=5)
    with pytest.raises(MalformedFrameError):
        primitives.read_array_count(b"\xff\xff\xff\xff\x0f", 0, compact=True, element_bytes=1)


def test_an_array_count_of_minus_one_is_null_and_below_is_refused() -> None:
    assert primitives.read_array_count(b"\xff" * 4, 0, compact=False, element_bytes=1) == (-1, 4)
    assert primitives.read_array_count(b"\x00", 0, compact=True, element_bytes=1) == (-1, 1)
    with pytest.raises(MalformedFrameError):
        primitives.read_array_count(b"\xff\xff\xff\xfe", 0, compact=False, element_bytes=1)
    with pytest.raises(MalformedFrameError):
        primitives.read_array_count(b"\x00\x00\x00", 0, compact=False, element_bytes=1)


def test_tagged_fields_are_stepped_over_or_listed() -> None:
    data = b"\x02\x00\x01a\x05\x00?"
    assert primitives.skip_tagged_fields(data, 0) == 6
    assert primitives.read_tagged_fields(data, 0) == ([(0, 3, 4), (5, 6, 6)], 6)
    assert primitives.skip_tagged_fields(b"\x00", 0) == 1


def test_two_million_empty_tagged_fields_are_refused_at_once() -> None:
    data = primitives.uvarint(2_000_000) + b"\x00\x00" * 2_000_000
    with pytest.raises(MalformedFrameError, match="2000000 tagged fields"):
        primitives.skip_tagged_fields(data, 0)


@pytest.mark.parametrize("data", [b"", b"\x01", b"\x01\x00", b"\x01\x00\x02a", b"\x02\x00\x00"])
def test_bad_tagged_fields_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedFrameError):
        primitives.skip_tagged_fields(data, 0)


def test_a_uuid_is_written_as_22_characters_without_padding() -> None:
    assert primitives.uuid_text(bytes(16)) == "A" * 22
    assert primitives.uuid_text(bytes(15) + b"\x01") == "AAAAAAAAAAAAAAAAAAAAAQ"
    value = uuid.uuid4().bytes
    text = primitives.uuid_text(value)
    assert text == base64.urlsafe_b64encode(value).decode().rstrip("=")
    assert primitives.uuid_from_text(text) == value
    assert primitives.uuid_from_text(text + "==") == value


@pytest.mark.parametrize(
    "text", ["", "A" * 21, "A" * 23, "A" * 21 + "+", "A" * 21 + "\n", "ä" * 22]
)
def test_invalid_uuid_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a uuid"):
        primitives.uuid_from_text(text)


def test_a_random_uuid_is_drawn_again_while_its_text_starts_with_a_dash() -> None:
    draws = itertools.chain([b"\xf8" + bytes(15), b"\xfb" + bytes(15)], [b"\xff" * 16])
    value = primitives.random_uuid(lambda length: next(draws)[:length])
    assert primitives.uuid_text(value) == "________T_-__________w"
    assert uuid.UUID(bytes=value).version == 4
    assert not any(
        primitives.uuid_text(primitives.random_uuid()).startswith("-") for _ in range(500)
    )
