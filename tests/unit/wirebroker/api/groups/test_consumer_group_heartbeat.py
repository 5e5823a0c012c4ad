"""ConsumerGroupHeartbeat: its limits, and groups of thousands of topics."""

from __future__ import annotations

import asyncio
import importlib
import inspect
from typing import Any

import pytest

from tests.support.coordinators.group_kit import REBALANCE_MS
from tests.support.coordinators.kit import topic
from tests.unit.wirebroker.api.api_kit import answer_soon, begin
from tests.unit.wirebroker.coordination.group_server_kit import ListPartition, group_broker, turns
from wirebroker.api.groups import consumer_group_heartbeat
from wirebroker.api.groups.group_errors import response_of
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.coordinator.groups.consumer import (
    heartbeat_request,
    member_update,
    prepared_step,
    regexes,
)
from wirebroker.coordinator.groups.consumer.subscriptions import size_of_names

importlib.import_module("wirebroker.api.groups.consumer_group_heartbeat")

KEY = ApiKey.CONSUMER_GROUP_HEARTBEAT
FEATURE = metadata_record(RecordType.FEATURE_LEVEL, name="group.version", feature_level=1)
NAMES = [f"t{number}" for number in range(700)]


def broker_with(*names: str) -> Any:
    partition = ListPartition()
    partition.log.settings.max_message_bytes = 1 << 20
    topics = [record for number, name in enumerate(names, 1) for record in topic(name, number)]
    return group_broker(FEATURE, *topics, partitions={0: partition})


def joining(member_id: str, *names: str, **fields: Any) -> dict[str, Any]:
    return {
        "group_id": "g",
        "member_id": member_id,
        "member_epoch": 0,
        "rebalance_timeout_ms": REBALANCE_MS,
        "subscribed_topic_names": list(names),
        "topic_partitions": [],
        **fields,
    }


async def join(broker: Any, member_id: str, *names: str, **fields: Any) -> Any:
    return await answer_soon(broker, KEY, 1, **joining(member_id, *names, **fields))


async def test_topics_of_a_large_group_are_hashed_before_the_member_joins():
    broker = broker_with(*NAMES)
    await turns()
    shard = broker.groups.shard_of("g")
    result = begin(broker, KEY, 1, **joining("m", *NAMES))
    assert inspect.isawaitable(result)
    assert not shard.groups
    response = await result
    assert response["member_epoch"] == 2
    assert not shard.topic_hashes.unknown(set(NAMES))
    assert shard.groups["g"].metadata_hash != 0


async def test_too_many_topics_are_refused_before_they_are_prepared(monkeypatch):
    broker = broker_with()
    await turns()
    monkeypatch.setattr(heartbeat_request, "MOST_TOPICS", 500)

    def prepare(_names: object) -> None:
        raise AssertionError("the topics are prepared")

    monkeypatch.setattr(consumer_group_heartbeat, "requested_names", prepare)
    monkeypatch.setattr(consumer_group_heartbeat, "size_of_names", prepare)
    response = begin(broker, KEY, 1, **joining("m", *NAMES))
    assert response["error_code"] == ErrorCode.INVALID_REQUEST
    assert "at most 500 topics" in response["error_message"]


async def test_small_requests_of_a_large_group_are_served_at_once():
    broker = broker_with(*NAMES)
    await turns()
    await join(broker, "m", *NAMES)
    epoch = broker.groups.shard_of("g").groups["g"].members["m"].epoch
    body = {"group_id": "g", "member_id": "m", "member_epoch": epoch}
    assert not inspect.isawaitable(begin(broker, KEY, 1, **body))


async def test_equal_subscriptions_count_once(monkeypatch):
    limit = size_of_names(NAMES) + 100
    monkeypatch.setattr("wirebroker.api.groups.member_memory.MOST_METADATA_BYTES_OF_ALL", limit)
    broker = broker_with(*NAMES)
    await turns()
    for member_id in ("a", "b"):
        assert (await join(broker, member_id, *NAMES)).error_code == ErrorCode.NONE
    refused = await join(broker, "c", *NAMES[1:])
    assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    for member_id in ("a", "b"):
        leaving = {"group_id": "g", "member_id": member_id, "member_epoch": -1}
        await answer_soon(broker, KEY, 1, **leaving)
    assert (await join(broker, "c", *NAMES[1:])).error_code == ErrorCode.NONE


