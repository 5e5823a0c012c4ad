"""What the service knows of topics that change while it runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.wirebroker.delivery.test_instance import SetClock
from wirebroker.base.clock import SystemClock
from wirebroker.delivery.service import topics as topics_module
from wirebroker.delivery.service.topics import ClusterTopics

if TYPE_CHECKING:
    from collections.abc import Collection


class Admin:
    """A cluster whose topics have these numbers of partitions."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.requests = 0
        self.denied: set[str] = set()
        # Topics of requests for rights.
        self.checked: list[list[str]] = []

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

    def denied_topics(_admin: Admin, names: Collection[str]) -> set[str]:
        admin.checked.append(sorted(names))
        return admin.denied & set(names)

    monkeypatch.setattr(topics_module, "AdminClient", lambda _settings: admin)
    monkeypatch.setattr(topics_module, "denied_topics", denied_topics)
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


def test_the_right_to_write_is_asked_for_again_with_the_counts(admin: Admin) -> None:
    clock = SetClock()
    topics = ClusterTopics({}, clock)
    admin.counts = {"orders": 1, "bills": 1}
    admin.denied = {"bills"}
    for _ in range(2):
        assert topics.partition_count("orders") == topics.partition_count("bills") == 1
        assert [topics.may_write(name) for name in ("orders", "bills")] == [True, False]
    assert admin.checked == [[], ["orders"], ["bills"]]
    admin.denied = {"orders"}
    clock.ms += 30_000
    assert topics.partition_count("orders") == 1
    assert [topics.may_write(name) for name in ("orders", "bills")] == [False, True]
    assert admin.checked[3:] == [["bills", "orders"]]


def test_deleted_topics_are_forgotten(admin: Admin) -> None:
    clock = SetClock()
    topics = ClusterTopics({}, clock)
    assert topics.may_write("orders")
    admin.counts = {"orders": 1}
    assert topics.partition_count("orders") == 1
    admin.counts = {}
    clock.ms += 30_000
    assert topics.partition_count("orders") == 0
    assert admin.checked == [["orders"], ["orders"], []]
