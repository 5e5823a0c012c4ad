"""JSONPath conditions."""

from __future__ import annotations

import pytest

from wirebroker.console.records.json_path import parse_json_path

ORDER = {
    "order": {"id": 42, "customer": "Smith & Sons", "paid": True, "note": None},
    "items": [{"sku": "a", "price": 5}, {"sku": "b", "price": 12.5}],
    "a b": {"it's": 1},
    "tags": ["red", "blue"],
    "größe": 1,
}


@pytest.mark.parametrize(
    "path",
    [
        "$",
        "$.order.id",
        "$.order.note",
        "$.order.id == 42",
        "$.order.id==42.0",
        "$.order.id != 41",
        "$.order.id >= 42",
        "  $.order.id < 43  ",
        '$.order.customer == "Smith & Sons"',
        "$.order.customer == 'Smith & Sons'",
        "$.order.customer contains 'Sons'",
        "$.order.customer > 'A'",
        "$.order.paid == true",
        "$.order.note == null",
        "$['a b']['it\\'s'] == 1",
        '$["a b"]["it\'s"] == 1',
        "$.items[0].sku == 'a'",
        "$.items[-1].sku == 'b'",
        "$.items[*].price > 12",
        "$.items.*.price > 12",
        "$.order.* == 42",
        "$..price > 12",
        "$..['price'] > 12",
        "$..* == 'blue'",
        "$.items[?@.price > 10].sku == 'b'",
        "$.items[?(@.price > 10)].sku",
        "$.items[?(@.sku)].price == 5",
        "$.tags contains 'red'",
        "$.tags[ 1 ] == 'blue'",
        "$.größe == 1",
    ],
)
def test_conditions_that_hold(path):
    assert parse_json_path(path).holds(ORDER)


@pytest.mark.parametrize(
    "path",
    [
        "$.missing",
        "$.order.missing != 1",
        "$.order.id == '42'",
        "$.order.id < 42",
        "$.order.paid == 1",
        "$.order.note == 0",
        "$.order.customer < 5",
        "$.order.id contains 4",
        "$.order.paid > 0",
        "$.items[2]",
        "$.items[-3]",
        "$.items.sku",
        "$.items[*].price > 13",
        "$..price > 13",
        "$.items[?@.price > 20]",
        "$.items[?@.price > 10].sku == 'a'",
        "$.tags contains 'green'",
        "$.order.id.more",
    ],
)
def test_conditions_that_do_not_hold(path):
    assert not parse_json_path(path).holds(ORDER)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", r"instead of \$"),
        ("order.id", r"instead of \$"),
        ("$.", "instead of a name"),
        ("$.a b", "instead of the end or a comparison"),
        ("$.a == ", "instead of a number"),
        ("$.a == x", "instead of a number"),
        ("$.a == 1 2", "instead of the end"),
        ("$.a == 1.2.3", "instead of a number"),
        ("$['a", "instead of an index"),
        ("$[0", "instead of ]"),
        ("$[0:2]", "instead of ]"),
        ("$..[0]", "instead of a name"),
        ("$.a[?(@.b]", r"instead of \)"),
        ("$.a[?b]", "instead of @"),
        ("$.a == '\\x'", "JSON's escapes"),
        ("$." + "a" * 1000, "at most 1000 characters"),
    ],
)
def test_a_path_that_cannot_be_parsed_says_where(path, reason):
    with pytest.raises(ValueError, match=reason):
        parse_json_path(path)


def test_nested_filters_are_bounded():
    assert parse_json_path("$" + "[?@" * 8 + "]" * 8)
    assert parse_json_path("$" + "[?@]" * 9)
    for levels in (9, 300):
        with pytest.raises(ValueError, match="at most"):
            parse_json_path("$" + "[?@" * levels)


def test_nodes_are_bounded():
    wide = {"a": [[0] * 100 for _ in range(1000)]}
    assert not parse_json_path("$..* == 1").holds(wide)
    condition = parse_json_path("$.a[?@[?@ == 1]]")
    budget = [10_000]
    assert not condition.holds_within(wide, budget)
    assert budget[0] < 0