@pytest.mark.parametrize("field", ["instance_id", "rack_id", "subscribed_topic_regex"])
async def test_texts_of_a_member_are_bounded(monkeypatch, field):
    monkeypatch.setattr("wirebroker.api.groups.member_memory.FEW_METADATA_BYTES", 10)
    monkeypatch.setattr("wirebroker.api.groups.member_memory.MOST_METADATA_BYTES", 100)
    broker = broker_with()
    await turns()
    refused = await join(broker, "m", **{field: "x" * 101})
    assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert not broker.groups.shard_of("g").groups


async def test_reported_partitions_are_bounded(monkeypatch):
    monkeypatch.setattr(heartbeat_request, "MOST_PARTITIONS", 10)
    broker = broker_with("t0")
    await turns()
    owned = [{"topic_id": bytes(16), "partitions": list(range(10))}]
    body = {"group_id": "g", "member_id": "m", "member_epoch": 1, "topic_partitions": owned}
    refused = await answer_soon(broker, KEY, 1, **body)
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert refused.error_message == "A member can own at most 10 topics and partitions."


async def test_topics_of_a_group_are_bounded(monkeypatch):
    monkeypatch.setattr(member_update, "MOST_GROUP_TOPICS", 3)
    broker = broker_with()
    await turns()
    assert (await join(broker, "a", "t0", "t1")).error_code == ErrorCode.NONE
    refused = await join(broker, "b", "t2", "t3")
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert refused.error_message == "The members of a group can subscribe to at most 3 topics."
    assert (await join(broker, "b", "t1", "t2")).error_code == ErrorCode.NONE


async def test_expressions_of_a_group_are_bounded(monkeypatch):
    monkeypatch.setattr(regexes, "MOST_REGEXES", 2)
    broker = broker_with("t0")
    await turns()
    for number in range(2):
        joined = await join(broker, f"m{number}", subscribed_topic_regex=f"t{number}")
        assert joined.error_code == ErrorCode.NONE
    refused = await join(broker, "n", subscribed_topic_regex="t2")
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    for regex in ("t0", ""):
        assert (await join(broker, "n", subscribed_topic_regex=regex)).error_code == ErrorCode.NONE
    # Its only user may replace an expression.
    replaced = await join(broker, "m1", subscribed_topic_regex="t2")
    assert replaced.error_code == ErrorCode.NONE
    await broker.groups.stop()


async def test_steps_of_large_members_are_prepared_one_at_a_time(monkeypatch):
    monkeypatch.setattr(prepared_step, "_FEW", 0)
    broker = broker_with("t0", "t1", "t2")
    await turns()
    for member_id in ("a", "b", "c"):
        await join(broker, member_id, "t0", "t1", "t2")
    running: list[int] = []
    most: list[int] = []
    prepare = prepared_step.prepare

    def counted(*arguments):
        running.append(1)
        most.append(len(running))
        for _ in range(3):
            yield
        step = yield from prepare(*arguments)
        running.pop()
        return step

    class HandSlices(Slices):
        """Slices that end after each step."""

        def __init__(self, clock, seconds=None):
            super().__init__(clock, -1.0 if seconds is None else seconds)

    monkeypatch.setattr(prepared_step, "prepare", counted)
    monkeypatch.setattr("wirebroker.api.groups.hashing.Slices", HandSlices)
    members = broker.groups.shard_of("g").groups["g"].members
    beats = [
        begin(broker, KEY, 1, **joining(name, "t0", "t1", "t2", member_epoch=members[name].epoch))
        for name in members
    ]
    responses = await asyncio.gather(*map(response_of, beats))
    assert all(response["member_epoch"] > 0 for response in responses)
    assert most
    assert max(most) == 1


async def test_many_names_are_prepared_before_the_heartbeat(monkeypatch):
    monkeypatch.setattr("wirebroker.api.groups.hashing._FEW_NAMES", 1)
    broker = broker_with("t0", "t1")
    await turns()
    result = begin(broker, KEY, 1, **joining("m", "t1", "t0", "t1"))
    assert inspect.isawaitable(result)
    assert (await result)["member_epoch"] == 2
    member = broker.groups.shard_of("g").groups["g"].members["m"]
    assert member.topic_names == {"t0", "t1"}
