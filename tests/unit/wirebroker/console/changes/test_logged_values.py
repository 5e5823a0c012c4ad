"""The values of a change in the audit log."""

from __future__ import annotations

import pytest

from tests.support.console.recorded_change import RecordedChange
from wirebroker.console.changes.kinds.table import CHANGES
from wirebroker.console.changes.making.values import logged_values

KIND = RecordedChange().kind
VALUES = {"topic": "orders", "note": "", "count": "1", "color": "g", "loud": "no", "secret": ""}


@pytest.mark.parametrize(
    ("values", "logged"),
    [
        ({}, {}),
        ({"secret": "x"}, {"secret": "(hidden)"}),
        ({"note": "a\n" + "\n" * 40_000 + "  b  \n"}, {"note": "a\nb"}),
        ({"note": " " * 40_000 + "b"}, {"note": "b"}),
        ({"note": "x" * 32_768}, {"note": "x" * 32_768}),
        ({"note": "x" * 40_000}, {"note": "x" * 32_768 + "… (40000 characters)"}),
    ],
)
def test_values_are_shortened_when_nothing_can_be_hidden(values, logged):
    assert logged_values(KIND, VALUES | values) == VALUES | logged


@pytest.mark.parametrize("field", ["key", "value", "headers"])
def test_of_a_record_the_log_has_the_begin(field):
    kind = CHANGES["produce-record"]
    values = {row.name: "" for row in kind.fields} | {field: "x" * 2000}
    assert logged_values(kind, values)[field] == "x" * 1000 + "… (2000 characters)"
