"""Messages of the client's errors."""

from __future__ import annotations

from wirebroker.client.errors import did_you_mean


def test_a_similar_name_is_suggested():
    assert did_you_mean("order", ["groups", "orders"]) == "; did you mean orders?"
    assert did_you_mean("order", ["billing"]) == ""


def test_the_names_that_are_compared_are_bounded():
    candidates = iter([f"name-{number}" for number in range(5000)])
    assert did_you_mean("name-x", candidates).startswith("; did you mean name-")
    assert next(candidates) == "name-1000"
    assert did_you_mean("x" * 256, ["x" * 256]) == ""
