"""Spark's own suites for its Kafka connector pass."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from spark_it.suites import run
from tests.support.brokers.brokers import make_broker

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.java,
    pytest.mark.timeout(run.LIMIT_S * len(run.SUITES) + 300),
]


@pytest.fixture(scope="module")
def outcomes(
    broker_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, list[run.Outcome]]]:
    directory = tmp_path_factory.mktemp("suites")
    broker = make_broker(broker_kind, directory / "broker", run.BROKER_SETTINGS)
    with contextlib.ExitStack() as stack:
        stack.callback(broker.stop)
        broker.start()
        is_ours = broker_kind == "wirebroker"
        yield run.run_suites(run.SUITES, broker.bootstrap, directory, wirebroker=is_ours)


@pytest.mark.parametrize("suite", run.SUITES)
def test_spark_connector_suite_passes(outcomes: dict[str, list[run.Outcome]], suite: str) -> None:
    suite_outcomes = outcomes[suite]
    assert not [outcome for outcome in suite_outcomes if outcome.result == "failed"]
    assert any(outcome.result == "passed" for outcome in suite_outcomes)
