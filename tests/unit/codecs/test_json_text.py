"""JSON that readers must parse, and values that must not be read as numbers."""

from __future__ import annotations

from decimal import Decimal

import pytest

from wirebroker.codecs.json_text import json_integer, parse_json

REFUSED = {
    "arrays": "[" * 200_000,
    "closed arrays": "[" * 200_000 + "]" * 200_000,
    "objects": '{"a":' * 200_000,
    "NaN": '{"a": NaN}',
    "Infinity": "[Infinity]",
    "negative infinity": "-Infinity",
    "a fraction beyond all": "1e400",
    "an integer of 5,000 digits": "9" * 5000,
    "half a character": b'"\xff"',
    "nothing": "",
    "NULs": b"\0" * 60,
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_invalid_json_text_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


def test_values_are_those_of_the_text():
    text = b'{"a": [1, 2.5, -3e2, null, true, "\xc3\xa9"]}'
    assert parse_json(text) == {"a": [1, 2.5, -300.0, None, True, "é"]}
    assert parse_json("[0.1]", fraction=Decimal) == [Decimal("0.1")]
    assert parse_json('{"a": 1, "a": 2}', fields=list) == [("a", 1), ("a", 2)]


@pytest.mark.parametrize("value", [True, None, "1", 1.0, -2, 1 << 31, 10**30, [], {}])
def test_a_field_of_another_type_or_size_is_no_integer(value):
    with pytest.raises(ValueError, match="is not an integer from -1 to 2147483647"):
        json_integer(value, -1, (1 << 31) - 1)


def test_integer_bounds_are_inclusive():
    assert [json_integer(number, -1, 5) for number in (-1, 0, 5)] == [-1, 0, 5]
