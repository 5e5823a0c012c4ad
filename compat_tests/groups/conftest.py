"""Fixtures: a broker that allows sessions of a second, and a group for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.groups.group import SESSION_MS, Group, group_on
from tests.support.brokers.brokers import Broker, broker_under_test

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# The common profile has no rebalance delay; with short sessions a lost member expires soon.
SETTINGS = {
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": str(SESSION_MS // 10),
    "offsets.topic.num.partitions": "4",
}


@pytest.fixture(scope="session")
def group_broker(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with broker_under_test(
        broker_kind, tmp_path_factory.mktemp("group-broker"), SETTINGS
    ) as running:
        yield running


@pytest.fixture
def group(group_broker: Broker, topic: str, tmp_path: Path) -> Iterator[Group]:
    """Return a group without members, on a topic without records."""
    with group_on(group_broker.bootstrap, topic, tmp_path) as new_group:
        yield new_group
