"""Three controllers without a JVM, with brokers elsewhere or in their processes.

Metadata survives the active controller.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.brokers.own_quorum import OwnQuorum
from tests.support.tools.waiting import PATIENCE_S, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=["apart", "combined"])
def quorum(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OwnQuorum]:
    is_combined = request.param == "combined"
    with OwnQuorum(tmp_path, brokers=0 if is_combined else 2, is_combined=is_combined) as running:
        yield running


def _create(admin: AdminClient, *topics: str) -> None:
    new_topics = [NewTopic(topic, 2, replication_factor=2) for topic in topics]
    for future in admin.create_topics(new_topics, operation_timeout=30).values():
        future.result(PATIENCE_S)


def _topics(admin: AdminClient) -> set[str]:
    return set(admin.list_topics(timeout=10).topics)


def test_acknowledged_topics_survive_the_active_controller(quorum: OwnQuorum) -> None:
    admin = AdminClient({"bootstrap.servers": quorum.bootstrap})
    _create(admin, "first")
    leader_id = quorum.leader_id()
    quorum.controllers[leader_id].kill9()
    _create(admin, "second")
    assert quorum.leader_id() != leader_id
    quorum.controllers[leader_id].start()
    with ThreadPoolExecutor(len(quorum.controllers)) as pool:
        for act in ("stop", "start"):
            nodes = quorum.controllers.values()
            for ended in [pool.submit(getattr(node, act)) for node in nodes]:
                ended.result()
    _create(admin, "third")
    # The broker that is asked may not have applied it yet.
    eventually(lambda: {"first", "second", "third"} <= _topics(admin))
