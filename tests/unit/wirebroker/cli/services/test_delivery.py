"""`wirebroker delivery cancel` and `deliver-now` with the kit's service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.cli.verbs import Verbs
from wirebroker.delivery import operations
from wirebroker.testing import Broker

if TYPE_CHECKING:
    from collections.abc import Iterator

VERBS = pytest.mark.parametrize("verb", ["cancel", "deliver-now"])
FLAGS = pytest.mark.parametrize("flags", [(), ("--yes",)])


@pytest.fixture
def broker() -> Iterator[Broker]:
    """Run a broker on which the record with the id `one` is pending."""
    with Broker() as running:
        running.create_topic("orders")
        running.delivery.start()
        headers = {"deliver-to": "orders", "deliver-after": "1h", "deliver-id": "one"}
        running.produce("deliver", "a book", headers=headers)
        assert running.delivery.pending_count() == 1
        yield running


@pytest.fixture
def verbs(broker: Broker, capsys: pytest.CaptureFixture[str]) -> Verbs:
    return Verbs(broker.bootstrap_servers, capsys)


@VERBS
@FLAGS
@pytest.mark.parametrize("flag", ["--id", "--entry"])
def test_an_empty_name_is_refused(
    verbs: Verbs, verb: str, flag: str, flags: tuple[str, ...]
) -> None:
    result = verbs.run("delivery", verb, flag, "", *flags)
    assert result.status == 2
    assert f"{flag} is empty" in result.err


@VERBS
@FLAGS
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--id", "typo"), "the service may not have read the record yet"),
        (("--entry", "typo"), "no entry typo is pending"),
    ],
)
def test_a_record_that_is_not_pending_is_an_error_in_a_dry_run_too(
    verbs: Verbs, verb: str, words: tuple[str, ...], reason: str, flags: tuple[str, ...]
) -> None:
    result = verbs.run("delivery", verb, *words, *flags)
    assert result.status == 1
    assert reason in result.err


def test_a_dry_run_changes_nothing_and_yes_does(broker: Broker, verbs: Verbs) -> None:
    (row,) = verbs.json("delivery", "pending")["records"]
    for words in (("--id", "one"), ("--entry", row["entry"])):
        assert "would cancel the record" in verbs.do("delivery", "cancel", *words).err
    assert broker.delivery.pending_count() == 1
    assert verbs.do("delivery", "cancel", "--id", "one", "--yes").out.endswith(
        "one: sent to the service\n"
    )
    assert broker.delivery.pending_count() == 0


@pytest.fixture(params=["MOST_SEARCHED_RECORDS", "MOST_SEARCHED_BYTES"])
def _low_bound(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, request.param, 0)


@pytest.mark.usefixtures("_low_bound")
@pytest.mark.parametrize(("name", "count"), [("one", 0), ("typo", 1)])
def test_a_long_topic_is_not_searched_for_an_id(
    broker: Broker, verbs: Verbs, name: str, count: int
) -> None:
    assert "if such a record is pending" in verbs.do("delivery", "cancel", "--id", name).err
    result = verbs.do("delivery", "cancel", "--id", name, "--yes")
    assert "sent to the service; it takes effect if such a record is pending" in result.out
    assert broker.delivery.pending_count() == count
