"""Actions on topics, configs and messages."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING

from compat_tests.console.actions.action import BrowserAction
from compat_tests.console.actions.stock_client import PARTITIONS, RECORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from compat_tests.console.actions.action_cluster import ActionCluster

_WRITTEN = PARTITIONS * RECORDS
_TOPIC_PAGE = "topic?name={name}"


@contextlib.contextmanager
def _no_topic(cluster: ActionCluster, name: str) -> Iterator[Callable[[], bool]]:
    yield lambda: len(cluster.stock.partitions(name)) == 3


@contextlib.contextmanager
def _topic(
    check: Callable[[ActionCluster, str], bool], cluster: ActionCluster, name: str
) -> Iterator[Callable[[], bool]]:
    """Create a topic with records."""
    cluster.stock.create_topic(name)
    cluster.stock.fill(name)
    yield lambda: check(cluster, name)


@contextlib.contextmanager
def _two_topics(cluster: ActionCluster, name: str) -> Iterator[Callable[[], bool]]:
    for topic in (name, f"{name}-copy"):
        cluster.stock.create_topic(topic)
    cluster.stock.fill(name)
    yield lambda: cluster.stock.count(f"{name}-copy") == _WRITTEN


def _has_four_partitions(cluster: ActionCluster, name: str) -> bool:
    return len(cluster.stock.partitions(name)) == 4


def _is_deleted(cluster: ActionCluster, name: str) -> bool:
    return name not in cluster.stock.admin.list_topics()


def _is_empty(cluster: ActionCluster, name: str) -> bool:
    return cluster.stock.count(name) == 0


def _starts_at_three(cluster: ActionCluster, name: str) -> bool:
    return [cluster.stock.offsets(name, number)[0] for number in range(PARTITIONS)] == [0, 3]


def _keeps_a_day(cluster: ActionCluster, name: str) -> bool:
    return cluster.stock.config("topic", name, "retention.ms") == "86400000"


def _ends_with(value: bytes, cluster: ActionCluster, name: str) -> bool:
    is_longer = cluster.stock.count(name) == _WRITTEN + 1
    return is_longer and cluster.stock.last_value(name, 1) == value


@contextlib.contextmanager
def _broker_config(cluster: ActionCluster, _name: str) -> Iterator[Callable[[], bool]]:
    place = ("broker", "2", "log.cleaner.threads")
    cluster.stock.reset_config(*place)
    try:
        yield lambda: cluster.stock.config(*place) == "2"
    finally:
        cluster.stock.reset_config(*place)


@contextlib.contextmanager
def _two_deleted_topics(cluster: ActionCluster, name: str) -> Iterator[Callable[[], bool]]:
    with _two_topics(cluster, name):
        yield lambda: _is_deleted(cluster, name) and _is_deleted(cluster, f"{name}-copy")


@contextlib.contextmanager
def _root_logger(cluster: ActionCluster, _name: str) -> Iterator[Callable[[], bool]]:
    place = ("broker_logger", "2", "root")
    before = cluster.stock.config(*place) or "INFO"
    try:
        yield lambda: cluster.stock.config(*place) == "FATAL"
    finally:
        cluster.stock.alter_config(*place[:2], {"root": before})


@contextlib.contextmanager
def _no_subscription(cluster: ActionCluster, name: str) -> Iterator[Callable[[], bool]]:
    yield lambda: cluster.stock.config("client_metrics", name, "interval.ms") == "5000"


TOPIC_ACTIONS = (
    BrowserAction(
        "create-topic",
        page="topics",
        link="Create a topic",
        values={
            "topic": "{name}",
            "partitions": "3",
            "replicas": "2",
            "configs": "retention.ms=86400000",
        },
        plan="partitions: 3",
        command="topic create",
        result="topic {name} was created",
        arrange=_no_topic,
    ),
    BrowserAction(
        "add-partitions",
        page=_TOPIC_PAGE,
        link="Add partitions",
        values={"partitions": "4"},
        plan="partitions: 2 → 4",
        command="topic alter",
        result="topic {name} has 4 partitions",
        arrange=partial(_topic, _has_four_partitions),
    ),
    BrowserAction(
        "empty-topic",
        page=_TOPIC_PAGE,
        link="Delete all records",
        plan="all current records are deleted",
        command="topic trim",
        result="10 offsets deleted from topic {name}",
        arrange=partial(_topic, _is_empty),
    ),
    BrowserAction(
        "trim-topic",
        page=_TOPIC_PAGE,
        link="Delete old records",
        values={"before_offset": "3", "partitions": "1"},
        plan="partition 1: start 0 → 3",
        command="--before-offset 3",
        result="3 offsets deleted from topic {name}",
        arrange=partial(_topic, _starts_at_three),
    ),
    BrowserAction(
        "delete-topic",
        page=_TOPIC_PAGE,
        link="Delete the topic",
        values={"confirm": "{name}"},
        plan="The records cannot be restored.",
        command="topic delete",
        result="topic {name} was deleted",
        arrange=partial(_topic, _is_deleted),
    ),
    BrowserAction(
        "delete-topics",
        page="topics?select=1&q={name}",
        checkboxes=("Select {name}-copy", "Select {name}"),
        link="Delete the selected topics",
        values={"confirm": "2"},
        plan="The records cannot be restored.",
        command="topic delete",
        result="2 topics deleted",
        arrange=_two_deleted_topics,
    ),
    BrowserAction(
        "alter-topic-configs",
        page=_TOPIC_PAGE,
        link="Change configs",
        values={"set": "retention.ms=86400000"},
        plan="86400000 = 1 d",
        command="topic alter",
        result="1 config of topic {name} changed",
        arrange=partial(_topic, _keeps_a_day),
    ),
    BrowserAction(
        "alter-broker-configs",
        page="broker?id=2",
        link="Change configs",
        values={"set": "log.cleaner.threads=2"},
        plan="log.cleaner.threads",
        command="config set",
        result="1 config of broker 2 changed",
        arrange=_broker_config,
    ),
    BrowserAction(
        "alter-broker-loggers",
        page="broker/loggers?id=2",
        link="Change levels",
        values={"set": "root=FATAL"},
        plan="→ FATAL",
        command="--entity-type broker-loggers",
        result="1 logger of broker 2 changed",
        arrange=_root_logger,
    ),
    BrowserAction(
        "alter-client-metrics",
        page="brokers",
        link="Change which metrics clients push",
        values={"subscription": "{name}", "set": "interval.ms=5000\nmetrics=org.apache."},
        plan="interval.ms",
        command="config set",
        result="2 configs of",
        arrange=_no_subscription,
    ),
    BrowserAction(
        "produce-record",
        page=_TOPIC_PAGE,
        link="Produce a record",
        values={"partition": "1", "key": "a key", "value": "a <b>value</b>", "headers": "h=1"},
        plan="a <b>value</b>",
        command="wirebroker produce",
        result="stored in {name}-1",
        arrange=partial(_topic, partial(_ends_with, b"a <b>value</b>")),
    ),
    BrowserAction(
        "resend-record",
        page="topic/record?name={name}&partition=1&offset=2",
        link="Edit and resend",
        values={"value": '{"id": 7}'},
        plan="the record is changed before it is written",
        command="wirebroker produce",
        result="stored in {name}-1",
        arrange=partial(_topic, partial(_ends_with, b'{"id": 7}')),
    ),
    BrowserAction(
        "forward-record",
        page="topic/record?name={name}&partition=1&offset=2",
        link="Forward to another cluster",
        values={"cluster": "other", "value": '{"id": 8}'},
        plan="of cluster other",
        command="wirebroker produce",
        result="stored in {name}-1",
        arrange=partial(_topic, partial(_ends_with, b'{"id": 8}')),
        always_allowed="the Kafka user of the other cluster may write",
    ),
    BrowserAction(
        "copy-records",
        page=_TOPIC_PAGE,
        link="Copy records",
        values={"topic": "{name}-copy", "keep_partitions": "yes"},
        plan="partitions: the same numbers",
        command="topic copy",
        result="10 records copied from {name}",
        arrange=_two_topics,
    ),
)
