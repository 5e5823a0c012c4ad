"""Fixture: a broker with frequent checks for expired transactions and sessions of a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.transactions.settings import SETTINGS
from tests.support.brokers.brokers import Broker, broker_under_test

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def transaction_broker(
    broker_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    with broker_under_test(
        broker_kind, tmp_path_factory.mktemp("transaction-broker"), SETTINGS
    ) as running:
        yield running
