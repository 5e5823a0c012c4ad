"""The kinds of growth: each makes a broker hold more and yields what a request then costs."""

from __future__ import annotations

import os
import random
import statistics
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks import generators, sparse_segments
from benchmarks.machine import cpu_seconds
from tests.support.raw_client import BlockingClient, request_frame
from tests.support.requests import fetch_request, produce_request
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from compat_tests.brokers import Broker

_CONNECTIONS = 20
_PER_TOPIC = 100
_REPEATS = 3
_MOST_RUNS = 12
_NO_GAIN = 0.97
_SESSION_MS = 1_800_000
_SAFE_DAY_MS = 3_600_000


class Point(NamedTuple):
    """One cost at one size."""

    cost: str
    unit: str
    size: int
    value: float


def _cpu_us(
    broker: Broker,
    frames: Sequence[bytes],
    error_at: int,
    *,
    quick: bool,
    connections: int = _CONNECTIONS,
) -> float:
    """Return the broker's CPU per request: the least of some runs, until they are settled."""
    seconds = 0.5 if quick else 1.5
    costs: list[float] = []
    while len(costs) < _MOST_RUNS and not is_settled(costs):
        before = cpu_seconds(broker.process_id)
        found = generators.drive(
            broker, frames, connections=connections, seconds=seconds, error_at=error_at
        )
        costs.append((cpu_seconds(broker.process_id) - before) / found["requests"] * 1e6)
    return min(costs)


def is_settled(costs: Sequence[float]) -> bool:
    """Say whether the last three runs gained nothing over those before: all is warm.

    The first run of all touches what it asks for; a JVM's compiler takes some more.
    """
    last, before = costs[-_REPEATS:], costs[:-_REPEATS]
    return bool(before) and min(last) > _NO_GAIN * min(before)


def _client(broker: Broker) -> BlockingClient:
    return BlockingClient(("127.0.0.1", broker.port))


def _create(client: BlockingClient, topic: str, partitions: int = 1, **configs: str) -> None:
    new = {
        "name": topic,
        "num_partitions": partitions,
        "replication_factor": 1,
        "configs": [{"name": name.replace("_", "."), "value": configs[name]} for name in configs],
    }
    answer = client.ask(ApiKey.CREATE_TOPICS, 5, {"topics": [new], "timeout_ms": 60_000})
    assert answer.topics[0].error_code == 0, answer
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:  # Apache Kafka's leaders come later than its metadata
        found = client.ask(ApiKey.LIST_OFFSETS, 1, _latest(topic, partitions))
        if not any(each.error_code for each in found.topics[0].partitions):
            return
    raise RuntimeError(f"{topic} has not come up")


def _produce_frame(topic: str, partition: int) -> bytes:
    batch = generators.one_batch(records=1, record_bytes=100)
    return request_frame(ApiKey.PRODUCE, 11, produce_request({(topic, partition): batch}))


def _produce_error_at(topic: str) -> int:
    return 4 + 1 + 1 + 1 + len(topic) + 1 + 4


def partitions(broker: Broker, *, quick: bool) -> Iterator[Point]:
    """Measure small appends that are spread over all partitions."""
    client = _client(broker)
    frames: list[bytes] = []
    for size in (1, 10, 100, 1_000) if quick else (1, 10, 100, 1_000, 10_000):
        while len(frames) < size:
            topic = f"p{len(frames):06d}"
            count = min(_PER_TOPIC, size - len(frames))
            _create(client, topic, count)
            frames += [_produce_frame(topic, index) for index in range(count)]
        value = _cpu_us(broker, frames, _produce_error_at("p000000"), quick=quick)
        yield Point("produce 100 B over partitions", "us of CPU", size, value)
    client.close()


def connections(broker: Broker, *, quick: bool) -> Iterator[Point]:
    """Measure small appends over more and more connections, all of them busy."""
    client = _client(broker)
    _create(client, "c", 10)
    frames = [_produce_frame("c", index) for index in range(10)]
    for size in (1, 10, 100, 1_000) if quick else (1, 10, 100, 1_000, 5_000):
        error_at = _produce_error_at("c")
        value = _cpu_us(broker, frames, error_at, quick=quick, connections=size)
        yield Point("produce 100 B over connections", "us of CPU", size, value)
    client.close()


