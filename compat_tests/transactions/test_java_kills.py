"""A broker killed under Java's transactional producers, whose epoch rises with each transaction.

pytest compat_tests/transactions/test_java_kills.py --kills 100 --seed 7      a quarter of them here

Unlike librdkafka's they use transaction.version 2 (KIP-890): if a kill loses the response to a
commit, the retry has an outdated epoch. In the end read_committed readers must see exactly each
producer's committed transactions in every topic, in order.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest

from compat_tests.support import topics
from compat_tests.transactions.java_load import JavaLoad, read_committed
from compat_tests.transactions.settings import SETTINGS
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from compat_tests.conftest import StartBroker

PRODUCERS = 2
TOPICS = 3
SHORTEST_LIFE_S, LONGEST_LIFE_S = 0.05, 1.5

pytestmark = pytest.mark.java


def test_only_complete_committed_java_transactions_are_read(
    start_broker: StartBroker, topic: str, request: pytest.FixtureRequest
) -> None:
    choice = random.Random(request.config.getoption("--seed"))
    kills = max(1, int(request.config.getoption("--kills", default=12)) // 4)
    broker = start_broker(SETTINGS)
    names = [f"{topic}-{number}" for number in range(TOPICS)]
    for name in names:
        topics.create(broker.bootstrap, name)
    loads = [
        JavaLoad(broker.bootstrap, names, number, str(choice.random())).start()
        for number in range(PRODUCERS)
    ]
    try:
        for _ in range(kills):
            wait_for_a_commit(loads)
            time.sleep(choice.uniform(SHORTEST_LIFE_S, LONGEST_LIFE_S))  # any moment
            broker.kill9()
            broker.start()
    finally:
        for load in loads:
            load.finish()
    aborted = sum(load.aborted for load in loads)
    errors = [error for load in loads for error in load.errors]
    counts = f"{sum(load.count for load in loads)} transactions, {aborted} aborted"
    print(f"\n{kills} kills, {counts}, errors {errors}")  # noqa: T201
    for name in names:
        values = read_committed(broker.bootstrap, name)
        for load in loads:
            values_of_load = [value for value in values if value.startswith(load.name.encode())]
            assert values_of_load == load.committed


def wait_for_a_commit(loads: list[JavaLoad]) -> None:
    """Wait for another commit: a kill without load proves nothing."""
    before = sum(len(load.committed) for load in loads)
    eventually(lambda: sum(len(load.committed) for load in loads) > before)
