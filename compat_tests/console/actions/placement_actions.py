"""Actions on replicas and leaders."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING

from compat_tests.console.actions.action import BrowserAction
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from compat_tests.console.actions.action_cluster import ActionCluster

_RATE = "leader.replication.throttled.rate"
_FOLLOWER_RATE = "follower.replication.throttled.rate"
_BROKERS = (1, 2, 3)
# A move at this rate lasts longer than a test; each fetch exceeds it.
_SLOW_BYTES_PER_S = 1000
_LARGE_BYTES = 900_000
_LARGE_COUNT = 8
_SESSION_S = 60.0


@contextlib.contextmanager
def _placed(
    replicas: Mapping[int, Sequence[int]],
    is_done: Callable[[list[list[int]]], bool],
    cluster: ActionCluster,
    name: str,
) -> Iterator[Callable[[], bool]]:
    """Create a topic on these brokers; the action is done when no replica moves any longer."""
    stock = cluster.stock
    stock.create_topic(name, replicas)
    yield lambda: not stock.is_moving(name) and is_done(stock.replicas(name))


def _is_moved(replicas: list[list[int]]) -> bool:
    return replicas == [[2, 3]]


def _is_spread(replicas: list[list[int]]) -> bool:
    return {broker for row in replicas for broker in row} == set(_BROKERS)


def _throttle(cluster: ActionCluster, rate: int | None) -> None:
    for broker in map(str, _BROKERS):
        for config in (_RATE, _FOLLOWER_RATE):
            if rate is None:
                cluster.stock.reset_config("broker", broker, config)
            else:
                cluster.stock.alter_config("broker", broker, {config: str(rate)})


def _rates(cluster: ActionCluster) -> set[str | None]:
    return {cluster.stock.config("broker", str(broker), _RATE) for broker in _BROKERS}


@contextlib.contextmanager
def _slow_move(
    check: Callable[[ActionCluster, str], bool], cluster: ActionCluster, name: str
) -> Iterator[Callable[[], bool]]:
    """Start a throttled move of a partition from broker 1 to broker 2."""
    stock = cluster.stock
    throttled = {
        "leader.replication.throttled.replicas": "*",
        "follower.replication.throttled.replicas": "*",
    }
    stock.create_topic(name, {0: [1]}, throttled)
    for _ in range(_LARGE_COUNT):
        stock.write(name, bytes(_LARGE_BYTES), headers=[])
    _throttle(cluster, _SLOW_BYTES_PER_S)
    try:
        stock.reassign(name, {0: [2]})
        eventually(lambda: stock.is_moving(name))
        yield lambda: check(cluster, name)
    finally:
        if stock.is_moving(name):
            stock.reassign(name, {0: None})
        _throttle(cluster, None)


def _is_canceled(cluster: ActionCluster, name: str) -> bool:
    return not cluster.stock.is_moving(name) and cluster.stock.replicas(name) == [[1]]


def _is_faster(cluster: ActionCluster, _name: str) -> bool:
    return {cluster.stock.config("broker", broker, _RATE) for broker in "12"} == {"2000"}


def _is_unthrottled(cluster: ActionCluster, _name: str) -> bool:
    return _rates(cluster) == {None}


@contextlib.contextmanager
def _other_leader(cluster: ActionCluster, name: str) -> Iterator[Callable[[], bool]]:
    """Create a topic whose leader is not the preferred one: the order of its replicas changes."""
    stock = cluster.stock
    stock.create_topic(name, {0: [1, 2]})
    eventually(lambda: len(stock.first_partition(name)["isr_nodes"]) == 2)
    stock.reassign(name, {0: [2, 1]})
    eventually(lambda: stock.replicas(name) == [[2, 1]])
    assert stock.first_partition(name)["leader_id"] == 1
    yield lambda: bool(stock.first_partition(name)["leader_id"] == 2)


@contextlib.contextmanager
def _no_leader(cluster: ActionCluster, name: str) -> Iterator[Callable[[], bool]]:
    """Kill the only in-sync replica of a topic; another replica runs, but lacks records."""
    stock, brokers = cluster.stock, cluster.nodes.brokers
    stock.create_topic(name, {0: [2, 3]})

    def in_sync() -> set[int]:
        return set(stock.first_partition(name)["isr_nodes"])

    def leader() -> int:
        return int(stock.first_partition(name)["leader_id"])

    eventually(lambda: in_sync() == {2, 3})
    brokers[3].kill9()
    try:
        eventually(lambda: in_sync() == {2}, timeout_s=_SESSION_S)
        brokers[2].kill9()
        eventually(lambda: leader() == -1, timeout_s=_SESSION_S)
        brokers[3].start()
        eventually(lambda: 3 in stock.brokers(), timeout_s=_SESSION_S)
        yield lambda: leader() == 3
    finally:
        for broker in (brokers[2], brokers[3]):
            if not broker.is_running:
                broker.start()
        eventually(lambda: stock.brokers() == set(_BROKERS), timeout_s=_SESSION_S)


PLACEMENT_ACTIONS = (
    BrowserAction(
        "move-partition",
        page="topic?name={name}",
        link="Move partition 0",
        values={"replicas": "2,3"},
        plan="{name}-0: brokers 1, 2 → 2, 3",
        command="reassign execute",
        result="1 move started",
        arrange=partial(_placed, {0: [1, 2]}, _is_moved),
    ),
    BrowserAction(
        "spread-topic",
        page="reassignments",
        link="Spread a topic over brokers",
        values={"topic": "{name}", "brokers": "1,2,3"},
        plan="about",
        command="reassign execute",
        result="moves started",
        arrange=partial(_placed, {number: [1] for number in range(3)}, _is_spread),
    ),
    BrowserAction(
        "cancel-moves",
        page="reassignments",
        link="Cancel the move of {name}-0",
        plan="the copied data is deleted",
        command="reassign cancel",
        result="1 move canceled",
        arrange=partial(_slow_move, _is_canceled),
    ),
    BrowserAction(
        "throttle-moves",
        page="reassignments",
        link="Throttle all moves",
        values={"throttle": "2000"},
        plan="the throttle remains until it is removed",
        command="reassign throttle",
        result="moves are throttled to",
        arrange=partial(_slow_move, _is_faster),
    ),
    BrowserAction(
        "unthrottle-moves",
        page="reassignments",
        link="Remove the throttle",
        values={"topic": "{name}"},
        plan="topic {name}: its list of throttled replicas is removed",
        command="reassign unthrottle",
        result="the throttle is removed",
        arrange=partial(_slow_move, _is_unthrottled),
    ),
    BrowserAction(
        "elect-preferred",
        page="reassignments",
        link="Elect preferred leaders",
        values={"topic": "{name}"},
        plan="{name}-0: leader 1 → 2",
        command="elect preferred",
        result="1 leader elected",
        arrange=_other_leader,
    ),
    BrowserAction(
        "elect-unclean",
        page="reassignments",
        link="Elect leaders of partitions without one",
        values={"topic": "{name}"},
        plan="records that the new leader lacks are lost",
        command="elect unclean",
        result="1 leader elected",
        arrange=_no_leader,
    ),
)
