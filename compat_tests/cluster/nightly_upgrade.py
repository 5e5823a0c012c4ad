"""A cluster of an earlier version is upgraded node by node under load, and downgraded.

Node 1 has the controller, so it is upgraded last and downgraded first. In between, the versions
are mixed; two of three nodes then have the new version. A transaction stays open during the
upgrade and is committed after it, and another one on the way back.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

import pytest
from confluent_kafka import Producer

from compat_tests.cluster.replicated_load import (
    WAIT_S,
    Load,
    all_in_sync,
    check,
    create,
    verify,
)
from tests.support.tools.waiting import eventually
from tests.upgrade.content import read
from tests.upgrade.earlier import EitherFirst, EitherJoined, install_earlier

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.cluster.nodes import Cluster

TOPICS = {"led-by-1": (1, 2, 3), "led-by-2": (2, 3, 1), "led-by-3": (3, 1, 2)}
TRANSACTIONS = "transactions"
SETTINGS = {"transaction.state.log.replication.factor": "3"}
UPGRADE = (3, 2, 1)
# Number of acknowledged records between two restarts, in topics with three replicas.
BETWEEN = 2_000


@dataclass
class MixedCluster:
    brokers: dict[int, EitherFirst | EitherJoined]

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    def stop(self) -> None:
        """Stop all, the one with the controller last."""
        for broker in reversed(self.brokers.values()):
            broker.stop()


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_cluster_is_upgraded_and_downgraded_under_load(tmp_path: Path) -> None:
    installed = install_earlier(tmp_path / "earlier")
    first = EitherFirst(tmp_path / "1", SETTINGS)
    joined = {
        node_id: EitherJoined(tmp_path / str(node_id), first, node_id=node_id, settings=SETTINGS)
        for node_id in (2, 3)
    }
    mixed = MixedCluster({1: first, **joined})
    cluster = cast("Cluster", mixed)
    try:
        for broker in mixed.brokers.values():
            broker.installed = installed
            broker.start()
        create(cluster, {**TOPICS, TRANSACTIONS: (1, 2, 3)})
        producer = transactional_producer(mixed.bootstrap)
        with Load(cluster, list(TOPICS)) as load:
            load.go_on(BETWEEN)
            for version, order in ((None, UPGRADE), (installed, UPGRADE[::-1])):
                producer.begin_transaction()
                send(producer, b"begun")
                for node_id in order:
                    broker = mixed.brokers[node_id]
                    broker.stop()
                    broker.installed = version
                    broker.start()
                    all_in_sync(cluster, list(TOPICS))
                    load.go_on(BETWEEN)
                send(producer, b"ended")
                producer.commit_transaction(WAIT_S)
        check(cluster, load)
        eventually(partial(is_committed, mixed.bootstrap, [b"begun", b"ended"] * 2))
        verify(cluster, list(TOPICS))
    finally:
        mixed.stop()


def transactional_producer(bootstrap: str) -> Producer:
    """Return a producer whose transaction timeout exceeds the duration of an upgrade."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": "upgraded",
            "transaction.timeout.ms": 900_000,
        }
    )
    producer.init_transactions(WAIT_S)
    return producer


def send(producer: Producer, value: bytes) -> None:
    producer.produce(TRANSACTIONS, value, partition=0)
    assert producer.flush(WAIT_S) == 0


def is_committed(bootstrap: str, values: list[bytes]) -> bool:
    return read(bootstrap, TRANSACTIONS, 0) == values
