"""librdkafka's and kafka-python's own tests of transactions pass."""

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
@pytest.mark.parametrize("number", librdkafka.TRANSACTION_TESTS)
def test_librdkafkas_own_test_passes(
    start_broker: StartBroker, number: str, tmp_path: Path
) -> None:
    missing = librdkafka.missing_programs()
    if missing:
        pytest.skip(f"librdkafka's tests are built with {', '.join(missing)}: not on PATH")
    broker = start_broker(librdkafka.BROKER_SETTINGS)
    found = librdkafka.run(number, broker.bootstrap, tmp_path)
    assert not failed(found)
    assert any(one.result == "passed" for one in found), found


@pytest.mark.long
@pytest.mark.timeout(kafka_python.LIMIT_S + 120)
def test_kafka_pythons_own_tests_of_transactions_pass(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    broker = start_broker(kafka_python.BROKER_SETTINGS)
    found = kafka_python.run(kafka_python.TRANSACTION_TESTS, broker.bootstrap, tmp_path)
    assert not failed(found)
    assert any(one.result == "passed" for one in found), found
