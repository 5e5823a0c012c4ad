"""librdkafka's and kafka-python's own tests of transactions and of ACLs pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.suites import kafka_python, librdkafka
from compat_tests.suites.outcomes import failed

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.conftest import StartBroker

pytestmark = pytest.mark.java


@pytest.mark.nightly  # building the suite takes minutes
@pytest.mark.timeout(1500)
@pytest.mark.parametrize(
    ("number", "settings"),
    [
        *((number, librdkafka.BROKER_SETTINGS) for number in librdkafka.TRANSACTION_TESTS),
        *((number, librdkafka.SECURITY_SETTINGS) for number in librdkafka.SECURITY_TESTS),
    ],
    ids=[*librdkafka.TRANSACTION_TESTS, *librdkafka.SECURITY_TESTS],
)
def test_librdkafka_suite_test_passes(
    start_broker: StartBroker, number: str, settings: dict[str, str], tmp_path: Path
) -> None:
    missing = librdkafka.missing_programs()
    if missing:
        pytest.skip(f"librdkafka's tests are built with {', '.join(missing)}: not on PATH")
    broker = start_broker(settings)
    outcomes = librdkafka.run(number, broker.bootstrap, tmp_path)
    assert not failed(outcomes)
    assert any(outcome.result == "passed" for outcome in outcomes), outcomes


@pytest.mark.nightly
@pytest.mark.timeout(kafka_python.LIMIT_S + 120)
def test_kafka_python_transaction_tests_pass(start_broker: StartBroker, tmp_path: Path) -> None:
    broker = start_broker(kafka_python.BROKER_SETTINGS)
    outcomes = kafka_python.run(kafka_python.TRANSACTION_TESTS, broker.bootstrap, tmp_path)
    assert not failed(outcomes)
    assert any(outcome.result == "passed" for outcome in outcomes), outcomes


@pytest.mark.nightly
@pytest.mark.timeout(kafka_python.LIMIT_S + 120)
def test_kafka_python_suite_passes(broker_kind: str, tmp_path: Path) -> None:
    broker = kafka_python.broker_for_all(broker_kind, tmp_path / "broker")
    broker.start()
    try:
        outcomes = kafka_python.run(kafka_python.SECURITY_TESTS, broker.bootstrap, tmp_path)
    finally:
        broker.stop()
    assert not failed(outcomes)
    assert sum(outcome.result == "passed" for outcome in outcomes) > 50, outcomes
