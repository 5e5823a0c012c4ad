"""Raw requests with state: commits, searches by time, idempotent producers."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

from benchmarks.growth.growth_cases import find_coordinator, join
from benchmarks.load import generators
from benchmarks.load.growth_requests import client_of
from benchmarks.measurement.pairs import Sample
from tests.support.protocol.raw_client import request_frame
from tests.support.protocol.requests import produce_request
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.records.batch import build_batch
from wirebroker.codecs.records.layout import BASE_SEQUENCE_AT

if TYPE_CHECKING:
    from tests.support.brokers.brokers import Broker
    from tests.support.protocol.raw_client import BlockingClient

_START_MS = 1_700_000_000_000
_STAMPED_BATCHES = 2_000


def offset_commits(broker: Broker, topic: str, *, connections: int, seconds: float) -> Sample:
    """Commit one offset per request, each connection as the only member of a group."""
    client = client_of(broker)
    find_coordinator(client)
    frames = [join(client, topic, f"{topic}-{number}")[0] for number in range(connections)]
    client.close()
    error_at = generators.offsets_error_at(topic)
    result = generators.drive(
        broker.port, frames, connections=connections, seconds=seconds, error_at=error_at
    )
    return Sample(result["requests"], result["seconds"], generators.latencies(result))


def fill_with_times(broker: Broker, topic: str) -> None:
    client = client_of(broker)
    for number in range(_STAMPED_BATCHES):
        batch = bytes(build_batch([(None, b"x" * 100, ())], timestamp_ms=_START_MS + number))
        answer = client.ask(ApiKey.PRODUCE, 11, produce_request({(topic, 0): batch}))
        assert answer.responses[0].partition_responses[0].error_code == 0, answer
    client.close()


def searches_by_time(broker: Broker, topic: str, *, connections: int, seconds: float) -> Sample:
    rng = random.Random(7)
    frames: list[bytes] = []
    for _ in range(200):
        timestamp = _START_MS + rng.randrange(_STAMPED_BATCHES)
        partition = {"partition_index": 0, "timestamp": timestamp, "current_leader_epoch": -1}
        topics = [{"name": topic, "partitions": [partition]}]
        request = {"replica_id": -1, "isolation_level": 0, "topics": topics}
        frames.append(request_frame(ApiKey.LIST_OFFSETS, 5, request))
    error_at = generators.offsets_error_at(topic)
    result = generators.drive(
        broker.port, frames, connections=connections, seconds=seconds, error_at=error_at
    )
    return Sample(result["requests"], result["seconds"], generators.latencies(result))


def idempotent_produce(broker: Broker, topic: str, *, connections: int, seconds: float) -> Sample:
    """Produce one record per request, each connection as its own producer."""
    client = client_of(broker)
    frames: list[bytes] = []
    batch = b""
    for _ in range(connections):
        producer = _new_producer(client)
        batch = bytes(
            build_batch(
                [(None, b"x" * 100, ())],
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                base_sequence=0,
            )
        )
        frames.append(request_frame(ApiKey.PRODUCE, 11, produce_request({(topic, 0): batch})))
    client.close()
    result = generators.drive(
        broker.port,
        frames,
        connections=connections,
        seconds=seconds,
        error_at=generators.produce_error_at(topic),
        sequence_at=frames[-1].index(batch) + BASE_SEQUENCE_AT,
    )
    return Sample(result["requests"], result["seconds"], generators.latencies(result))


def _new_producer(client: BlockingClient) -> Any:
    """Return an InitProducerId response; a new broker may not have a block of ids yet."""
    request = {"transactional_id": None, "transaction_timeout_ms": 60_000}
    give_up = time.monotonic() + 30
    while time.monotonic() < give_up:
        producer = client.ask(ApiKey.INIT_PRODUCER_ID, 1, request)
        if producer.error_code == 0:
            return producer
        time.sleep(0.05)  # no event announces it
    raise RuntimeError("there is no producer id after half a minute")
