"""Messages of the client's errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wirebroker.client.errors import ClientError, check_all, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_a_similar_name_is_suggested():
    assert did_you_mean("order", ["groups", "orders"]) == "; did you mean orders?"
    assert did_you_mean("order", ["billing"]) == ""


def test_the_names_that_are_compared_are_bounded():
    candidates = iter([f"name-{number}" for number in range(5000)])
    assert did_you_mean("name-x", candidates).startswith("; did you mean name-")
    assert next(candidates) == "name-1000"
    assert did_you_mean("x" * 256, ["x" * 256]) == ""


@pytest.mark.parametrize(
    ("codes", "end"),
    [
        ([29], "TOPIC_AUTHORIZATION_FAILED)"),
        ([0, 29], "; 1 other move started"),
        ([29, 0, 0], "; 2 other moves started"),
        ([0, 29, 29, 0], "; 2 other moves started"),
    ],
)
def test_an_error_of_several_results_says_how_many_were_done(codes, end):
    rows = [(code, f"orders-{number} cannot be moved", None) for number, code in enumerate(codes)]
    with pytest.raises(ClientError) as caught:
        check_all(rows, "other move", "started")
    assert str(caught.value).startswith(f"orders-{codes.index(29)} cannot be moved: ")
    assert str(caught.value).endswith(end)
    assert caught.value.code == 29


def test_results_without_errors_are_accepted():
    read: list[str] = []

    def results() -> Iterator[tuple[int, str, str | None]]:
        yield 0, "orders-0 cannot be moved", None
        read.append("all")

    check_all(results(), "other move", "started")
    assert read == ["all"]
