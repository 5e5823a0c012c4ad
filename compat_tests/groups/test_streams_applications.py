"""Kafka Streams with group.protocol=streams (KIP-1071), exactly once, while processes are killed.

Words are counted over a repartition topic, lines by window and by sum, and joined with a table. Two
instances of two threads share the tasks; standby tasks keep copies of the state. The results are
exact, whatever is killed.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from compat_tests.clients.message import WAIT_S
from compat_tests.groups.streams_application import (
    PARTITIONS,
    PATIENCE_S,
    SETTINGS,
    Application,
    Input,
    check_results,
    described,
    is_stable,
    tasks_of,
)
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.conftest import StartBroker
    from tests.support.brokers.brokers import Broker

# Lines, a third of them before each fault.
LINES = 3_000


@pytest.fixture
def application(
    start_broker: StartBroker, topic: str, tmp_path: Path
) -> Iterator[tuple[Broker, Application, str]]:
    broker = start_broker(SETTINGS)
    with contextlib.closing(Application(broker.bootstrap, topic, tmp_path)) as running:
        yield broker, running, topic


@pytest.mark.shows("streams groups", "kafka-streams", "exactly_once_v2")
@pytest.mark.java
@pytest.mark.long
@pytest.mark.timeout(600)
def test_application_is_exact_when_instances_and_broker_are_killed(
    application: tuple[Broker, Application, str],
) -> None:
    broker, running, group_id = application
    given = Input(broker.bootstrap, group_id)
    first = running.start()
    running.wait_for(given.write(LINES // 3))
    second = running.start()
    eventually(lambda: is_stable(described(broker.bootstrap, group_id), 4), timeout_s=PATIENCE_S)
    group = described(broker.bootstrap, group_id)
    expected = [(name, partition) for name in ("0", "1") for partition in range(PARTITIONS)]
    assert tasks_of(group, "active_tasks") == expected
    assert tasks_of(group, "standby_tasks") == expected
    eventually(lambda: len(running.hosts(second, 2)) == 2, timeout_s=PATIENCE_S)
    assert all(active and standby for active, standby in running.hosts(second, 2).values())
    running.kill(first)
    running.wait_for(given.write(LINES // 3))
    third = running.start()
    broker.kill9()
    broker.start()
    running.wait_for(given.write(LINES // 3))
    eventually(lambda: is_stable(described(broker.bootstrap, group_id), 4), timeout_s=PATIENCE_S)
    running.end(second, third)
    eventually(
        lambda: described(broker.bootstrap, group_id).group_state == "Empty", timeout_s=WAIT_S
    )
    while running.read():
        pass
    check_results(running.written, given)


@pytest.mark.java
@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_application_is_exact_when_an_instance_is_suspended(
    application: tuple[Broker, Application, str],
) -> None:
    broker, running, group_id = application
    given = Input(broker.bootstrap, group_id)
    first, second = (running.start() for _ in range(2))
    running.wait_for(given.write(LINES // 3))
    eventually(lambda: is_stable(described(broker.bootstrap, group_id), 4), timeout_s=PATIENCE_S)
    running.stop(first)
    eventually(lambda: is_stable(described(broker.bootstrap, group_id), 2), timeout_s=PATIENCE_S)
    running.wait_for(given.write(LINES // 3))
    running.resume(first)
    eventually(lambda: is_stable(described(broker.bootstrap, group_id), 4), timeout_s=PATIENCE_S)
    running.wait_for(given.write(LINES // 3))
    running.end(first, second)
    while running.read():
        pass
    check_results(running.written, given)


@pytest.mark.java
@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_application_is_exact_when_it_changes_its_protocol_and_back(
    application: tuple[Broker, Application, str],
) -> None:
    """Kafka Streams changes the protocol only while no instance runs."""
    broker, running, group_id = application
    given = Input(broker.bootstrap, group_id)
    for protocol in ("classic", "streams", "classic"):
        instances = [running.start(protocol) for _ in range(2)]
        running.wait_for(given.write(LINES // 3))
        running.end(*instances)
    while running.read():
        pass
    check_results(running.written, given)
