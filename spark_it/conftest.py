"""Fixtures: one Spark session for all tests; brokers and topic names as in compat_tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.conftest import broker, broker_kind, start_broker, topic
from spark_it.tools import session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

__all__ = ["broker", "broker_kind", "spark", "start_broker", "topic"]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    running = session.start(tmp_path_factory.mktemp("spark"))
    yield running
    session.stop(running)
