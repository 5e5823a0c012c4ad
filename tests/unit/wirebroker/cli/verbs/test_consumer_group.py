"""`wirebroker group …` for a group of the consumer protocol (KIP-848)."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer

from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE_S = 30.0


@contextlib.contextmanager
def member(verbs: Any, name: str) -> Iterator[Consumer]:
    """Join the group of a topic's name, read three of five records, commit, and stay a member."""
    verbs.do("topic", "create", name)
    verbs.feed(b"0\n1\n2\n3\n4\n", "produce", name)
    consumer = Consumer(
        {
            "bootstrap.servers": verbs.bootstrap,
            "client.id": "newer",
            "group.id": name,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([name])
    for _ in range(3):
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.error() is None, message.error()
        consumer.commit(message=message, asynchronous=False)
    try:
        yield consumer
    finally:
        consumer.close()


def test_a_consumer_group_is_listed_and_described_with_its_lag(verbs: Any) -> None:
    with member(verbs, "described"):
        listed = {group["name"]: group for group in verbs.json("group", "list")}
        (group,) = verbs.json("group", "describe", "described")
        lines = verbs.do("group", "describe", "described").lines
        lags = verbs.json("group", "lag", "described")
    assert listed["described"]["kind"] == "consumer"
    assert listed["described"]["state"] == "Stable"
    assert (group["state"], group["assignor"]) == ("Stable", "uniform")
    (only_member,) = group["members"]
    assert (only_member["client_id"], only_member["host"]) == ("newer", "127.0.0.1")
    assert only_member["partitions"] == [{"topic": "described", "partition": 0}]
    assert lines[0] == "described  Stable, 1 member, uniform"
    assert lines[2].split() == ["described", "0", "3", "5", "2", "newer", "127.0.0.1"]
    assert [(row["topic"], row["lag"]) for row in lags] == [("described", 2)]


def test_a_consumer_group_is_moved_and_deleted_only_without_members(verbs: Any) -> None:
    with member(verbs, "moved"):
        refused = [
            verbs.run("group", "seek", "moved", "--to", "start", "--yes"),
            verbs.run("group", "delete", "moved", "--yes"),
        ]
    assert [result.status for result in refused] == [1, 1]
    assert all("the group has members" in result.err for result in refused)
    eventually(lambda: verbs.json("group", "describe", "moved")[0]["state"] == "Empty")
    (shown,) = verbs.json("group", "seek", "moved", "--to", "start")["partitions"]
    assert (shown["committed"], shown["goal"]) == (3, 0)
    verbs.do("group", "seek", "moved", "--to", "start", "--yes")
    (group,) = verbs.json("group", "describe", "moved")
    assert [partition["committed"] for partition in group["partitions"]] == [0]
    verbs.do("group", "delete", "moved", "--yes")
    assert "moved" not in {group["name"] for group in verbs.json("group", "list")}
    assert "there is no group moved" in verbs.run("group", "describe", "moved").err