def groups(broker: Broker, *, quick: bool) -> Iterator[Point]:
    """Measure OffsetCommit and Heartbeat with many groups of one member each."""
    client = _client(broker)
    _create(client, "g")
    _find_coordinator(client)
    commits: list[bytes] = []
    heartbeats: list[bytes] = []
    for size in (1, 10, 100) if quick else (1, 10, 100, 1_000):
        while len(commits) < size:
            commit, heartbeat = _join(client, f"group-{len(commits):04d}")
            commits.append(commit)
            heartbeats.append(heartbeat)
        # Correlation id, throttle time, topics, name, partitions, index.
        value = _cpu_us(broker, commits, 4 + 4 + 4 + 2 + 1 + 4 + 4, quick=quick)
        yield Point("OffsetCommit over groups", "us of CPU", size, value)
        value = _cpu_us(broker, heartbeats, 4 + 4, quick=quick)
        yield Point("Heartbeat over groups", "us of CPU", size, value)
    client.close()


def _find_coordinator(client: BlockingClient) -> None:
    """Wait until the offsets topic is there and loaded."""
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:
        found = client.ask(ApiKey.FIND_COORDINATOR, 2, {"key": "group-0000", "key_type": 0})
        fetch = {"group_id": "group-0000", "topics": []}
        if not found.error_code and not client.ask(ApiKey.OFFSET_FETCH, 5, fetch).error_code:
            return
        time.sleep(0.1)
    raise RuntimeError("there is no coordinator after a minute")


def _join(client: BlockingClient, group: str) -> tuple[bytes, bytes]:
    """Form a group of one member; return its frames of OffsetCommit v7 and Heartbeat v3."""
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
    topics = [{"name": "g", "partitions": [partition]}]
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
    """Measure starts, ListOffsets and fetches over segments of 1 GiB that are mostly holes."""
    client = _client(broker)
    _create(client, "s", segment_bytes=str(sparse_segments.SEGMENT_BYTES))
    client.close()
    rng = random.Random(7)
    for size in (1, 10, 30) if quick else (1, 10, 100):
        broker.stop()
        start_ms = time.time_ns() // 1_000_000 - _SAFE_DAY_MS
        sparse_segments.write_segments(broker.data_dir, "s", size, start_ms=start_ms)
        before = time.perf_counter()
        broker.start()
        yield Point("start over segments", "s", size, time.perf_counter() - before)
        some = [rng.randrange(size) for _ in range(200)]
        times = [sparse_segments.last_timestamp(each, start_ms) for each in some]
        _check_found(broker, sparse_segments.last_offset(some[0]), times[0])
        for name, frames, error_at in (
            ("ListOffsets by timestamp", [_list_frame(each) for each in times], _LIST_ERROR_AT),
            ("ListOffsets earliest", [_list_frame(-2)], _LIST_ERROR_AT),
            ("ListOffsets latest", [_list_frame(-1)], _LIST_ERROR_AT),
            (
                "fetch at a segment's end",
                [_fetch_frame("s", sparse_segments.last_offset(each), 1_000) for each in some],
                _FETCH_ERROR_AT,
            ),
        ):
            value = _cpu_us(broker, frames, error_at, quick=quick, connections=4)
            yield Point(f"{name} over segments", "us of CPU", size, value)


def _check_found(broker: Broker, offset: int, timestamp_ms: int) -> None:
    """Assert that the record at a segment's end is found by time, and comes from the disk whole."""
    client = _client(broker)
    asked = [{"partition_index": 0, "timestamp": timestamp_ms}]
    request: Mapping[str, Any] = {
        "replica_id": -1,
        "topics": [{"name": "s", "partitions": asked}],
    }
    found = client.ask(ApiKey.LIST_OFFSETS, 1, request)
    assert found.topics[0].partitions[0].offset == offset, found
    answer = client.ask(ApiKey.FETCH, 12, fetch_request({("s", 0): offset}))
    records = answer.responses[0].partitions[0].records
    assert records[16] == 2, "magic"
    assert int.from_bytes(records[:8]) == offset
    client.close()


