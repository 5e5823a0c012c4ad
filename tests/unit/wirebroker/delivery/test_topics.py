"""What the service knows of topics that change while it runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaException

from wirebroker.base.clock import SystemClock
from wirebroker.delivery.service import topics as topics_module
from wirebroker.delivery.service.topics import ClusterTopics
from wirebroker.testing import Broker


class Admin:
    """A cluster whose topics have these numbers of partitions."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.requests = 0

    def list_topics(self, **_options: object) -> Any:
        self.requests += 1
        known = {
            name: SimpleNamespace(partitions=dict.fromkeys(range(count)), error=None)
            for name, count in self.counts.items()
        }
        return SimpleNamespace(topics=known)


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> Admin:
    admin = Admin()
    monkeypatch.setattr(topics_module, "AdminClient", lambda _settings: admin)
    return admin


def test_a_topic_that_was_just_created_is_found(admin: Admin) -> None:
    topics = ClusterTopics({}, SystemClock())
    topics.begin_transaction()
    assert topics.partition_count("orders") == 0
    admin.counts["orders"] = 3
    topics.begin_transaction()
    assert topics.partition_count("orders") == 3


def test_a_partition_that_was_just_added_is_found(admin: Admin) -> None:
    admin.counts["orders"] = 1
    topics = ClusterTopics({}, SystemClock())
    assert topics.partition_count("orders") == 1
    admin.counts["orders"] = 2
    topics.begin_transaction()
    assert topics.partition_count("orders", at_least=2) == 2


def test_missing_topics_cost_one_request_for_each_transaction(admin: Admin) -> None:
    topics = ClusterTopics({}, SystemClock())
    topics.begin_transaction()
    assert [topics.partition_count(f"missing-{n}") for n in range(100)] == [0] * 100
    assert admin.requests == 1


def test_a_connection_that_breaks_is_an_error_and_not_an_offset() -> None:
    with Broker() as broker:
        broker.create_topic("pending", partitions=2)
        topics = ClusterTopics({"bootstrap.servers": broker.bootstrap_servers}, SystemClock())
        assert topics.ends("pending", [0, 1]) == {0: 0, 1: 0}
        broker.faults.disconnect("LIST_OFFSETS").times(1)
        with pytest.raises(KafkaException, match=r"no end offsets of partitions \[0, 1\]"):
            topics.ends("pending", [0, 1])
