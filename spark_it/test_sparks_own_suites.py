"""Spark's own suites for its Kafka connector pass; see suites/run.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_it.suites import run

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.conftest import StartBroker

pytestmark = [pytest.mark.long, pytest.mark.java, pytest.mark.timeout(run.LIMIT_S + 300)]


@pytest.mark.parametrize("suite", run.SUITES)
def test_sparks_own_suite_passes(
    start_broker: StartBroker, broker_kind: str, suite: str, tmp_path: Path
) -> None:
    broker = start_broker(run.BROKER_SETTINGS)
    found = run.run_suite(suite, broker.bootstrap, tmp_path, wirebroker=broker_kind == "wirebroker")
    assert not [one for one in found if one.result == "failed"]
    assert any(one.result == "passed" for one in found)