# Correlation id, throttle time, topics, name, partitions, index.
_LIST_ERROR_AT = 4 + 4 + 4 + 2 + 1 + 4 + 4
# Correlation id, tags, throttle time, error, session, topics, name, partitions, index.
_FETCH_ERROR_AT = 4 + 1 + 4 + 2 + 4 + 1 + 1 + 1 + 1 + 4


def _list_frame(timestamp: int) -> bytes:
    asked = {"partition_index": 0, "timestamp": timestamp, "current_leader_epoch": -1}
    topics = [{"name": "s", "partitions": [asked]}]
    request: Mapping[str, Any] = {"replica_id": -1, "isolation_level": 0, "topics": topics}
    return request_frame(ApiKey.LIST_OFFSETS, 5, request)


def _fetch_frame(topic: str, offset: int, max_bytes: int) -> bytes:
    request = fetch_request({(topic, 0): offset}, partition_max_bytes=max_bytes)
    return request_frame(ApiKey.FETCH, 12, request)


def old_data(broker: Broker, *, quick: bool) -> Iterator[Point]:
    """Measure a tail reader's latency alone (size 1) and beside a reader of old data (size 2).

    The old data is dropped from the page cache again and again, so each fetch of it waits for the
    disk.
    """
    client = _client(broker)
    _create(client, "o")
    _create(client, "t")
    records = 200 if quick else 1_000
    big = generators.one_batch(records=1, record_bytes=1_000_000)
    old = produce_request({("o", 0): big})
    for _ in range(records):
        client.ask(ApiKey.PRODUCE, 11, old)
    frames = [_fetch_frame("o", offset, 1 << 20) for offset in range(records)]
    rounds = 2_000 if quick else 20_000
    _tail_latencies(client, rounds)  # to warm up
    for size in (1, 2):
        stop = threading.Event()
        threads: list[threading.Thread] = []
        if size == 2:
            evict = threading.Thread(target=_evict, args=(broker, "o", stop))
            read = threading.Thread(target=_read_until, args=(broker, frames, stop))
            threads = [evict, read]
        for thread in threads:
            thread.start()
        try:
            latencies = _tail_latencies(client, rounds)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        cuts = statistics.quantiles(latencies, n=100)
        for name, value in (("p50", cuts[49]), ("p99", cuts[98])):
            yield Point(f"tail reader {name}, alone and beside old data", "us", size, value * 1e6)
    client.close()


def _tail_latencies(client: BlockingClient, rounds: int) -> list[float]:
    """Return the seconds from sending a record to having fetched it."""
    produce = _produce_frame("t", 0)
    offset = 0
    answer = client.ask(ApiKey.LIST_OFFSETS, 1, _latest("t"))
    offset = answer.topics[0].partitions[0].offset
    latencies: list[float] = []
    for number in range(rounds):
        fetch = _fetch_frame("t", offset + number, 10_000)
        before = time.perf_counter()
        client.exchange(produce)
        client.exchange(fetch)
        latencies.append(time.perf_counter() - before)
    return latencies


def _latest(topic: str, partitions: int = 1) -> dict[str, Any]:
    asked = [{"partition_index": index, "timestamp": -1} for index in range(partitions)]
    return {"replica_id": -1, "topics": [{"name": topic, "partitions": asked}]}


def _evict(broker: Broker, topic: str, stop: threading.Event) -> None:
    """Drop a topic's files from the page cache, over and over."""
    while not stop.is_set():
        for path in (broker.data_dir / f"{topic}-0").glob("*.log"):
            descriptor = os.open(path, os.O_RDONLY)
            os.fdatasync(descriptor)  # what is dirty is not dropped
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)
        stop.wait(0.1)


def _read_until(broker: Broker, frames: Sequence[bytes], stop: threading.Event) -> None:
    while not stop.is_set():
        generators.drive(broker, frames, connections=1, seconds=0.5, error_at=_FETCH_ERROR_AT)


KINDS: dict[str, Callable[..., Iterator[Point]]] = {
    "partitions": partitions,
    "connections": connections,
    "groups": groups,
    "segments": segments,
    "old data": old_data,
}
