"""Requests for kinds of growth, and the measurement of their cost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.load import generators
from benchmarks.measurement.machine import cpu_seconds
from tests.support.protocol.raw_client import BlockingClient, request_frame
from tests.support.protocol.requests import fetch_request, produce_request
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.brokers.brokers import Broker

_CONNECTIONS = 20
_REPEATS = 3
_MOST_RUNS = 12
_NO_GAIN = 0.97


class Point(NamedTuple):
    cost: str
    unit: str
    size: int
    value: float


def cpu_us(
    broker: Broker,
    frames: Sequence[bytes],
    error_at: int,
    *,
    quick: bool,
    connections: int = _CONNECTIONS,
) -> float:
    """Return the broker's CPU per request: the least of several runs, until it settles."""
    seconds = 0.5 if quick else 1.5
    costs: list[float] = []
    while len(costs) < _MOST_RUNS and not is_settled(costs):
        before = cpu_seconds(broker.process_id)
        result = generators.drive(
            broker.port, frames, connections=connections, seconds=seconds, error_at=error_at
        )
        costs.append((cpu_seconds(broker.process_id) - before) / result["requests"] * 1e6)
    return min(costs)


def is_settled(costs: Sequence[float]) -> bool:
    """Return whether the last three runs were not faster than earlier ones.

    The first run touches all data; a JVM's compiler needs more.
    """
    last, before = costs[-_REPEATS:], costs[:-_REPEATS]
    return bool(before) and min(last) > _NO_GAIN * min(before)


def client_of(broker: Broker) -> BlockingClient:
    return BlockingClient(("127.0.0.1", broker.port))


def create_topic(client: BlockingClient, topic: str, partitions: int = 1, **configs: str) -> None:
    new = {
        "name": topic,
        "num_partitions": partitions,
        "replication_factor": 1,
        "configs": [{"name": name.replace("_", "."), "value": configs[name]} for name in configs],
    }
    answer = client.ask(ApiKey.CREATE_TOPICS, 5, {"topics": [new], "timeout_ms": 60_000})
    assert answer.topics[0].error_code == 0, answer
    await_leaders(client, topic, partitions)


def await_leaders(client: BlockingClient, topic: str, partitions: int) -> None:
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:  # Apache Kafka's leaders follow its metadata
        answer = client.ask(ApiKey.LIST_OFFSETS, 1, latest(topic, partitions))
        if not any(partition.error_code for partition in answer.topics[0].partitions):
            return
    raise RuntimeError(f"{topic} has no leaders after 60 s")


def produce_frame(topic: str, partition: int) -> bytes:
    batch = generators.one_batch(records=1, record_bytes=100)
    return request_frame(ApiKey.PRODUCE, 11, produce_request({(topic, partition): batch}))


def latest(topic: str, partitions: int = 1) -> dict[str, Any]:
    rows = [{"partition_index": index, "timestamp": -1} for index in range(partitions)]
    return {"replica_id": -1, "topics": [{"name": topic, "partitions": rows}]}


def fetch_frame(topic: str, offset: int, max_bytes: int) -> bytes:
    request = fetch_request({(topic, 0): offset}, partition_max_bytes=max_bytes)
    return request_frame(ApiKey.FETCH, 12, request)
