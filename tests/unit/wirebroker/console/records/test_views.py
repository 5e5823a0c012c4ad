"""Views of keys and values."""

from __future__ import annotations

import pytest

from wirebroker.console.records.views import best_view, hex_view, json_view, text_view


@pytest.mark.parametrize(
    ("data", "kind", "text"),
    [
        (None, "null", ""),
        (b"", "text", ""),
        (b'{"a":[1,"\xc3\xa4"]}', "json", '{\n  "a": [\n    1,\n    "ä"\n  ]\n}'),
        (b"42", "text", "42"),
        (b"{not json", "text", "{not json"),
        (b"two\nlines\x1b[31m of a longer text", "text", "two\nlines\\x1b[31m of a longer text"),
        (b"\x00\x01\x02A", "hex", "00000000  00 01 02 41" + " " * 38 + "...A"),
        (b"\xff\xfe", "hex", "00000000  ff fe" + " " * 44 + ".."),
        ("ä".encode() * 3000, "text", "ä" * 3000),
        ("x" + "ä" * 3000, "text", "x" + "ä" * 3000),
    ],
)
def test_the_best_view_shows_most(data, kind, text):
    data = data.encode() if isinstance(data, str) else data
    assert best_view(data) == (kind, text)


def test_text_that_was_cut_in_a_character_is_text():
    assert best_view("größe".encode()[:-1] + b"\xc3")[0] == "text"


@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"a":NaN}', b"1e999", b"{} {}", b"\xff"])
def test_what_is_not_json_has_no_json_view(data):
    assert json_view(data) is None


def test_large_values_are_cut():
    assert json_view(b"[" + b"1," * (1 << 20) + b"1]") is None
    assert len(text_view(b"x" * (3 << 20))) == 1 << 20
    assert hex_view(bytes(100_000)).endswith("… 34,464 more bytes")


def test_a_lone_surrogate_can_be_encoded():
    view = json_view(rb'{"a": "\ud800"}')
    assert view is not None
    assert view.encode()
