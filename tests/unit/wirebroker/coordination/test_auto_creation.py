"""An auto-created topic uses the broker's settings, or else the controller's defaults."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.coordinators.kit import request
from tests.unit.wirebroker.api.api_kit import CONNECTION
from wirebroker.base.clock import next_turn
from wirebroker.config import Config
from wirebroker.coordination.auto_creation import AutoCreation

PARTITIONS, REPLICAS = "num.partitions", "default.replication.factor"


class RecordingChannel:
    def __init__(self) -> None:
        self.topics: list[dict[str, Any]] = []

    async def ask(self, key: Any, body: Any) -> Any:
        self.topics += body["topics"]
        results = [request(name=topic["name"], error_code=0) for topic in body["topics"]]  # type: ignore[arg-type]
        return request(topics=results)


@pytest.mark.parametrize(
    ("static", "cluster_wide", "shape"),
    [
        ({}, {}, (-1, -1)),
        ({PARTITIONS: "5", REPLICAS: "2"}, {}, (5, 2)),
        ({PARTITIONS: "1"}, {}, (1, -1)),
        ({REPLICAS: "1"}, {}, (-1, 1)),
        ({}, {PARTITIONS: "7"}, (7, -1)),
    ],
)
async def test_only_explicit_broker_settings_are_sent_to_the_controller(
    static, cluster_wide, shape
):
    channel = RecordingChannel()
    creation = AutoCreation(channel, {})  # type: ignore[arg-type]
    creation.create(["a", "b"], Config(static, cluster_wide=cluster_wide), CONNECTION)
    assert await creation.until_made(timeout_s=10)
    sent = [
        (topic["name"], topic["num_partitions"], topic["replication_factor"])
        for topic in channel.topics
    ]
    assert sent == [("a", *shape), ("b", *shape)]


async def test_internal_topic_is_created_by_its_coordinator():
    channel = RecordingChannel()
    created: list[str] = []

    async def create() -> None:
        await next_turn()
        created.append("__consumer_offsets")

    def begin() -> asyncio.Task[None]:
        return asyncio.create_task(create())

    creation = AutoCreation(channel, {"__consumer_offsets": begin})  # type: ignore[arg-type]
    creation.create(["__consumer_offsets"], Config({}), CONNECTION)
    assert await creation.until_made(timeout_s=10)
    assert created == ["__consumer_offsets"]
    creation.create(["a"], Config({}), CONNECTION)
    assert await creation.until_made(timeout_s=10)
    assert [topic["name"] for topic in channel.topics] == ["a"]
