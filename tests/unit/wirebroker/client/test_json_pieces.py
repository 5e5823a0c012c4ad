"""Records as lines of JSON in pieces are the same as in one piece."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from wirebroker.client.records import json_lines
from wirebroker.client.records.json_lines import (
    is_utf8,
    json_line_of,
    json_line_pieces,
    text_pieces,
)
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.codecs.records.record import Record

PLACE = TopicPartition("orders", 3)
PIECE = json_lines._PIECE_BYTES

_BYTES = st.none() | st.binary() | st.text().map(lambda text: text.encode("utf-8", "replace"))
_NAMES = st.text(max_size=20) | st.binary().map(
    lambda name: name.decode("utf-8", "surrogateescape")
)


@given(_BYTES, _BYTES, st.lists(st.tuples(_NAMES, _BYTES), max_size=4))
def test_pieces_are_the_line(key, value, headers):
    record = Record(5, 1000, key, value, headers)
    assert b"".join(json_line_pieces(PLACE, record)) == json_line_of(PLACE, record)


@given(st.integers(PIECE - 5, 2 * PIECE + 5), st.sampled_from(["é", "€", "😀", "\x00", '"']))
def test_characters_at_the_ends_of_pieces_stay_whole(length, character):
    text = "x" * length + character * 3
    data = text.encode()
    assert "".join(text_pieces(data)) == text
    record = Record(5, 1000, None, data)
    pieces = list(json_line_pieces(PLACE, record))
    assert b"".join(pieces) == json_line_of(PLACE, record)
    assert max(map(len, pieces)) <= 6 * PIECE


@given(st.binary(min_size=1, max_size=4), st.integers(PIECE - 4, PIECE + 1))
def test_other_bytes_are_base64(tail, length):
    data = b"x" * length + tail
    try:
        data.decode()
    except UnicodeDecodeError:
        is_text = False
    else:
        is_text = True
    assert is_utf8(data) is is_text
    line = b"".join(json_line_pieces(PLACE, Record(0, 0, None, data)))
    assert json.loads(line) == json.loads(json_line_of(PLACE, Record(0, 0, None, data)))
