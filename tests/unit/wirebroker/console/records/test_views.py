"""Views of keys and values."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from wirebroker.console.records import views
from wirebroker.console.records.views import hex_view, json_view, name_view, text_view
from wirebroker.console.view.record_rows import byte_views


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
    found = byte_views(data, -1 if data is None else len(data))
    if kind == "json":
        assert found.json == text
    else:
        assert found.kind == kind
        assert {"null": "", "text": found.text, "hex": found.hex}[kind] == text


def test_text_that_was_cut_in_a_character_is_text():
    assert byte_views("größe".encode()[:-1] + b"\xc3", 100).kind == "text"


def test_json_nested_deeper_than_64_levels_has_no_json_view():
    assert json_view(b"[" * 64 + b"1" + b"]" * 64) is not None
    assert json_view(b"[" * 65 + b"1" + b"]" * 65) is None
    assert json_view(b'{"a":' * 65 + b"1" + b"}" * 65) is None


def test_json_that_indents_make_too_large_is_not_built(monkeypatch):
    monkeypatch.setattr(views, "_MOST_JSON_CHARACTERS", 10_000)
    data = b"[" * 60 + json.dumps(["x"] * 10_000).encode() + b"]" * 60
    tracemalloc.start()
    try:
        assert json_view(data) is None
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


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


def test_bytes_of_a_headers_name_that_are_not_text_are_escaped():
    assert name_view("trace\udcff\x1b") == "trace\\xff\\x1b"
