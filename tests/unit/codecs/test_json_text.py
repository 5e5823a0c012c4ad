"""Whatever is wrong with a JSON text is a ValueError."""

from __future__ import annotations

import pytest

from wirebroker.codecs.json_text import parse_json

DEPTH = 200_000


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        b"\xff",
        "[" * DEPTH,
        "[" * DEPTH + "]" * DEPTH,
        '{"a":' * DEPTH + "1" + "}" * DEPTH,
        "1" * 5_000,
    ],
    ids=lambda text: repr(text[:6]),
)
def test_what_is_not_json_is_a_value_error(text: str | bytes):
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


def test_a_value_is_returned():
    assert parse_json(b'{"version":0,"brokerEpoch":12}') == {"version": 0, "brokerEpoch": 12}
