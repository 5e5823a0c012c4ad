"""Actions on groups and on transactions."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING

from compat_tests.console.actions.action import BrowserAction
from compat_tests.console.actions.stock_client import RECORDS, WAIT_S
from compat_tests.support.raw_requests import Requests
from tests.support.records.batches import batch
from tests.support.tools.ports import HOST
from tests.support.tools.waiting import eventually
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from compat_tests.console.actions.action_cluster import ActionCluster

_COMMITTED = 2
_GROUP_PAGE = "group?name={name}"


# --- groups


@contextlib.contextmanager
def _group(
    check: Callable[[ActionCluster, str], bool], cluster: ActionCluster, name: str
) -> Iterator[Callable[[], bool]]:
    """Commit offsets of a topic with records, for a group with the topic's name."""
    cluster.stock.create_topic(name)
    cluster.stock.fill(name)
    cluster.stock.commit(name, name, _COMMITTED)
    yield lambda: check(cluster, name)


def _is_at_the_end(cluster: ActionCluster, name: str) -> bool:
    return cluster.stock.committed(name) == {0: RECORDS, 1: RECORDS}


def _has_one_offset(cluster: ActionCluster, name: str) -> bool:
    return cluster.stock.committed(name) == {1: _COMMITTED}


def _is_gone(cluster: ActionCluster, name: str) -> bool:
    return name not in cluster.stock.groups()


def _has_its_timeout(cluster: ActionCluster, name: str) -> bool:
    return cluster.stock.config("group", name, "consumer.session.timeout.ms") == "50000"


@contextlib.contextmanager
def _member(cluster: ActionCluster, name: str) -> Iterator[Callable[[], bool]]:
    cluster.stock.create_topic(name)
    with cluster.stock.member_of(name, name) as member_id:
        # It may join again, as another member.
        yield lambda: member_id not in cluster.stock.members(name)


GROUP_ACTIONS = (
    BrowserAction(
        "reset-offsets",
        page=_GROUP_PAGE,
        link="Reset offsets",
        values={"to": "end"},
        plan="Move 2 offsets of group {name} to the end",
        command="group seek",
        result="2 offsets of group {name} moved",
        arrange=partial(_group, _is_at_the_end),
    ),
    BrowserAction(
        "delete-offsets",
        page=_GROUP_PAGE,
        link="Delete offsets",
        values={"topics": "{name}:0"},
        plan="{name}-0: 2 → no offset",
        command="kafka-consumer-groups",
        result="1 offset of group {name} deleted",
        arrange=partial(_group, _has_one_offset),
    ),
    BrowserAction(
        "delete-group",
        page=_GROUP_PAGE,
        link="Delete the group",
        plan="committed offsets of 2 partitions are deleted",
        command="group delete",
        result="group {name} was deleted",
        arrange=partial(_group, _is_gone),
    ),
    BrowserAction(
        "alter-group-configs",
        page=_GROUP_PAGE,
        link="Change configs",
        values={"set": "consumer.session.timeout.ms=50000"},
        plan="consumer.session.timeout.ms",
        command="config set",
        result="1 config of group {name} changed",
        arrange=partial(_group, _has_its_timeout),
    ),
    BrowserAction(
        "remove-members",
        page=_GROUP_PAGE,
        link="Remove members",
        plan="A consumer that still runs joins again",
        command="group remove-members",
        result="1 member removed from group {name}",
        arrange=_member,
        always_allowed="a member is removed with the right to read, which operators have",
    ),
)


# --- transactions


@contextlib.contextmanager
def _open_transaction(cluster: ActionCluster, name: str) -> Iterator[Callable[[], bool]]:
    cluster.stock.create_topic(name)
    with cluster.stock.transactional_producer(name) as producer:
        producer.begin_transaction()
        producer.produce(name, b"lost", partition=0)
        assert producer.flush(WAIT_S) == 0
        yield lambda: cluster.stock.open_start(name) == []


@contextlib.contextmanager
def _idle_producer(cluster: ActionCluster, name: str) -> Iterator[Callable[[], bool]]:
    with cluster.stock.transactional_producer(name):
        before = cluster.stock.transaction(name)
        yield lambda: cluster.stock.transaction(name).producer_epoch > before.producer_epoch


@contextlib.contextmanager
def _hanging_transaction(cluster: ActionCluster, name: str) -> Iterator[Callable[[], bool]]:
    """Write a record of a transaction that no coordinator knows, like a delayed request."""
    cluster.stock.create_topic(name)
    requests = Requests((HOST, cluster.nodes.brokers[1].port))
    try:
        requests.wait_for_partitions(name, 1)
        anybody = {
            "transactional_id": None,
            "transaction_timeout_ms": 60_000,
            "producer_id": -1,
            "producer_epoch": -1,
        }
        producer = requests.ask_until_served(ApiKey.INIT_PRODUCER_ID, 4, anybody)
        records = batch(
            b"late",
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=0,
            is_transactional=True,
        )
        requests.append(name, records, transactional_id=name)
    finally:
        requests.close()
    eventually(lambda: cluster.stock.open_start(name) == [0])
    yield lambda: cluster.stock.open_start(name) == []


TRANSACTION_ACTIONS = (
    BrowserAction(
        "abort-transaction",
        page="transactions?q={name}",
        link="Abort the transaction of {name}",
        plan="{name}-0: its records from offset 0 on are discarded",
        command="transaction abort",
        result="the transaction of {name} is aborted",
        arrange=_open_transaction,
    ),
    BrowserAction(
        "terminate-transaction",
        page="transactions?q={name}",
        link="Terminate the producer of {name}",
        plan="is fenced",
        command="kafka-transactions",
        result="the producer of {name} is fenced",
        arrange=_idle_producer,
    ),
    BrowserAction(
        "abort-hanging-transaction",
        page="transactions?topic={name}&minutes=0",
        link="Abort the transaction in {name}-0",
        plan="continue",
        command="kafka-transactions",
        result="the transaction at offset 0 of {name}-0 is aborted",
        arrange=_hanging_transaction,
    ),
)
