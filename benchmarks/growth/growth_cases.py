"""Kinds of growth: each increases a broker's content and yields the cost of a request."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

from benchmarks.growth import sparse_segments
from benchmarks.load.generators import fetch_error_at, offsets_error_at, produce_error_at
from benchmarks.load.growth_requests import (
    Point,
    client_of,
    cpu_us,
    create_topic,
    fetch_frame,
    produce_frame,
)
from tests.support.protocol.raw_client import BlockingClient, request_frame
from tests.support.protocol.requests import fetch_request
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.support.brokers.brokers import Broker

_PER_TOPIC = 100
_SESSION_MS = 1_800_000
_SAFE_DAY_MS = 3_600_000


def partitions(broker: Broker, *, quick: bool) -> Iterator[Point]:
    client = client_of(broker)
    frames: list[bytes] = []
    for size in (1, 10, 100, 1_000) if quick else (1, 10, 100, 1_000, 10_000):
        while len(frames) < size:
            topic = f"p{len(frames):06d}"
            count = min(_PER_TOPIC, size - len(frames))
            create_topic(client, topic, count)
            frames += [produce_frame(topic, index) for index in range(count)]
        value = cpu_us(broker, frames, produce_error_at("p000000"), quick=quick)
        yield Point("produce 100 B over partitions", "us of CPU", size, value)
    client.close()


def connections(broker: Broker, *, quick: bool) -> Iterator[Point]:
    client = client_of(broker)
    create_topic(client, "c", 10)
    frames = [produce_frame("c", index) for index in range(10)]
    for size in (1, 10, 100, 1_000) if quick else (1, 10, 100, 1_000, 5_000):
        error_at = produce_error_at("c")
        value = cpu_us(broker, frames, error_at, quick=quick, connections=size)
        yield Point("produce 100 B over connections", "us of CPU", size, value)
    client.close()


def groups(broker: Broker, *, quick: bool) -> Iterator[Point]:
    client = client_of(broker)
    create_topic(client, "g")
    find_coordinator(client)
    commits: list[bytes] = []
    heartbeats: list[bytes] = []
    for size in (1, 10, 100) if quick else (1, 10, 100, 1_000):
        while len(commits) < size:
            commit, heartbeat = join(client, "g", f"group-{len(commits):04d}")
            commits.append(commit)
            heartbeats.append(heartbeat)
        value = cpu_us(broker, commits, offsets_error_at("g"), quick=quick)
        yield Point("OffsetCommit over groups", "us of CPU", size, value)
        value = cpu_us(broker, heartbeats, 4 + 4, quick=quick)
        yield Point("Heartbeat over groups", "us of CPU", size, value)
    client.close()


def find_coordinator(client: BlockingClient) -> None:
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:
        coordinator = client.ask(ApiKey.FIND_COORDINATOR, 2, {"key": "group-0000", "key_type": 0})
        fetch = {"group_id": "group-0000", "topics": []}
        if not coordinator.error_code and not client.ask(ApiKey.OFFSET_FETCH, 5, fetch).error_code:
            return
        time.sleep(0.1)  # no event announces it
    raise RuntimeError("there is no coordinator after a minute")


def join(client: BlockingClient, topic: str, group: str) -> tuple[bytes, bytes]:
    """Form a group of one member; return its OffsetCommit v7 and Heartbeat v3."""
    joining: dict[str, Any] = {
        "group_id": group,
        "session_timeout_ms": _SESSION_MS,
        "rebalance_timeout_ms": 60_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }
    joined = client.ask(ApiKey.JOIN_GROUP, 3, joining)
    assert joined.error_code == 0, joined
    member = {
        "group_id": group,
        "generation_id": joined.generation_id,
        "member_id": joined.member_id,
    }
    share = {"member_id": joined.member_id, "assignment": b""}
    synced = client.ask(ApiKey.SYNC_GROUP, 2, {**member, "assignments": [share]})
    assert synced.error_code == 0, synced
    partition = {"partition_index": 0, "committed_offset": 7, "committed_metadata": ""}
    topics = [{"name": topic, "partitions": [partition]}]
    commit = {
        "group_id": group,
        "generation_id_or_member_epoch": joined.generation_id,
        "member_id": joined.member_id,
        "topics": topics,
    }
    return (
        request_frame(ApiKey.OFFSET_COMMIT, 7, commit),
        request_frame(ApiKey.HEARTBEAT, 3, member),
    )


def segments(broker: Broker, *, quick: bool) -> Iterator[Point]:
    client = client_of(broker)
    create_topic(client, "s", segment_bytes=str(sparse_segments.SEGMENT_BYTES))
    client.close()
    rng = random.Random(7)
    for size in (1, 10, 30) if quick else (1, 10, 100):
        broker.stop()
        start_ms = time.time_ns() // 1_000_000 - _SAFE_DAY_MS
        sparse_segments.write_segments(broker.data_dir, "s", size, start_ms=start_ms)
        before = time.perf_counter()
        broker.start()
        yield Point("start over segments", "s", size, time.perf_counter() - before)
        segment_numbers = [rng.randrange(size) for _ in range(200)]
        times = [sparse_segments.last_timestamp(number, start_ms) for number in segment_numbers]
        _check_last_record(broker, sparse_segments.last_offset(segment_numbers[0]), times[0])
        for name, frames, error_at in (
            (
                "ListOffsets by timestamp",
                [_list_frame(timestamp) for timestamp in times],
                offsets_error_at("s"),
            ),
            ("ListOffsets earliest", [_list_frame(-2)], offsets_error_at("s")),
            ("ListOffsets latest", [_list_frame(-1)], offsets_error_at("s")),
            (
                "fetch at a segment's end",
                [
                    fetch_frame("s", sparse_segments.last_offset(number), 1_000)
                    for number in segment_numbers
                ],
                fetch_error_at("s"),
            ),
        ):
            value = cpu_us(broker, frames, error_at, quick=quick, connections=4)
            yield Point(f"{name} over segments", "us of CPU", size, value)


def _check_last_record(broker: Broker, offset: int, timestamp_ms: int) -> None:
    """Assert that a segment's last record is found by time and read completely."""
    client = client_of(broker)
    partition_rows = [{"partition_index": 0, "timestamp": timestamp_ms}]
    request: Mapping[str, Any] = {
        "replica_id": -1,
        "topics": [{"name": "s", "partitions": partition_rows}],
    }
    listed = client.ask(ApiKey.LIST_OFFSETS, 1, request)
    assert listed.topics[0].partitions[0].offset == offset, listed
    answer = client.ask(ApiKey.FETCH, 12, fetch_request({("s", 0): offset}))
    records = answer.responses[0].partitions[0].records
    assert records[16] == 2, "magic"
    assert int.from_bytes(records[:8]) == offset
    client.close()


def _list_frame(timestamp: int) -> bytes:
    partition = {"partition_index": 0, "timestamp": timestamp, "current_leader_epoch": -1}
    topics = [{"name": "s", "partitions": [partition]}]
    request: Mapping[str, Any] = {"replica_id": -1, "isolation_level": 0, "topics": topics}
    return request_frame(ApiKey.LIST_OFFSETS, 5, request)


KINDS: dict[str, Callable[..., Iterator[Point]]] = {
    "partitions": partitions,
    "connections": connections,
    "groups": groups,
    "segments": segments,
}
