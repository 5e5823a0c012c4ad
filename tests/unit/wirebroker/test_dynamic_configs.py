"""Each config that may be changed while the broker runs is seen to take effect, row by row."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.batches import batch
from tests.support.ports import free_port
from tests.support.raw_client import RawClient
from tests.support.requests import create_topic, produce, produce_request
from tests.support.servers import PATIENCE_S, until
from tests.unit.wirebroker import sasl_probes, tls_probes  # noqa: F401 - register probes
from tests.unit.wirebroker.dynamic_config_kit import (
    DAY_MS,
    PROBES,
    World,
    is_noticed,
    probe,
    world,
)
from tests.unit.wirebroker.test_transitions import enter
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.records.compression import Codec
from wirebroker.config.row import Effect, Mutability
from wirebroker.config.table import BROKER_ROWS
from wirebroker.net import open_listeners
from wirebroker.net.listener import bind
from wirebroker.storage.log.segment_files import DELETED_SUFFIX

if TYPE_CHECKING:
    import socket

    from wirebroker.cluster.partition import Partition


def _changeable() -> list[str]:
    return sorted(
        name
        for name, row in BROKER_ROWS.items()
        if row.mutability is not Mutability.READ_ONLY and row.effect is Effect.READ
    )


@pytest.mark.parametrize("name", _changeable())
async def test_a_change_takes_effect_while_the_broker_runs(name: str, tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE_S), world(tmp_path) as w:
        await (PROBES[name](w) if name in PROBES else is_noticed(w, name))


def test_there_is_no_probe_of_what_cannot_be_changed() -> None:
    assert PROBES.keys() <= set(_changeable())


@pytest.mark.parametrize(
    "name", ["log.retention.ms", "log.preallocate", "max.connections", "log.cleanup.policy"]
)
async def test_what_has_no_probe_is_seen_by_who_reads_it(name: str, tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE_S), world(tmp_path) as w:
        await is_noticed(w, name)


async def test_a_change_that_nobody_reads_is_found_out(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE_S), world(tmp_path) as w:
        # Read when a log is compacted, of which there is none.
        with pytest.raises(AssertionError, match="say by what one sees it"):
            await is_noticed(w, "log.cleaner.io.buffer.load.factor")


# -- how records are stored ------------------------------------------------------------------


@probe("compression.type")
async def _compression(w: World) -> None:
    partition = await w.topic()
    for codec in ("uncompressed", "lz4"):
        await w.set(("compression.type", codec))
        await w.append()
    codecs = [h.attributes & 7 for _, h in partition.log.segments.active.iterate_headers()]
    assert codecs == [Codec.NONE, Codec.LZ4]


def _level(name: str, codec: str, low: str, high: str) -> None:
    async def levels(w: World) -> None:
        partition = await w.topic(compression_type=codec)
        words = [b"%d" % number for number in range(300)]
        text = b" ".join(random.Random(7).choices(words, k=20_000))
        sizes: list[int] = []
        for level in (low, high):
            await w.set((name, level))
            before = partition.log.size_bytes
            await w.append(text)
            sizes.append(partition.log.size_bytes - before)
        assert sizes[1] < sizes[0]

    probe(name)(levels)


_level("compression.gzip.level", "gzip", "1", "9")
_level("compression.lz4.level", "lz4", "1", "12")
_level("compression.zstd.level", "zstd", "1", "19")


@probe("cordoned.log.dirs")
async def _cordoned_directories(w: World) -> None:
    directory = (await w.topic()).directory
    assert not directory.is_cordoned
    await w.set(("cordoned.log.dirs", "*"))
    assert directory.is_cordoned


@probe("message.max.bytes")
async def _message_bytes(w: World) -> None:
    await w.topic()
    records = batch(b"x" * 1000)
    assert await w.error_of(records) is ErrorCode.NONE
    await w.set(("message.max.bytes", "999"))
    assert await w.error_of(records) is ErrorCode.MESSAGE_TOO_LARGE


@probe("log.cleanup.policy")
async def _cleanup_policy(w: World) -> None:
    await w.topic()
    keyless = batch(b"v", key=None)
    assert await w.error_of(keyless) is ErrorCode.NONE
    await w.set(("log.cleanup.policy", "compact"))
    assert await w.error_of(keyless) is ErrorCode.INVALID_RECORD


@probe("log.message.timestamp.type")
async def _timestamp_type(w: World) -> None:
    await w.topic()
    before = await produce(w.client, "t", batch(b"v"))
    await w.set(("log.message.timestamp.type", "LogAppendTime"))
    after = await produce(w.client, "t", batch(b"v"))
    assert before.log_append_time_ms == -1
    assert after.log_append_time_ms > 0


@probe("log.message.timestamp.before.max.ms")
async def _timestamp_before(w: World) -> None:
    await w.topic()
    assert await w.error_of(batch(b"v")) is ErrorCode.NONE  # of 2023
    await w.set(("log.message.timestamp.before.max.ms", "1000"))
    assert await w.error_of(batch(b"v")) is ErrorCode.INVALID_TIMESTAMP


@probe("log.message.timestamp.after.max.ms")
async def _timestamp_after(w: World) -> None:
    await w.topic()
    early = batch(b"v", timestamp_ms=w.now_ms() + DAY_MS)
    assert await w.error_of(early) is ErrorCode.INVALID_TIMESTAMP
    await w.set(("log.message.timestamp.after.max.ms", str(2 * DAY_MS)))
    assert await w.error_of(early) is ErrorCode.NONE


@probe("min.insync.replicas")
async def _min_insync_replicas(w: World) -> None:
    # With one replica Kafka asks for one, whatever is said: the log is told all the same.
    partition = await w.topic()
    await w.set(("min.insync.replicas", "2"))
    assert partition.log.settings.min_insync_replicas == 2
    assert await w.error_of(batch(b"v")) is ErrorCode.NONE


# -- segments --------------------------------------------------------------------------------


@probe("num.replica.fetchers")
async def _fetchers(w: World) -> None:
    await create_topic(w.client, "t", 2)
    partitions, _ = w.broker.replicas.find("t", b"", by_id=False)
    for partition in partitions.values():
        await enter(w.server, partition, leader=2, replicas=(1, 2))
    assert w.server.replication is not None
    fetchers = w.server.replication._fetchers
    assert fetchers is not None
    assert len(fetchers) == 1
    await w.set(("num.replica.fetchers", "2"))
    assert len(fetchers) == 2


@probe("log.segment.bytes")
async def _segment_bytes(w: World) -> None:
    partition = await w.topic()
    half = bytes(600_000)
    await w.append(half)
    await w.append(half)
    assert len(partition.log.segments) == 1
    await w.set(("log.segment.bytes", str(1 << 20)))
    await w.append(half)
    assert len(partition.log.segments) == 2


async def _segment_counts(w: World, partition: Partition, changed: tuple[str, str]) -> None:
    """Append an hour apart, before and after a change that makes it roll."""
    start = w.now_ms() - DAY_MS
    await w.append(at=start)
    await w.append(at=start + DAY_MS // 24)
    assert len(partition.log.segments) == 1
    await w.set(changed)
    await w.append(at=start + 2 * DAY_MS // 24)
    assert len(partition.log.segments) == 2


@probe("log.roll.ms")
async def _roll(w: World) -> None:
    await _segment_counts(w, await w.topic(), ("log.roll.ms", "1000"))


@probe("log.roll.jitter.ms")
async def _roll_jitter(w: World) -> None:
    # The share of the jitter is arbitrary, but it is there: another bound than segment.ms.
    partition = await w.topic(segment_ms=str(DAY_MS))
    start = w.now_ms() - DAY_MS
    await w.append(at=start)
    await w.append(at=start + DAY_MS - 1000)
    assert len(partition.log.segments) == 1
    await w.set(("log.roll.jitter.ms", str(DAY_MS)))
    await w.append(at=start + DAY_MS - 1000)
    assert len(partition.log.segments) == 2


@probe("log.index.interval.bytes")
async def _index_interval(w: World) -> None:
    partition = await w.topic()
    index = partition.log.segments.active.offset_index
    for _ in range(3):
        await w.append()
    assert index.entry_count == 0
    await w.set(("log.index.interval.bytes", "0"))
    for _ in range(3):
        await w.append()
    assert index.entry_count == 3


@probe("log.index.size.max.bytes")
async def _index_size(w: World) -> None:
    partition = await w.topic(index_interval_bytes="0")
    for _ in range(3):
        await w.append()
    assert len(partition.log.segments) == 1
    await w.set(("log.index.size.max.bytes", "8"))
    await w.append()
    assert len(partition.log.segments) == 2


def _size_on_disk(partition: Partition) -> int:
    return Path(partition.log.segments.active.log.path).stat().st_size


@probe("log.preallocate")
async def _preallocate(w: World) -> None:
    first = await w.topic("a", segment_bytes=str(1 << 20))
    await w.set(("log.preallocate", "true"))
    second = await w.topic("b", segment_bytes=str(1 << 20))
    sizes = [_size_on_disk(each) for each in (first, second)]
    assert sizes == [0, 1 << 20]
    first.log.roll(now_ms=w.now_ms(), base_offset=7)
    assert _size_on_disk(first) == 1 << 20


@probe("log.flush.interval.messages")
async def _flush_messages(w: World) -> None:
    partition = await w.topic()
    await w.append()
    assert partition.log.unflushed_count == 1
    await w.set(("log.flush.interval.messages", "1"))
    await w.append()
    await until(lambda: partition.log.unflushed_count == 0)


@probe("log.flush.interval.ms")
async def _flush_ms(w: World) -> None:
    partition = await w.topic()
    await w.append()
    await w.maintenance.flush_by_time()
    assert partition.log.unflushed_count == 1
    await w.set(("log.flush.interval.ms", "0"))
    await w.maintenance.flush_by_time()
    assert partition.log.unflushed_count == 0


# -- what is deleted -------------------------------------------------------------------------


async def _old_segments(w: World) -> Partition:
    partition = await w.topic()
    for _ in range(3):
        await w.append(at=w.now_ms() - 3_600_000)
        partition.log.roll(now_ms=w.now_ms())
    await w.append()
    await w.maintenance.retention.check_all()
    assert len(partition.log.segments) == 4
    return partition


@probe("log.retention.ms")
async def _retention_ms(w: World) -> None:
    partition = await _old_segments(w)
    await w.set(("log.retention.ms", "60000"))
    await w.maintenance.retention.check_all()
    assert len(partition.log.segments) == 1


@probe("log.retention.bytes")
async def _retention_bytes(w: World) -> None:
    partition = await _old_segments(w)
    await w.set(("log.retention.bytes", "1"))
    await w.maintenance.retention.check_all()
    assert len(partition.log.segments) == 1


@probe("log.segment.delete.delay.ms")
async def _delete_delay(w: World) -> None:
    partition = await _old_segments(w)
    await w.set(("log.segment.delete.delay.ms", "0"), ("log.retention.bytes", "1"))
    await w.maintenance.retention.check_all()
    await w.maintenance.remove_deleted()
    names = w.server.files.list_directory(partition.log.directory)
    assert not [name for name in names if name.endswith(DELETED_SUFFIX)]


@probe("producer.id.expiration.ms")
async def _producer_expiration(w: World) -> None:
    partition = await w.topic()
    await w.append(at=w.now_ms() - 60_000, producer_id=7, producer_epoch=0, base_sequence=0)
    await w.maintenance.expire_producers()
    assert partition.log.producer_state.producers.keys() == {7}
    await w.set(("producer.id.expiration.ms", "1000"))
    await w.maintenance.expire_producers()
    assert not partition.log.producer_state.producers


# -- compaction ------------------------------------------------------------------------------


async def _compacted(w: World) -> Partition:
    """Make a log that is all dirty, of an hour ago."""
    partition = await w.topic(cleanup_policy="compact")
    for _ in range(2):
        await w.append(at=w.now_ms() - 3_600_000)
        partition.log.roll(now_ms=w.now_ms())
    return partition


async def _is_begun(w: World) -> bool:
    begun = await w.compactor.begin_what_is_due()
    await until(lambda: len(w.jobs) == len(w.compactor._running))
    return bool(begun) or bool(w.compactor._running)


@probe("log.cleaner.min.cleanable.ratio")
async def _cleanable_ratio(w: World) -> None:
    await w.set(("log.cleaner.min.cleanable.ratio", "1.0"))
    await _compacted(w)
    assert not await _is_begun(w)
    await w.set(("log.cleaner.min.cleanable.ratio", "0.5"))
    assert await _is_begun(w)


@probe("log.cleaner.min.compaction.lag.ms")
async def _min_lag(w: World) -> None:
    await w.set(("log.cleaner.min.compaction.lag.ms", str(DAY_MS)))
    await _compacted(w)
    assert not await _is_begun(w)
    await w.set(("log.cleaner.min.compaction.lag.ms", "0"))
    assert await _is_begun(w)


@probe("log.cleaner.max.compaction.lag.ms")
async def _max_lag(w: World) -> None:
    await w.set(("log.cleaner.min.cleanable.ratio", "1.0"))
    await _compacted(w)
    assert not await _is_begun(w)
    await w.set(("log.cleaner.max.compaction.lag.ms", "1000"))
    assert await _is_begun(w)


@probe("log.cleaner.delete.retention.ms")
async def _delete_retention(w: World) -> None:
    await w.set(("log.cleaner.delete.retention.ms", "12345"))
    await _compacted(w)
    assert await _is_begun(w)
    assert w.jobs[0][0].delete_retention_ms == 12345


@probe("log.cleaner.backoff.ms")
async def _backoff(w: World) -> None:
    await _compacted(w)
    # Nobody asks it to look: the wait of a day ends with the change.
    await w.set(("log.cleaner.backoff.ms", "1"))
    await until(lambda: w.jobs)


@probe("log.cleaner.threads")
async def _cleaner_threads(w: World) -> None:
    await _compacted(w)
    await create_topic(w.client, "other", cleanup_policy="compact")
    for _ in range(2):
        await w.append(topic="other")
        w.partition("other").log.roll(now_ms=w.now_ms())
    assert await _is_begun(w)
    assert len(w.jobs) == 1
    await w.set(("log.cleaner.threads", "2"))
    await _is_begun(w)
    await until(lambda: len(w.jobs) == 2)
    assert w.jobs[1][1].map_bytes == w.jobs[0][1].map_bytes // 2


def _limit(name: str, value: str, field: str, expected: float) -> None:
    async def limits(w: World) -> None:
        await w.set((name, value))
        await _compacted(w)
        assert await _is_begun(w)
        assert getattr(w.jobs[0][1], field) == expected

    probe(name)(limits)


_limit("log.cleaner.dedupe.buffer.size", "2000000", "map_bytes", 2_000_000)
_limit("log.cleaner.io.buffer.load.factor", "0.5", "load_factor", 0.5)
_limit("log.cleaner.io.max.bytes.per.second", "1000", "bytes_per_second", 1000)


# -- transactions ----------------------------------------------------------------------------


@probe("transaction.partition.verification.enable")
async def _verification(w: World) -> None:
    await w.topic()
    init = {"transactional_id": "x", "transaction_timeout_ms": 60_000}
    while True:  # the coordinator's topic is being made
        await w.client.ask(ApiKey.FIND_COORDINATOR, 4, {"key_type": 1, "coordinator_keys": ["x"]})
        producer = await w.client.ask(ApiKey.INIT_PRODUCER_ID, 4, init)
        if producer.error_code == 0:
            break
    records = batch(
        b"v",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=0,
        is_transactional=True,
    )

    async def error() -> ErrorCode:
        request = produce_request({("t", 0): records}, transactional_id="x")
        answer = await w.client.ask(ApiKey.PRODUCE, 10, request)
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    assert await error() is ErrorCode.INVALID_TXN_STATE  # never added to the transaction
    await w.set(("transaction.partition.verification.enable", "false"))
    assert await error() is ErrorCode.NONE


# -- listeners and connections ---------------------------------------------------------------


async def _brokers(client: RawClient) -> list[tuple[str, int]]:
    answer = await client.ask(ApiKey.METADATA, 12, {"topics": []})
    return [(each.host, each.port) for each in answer.brokers]


MAP = "listener.security.protocol.map"
STATIC_LISTENER = "PLAINTEXT://127.0.0.1:0"


@probe("listeners")
async def _listeners(w: World) -> None:
    port = free_port()
    two = f"{STATIC_LISTENER},INSIDE://127.0.0.1:{port}"
    await w.set(("listeners", two), (MAP, "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT"))
    inside = await RawClient.connect(("127.0.0.1", port))
    try:
        assert await _brokers(inside) == [("127.0.0.1", port)]
        await w.set(("listeners", STATIC_LISTENER))
        assert await inside.is_closed()
    finally:
        await inside.close()
    with pytest.raises(ConnectionRefusedError):
        await RawClient.connect(("127.0.0.1", port))
    # The one that clients know the cluster by stays.
    moved = ("listeners", f"PLAINTEXT://127.0.0.1:{port}")
    assert await w.change(moved) is ErrorCode.INVALID_REQUEST
    assert await _brokers(w.client) == [w.server.address]


@probe(MAP)
async def _protocol_map(w: World) -> None:
    more = ("listeners", f"{STATIC_LISTENER},INSIDE://127.0.0.1:0")
    assert await w.change(more) is ErrorCode.INVALID_REQUEST
    await w.set((MAP, "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT"))
    assert await w.change(more) is ErrorCode.NONE
    for unfit in ("PLAINTEXT:PLAINTEXT", "PLAINTEXT:SSL,INSIDE:PLAINTEXT"):
        assert await w.change((MAP, unfit)) is ErrorCode.INVALID_REQUEST


async def _connected(w: World) -> RawClient:
    client = await RawClient.connect(w.server.address)
    await _brokers(client)
    return client


@probe("max.connections")
async def _max_connections(w: World) -> None:
    async with contextlib.AsyncExitStack() as stack:
        others = [await _connected(w) for _ in range(3)]
        for each in others:
            stack.push_async_callback(each.close)
        # Too many by one: the one that has been quiet longest goes.
        await w.set(("max.connections", "3"))
        assert await others[0].is_closed()
        assert await _brokers(others[2]) == [w.server.address]
        newcomer = await RawClient.connect(w.server.address)
        stack.push_async_callback(newcomer.close)
        correlation_id = await newcomer.send(ApiKey.METADATA, 12, {"topics": []})
        await _brokers(w.client)
        assert len(w.server.reception.table or ()) == 3
        await w.set(("max.connections", "4"))
        await newcomer.receive(ApiKey.METADATA, 12, correlation_id)


@probe("max.connections.per.ip")
async def _max_connections_per_ip(w: World) -> None:
    one = await _connected(w)
    await w.set(("max.connections.per.ip", "2"))
    assert await _brokers(one) == [w.server.address]  # what is open stays
    refused = await RawClient.connect(w.server.address)
    assert await refused.is_closed()
    await refused.close()
    await one.close()


@probe("max.connections.per.ip.overrides")
async def _overrides(w: World) -> None:
    await w.set(("max.connections.per.ip.overrides", "localhost:1,10.0.0.1:7"))
    refused = await RawClient.connect(w.server.address)
    assert await refused.is_closed()
    await refused.close()
    # 0 for everybody else is what makes a list of who may come.
    listed = [("max.connections.per.ip", "0"), ("max.connections.per.ip.overrides", "127.0.0.1:9")]
    await w.set(*listed)
    await (await _connected(w)).close()


@probe("max.connection.creation.rate")
async def _creation_rate(w: World) -> None:
    await w.set(("max.connection.creation.rate", "1"))
    clients = [await RawClient.connect(w.server.address) for _ in range(15)]
    assert w.server.listeners is not None
    listener = w.server.listeners["PLAINTEXT"]
    # Ten at once, ten seconds' worth; then one is held.
    await until(lambda: listener._delayed is not None)
    assert len(w.server.reception.table or ()) < 1 + len(clients)
    await w.set(("max.connection.creation.rate", "1000000"))
    await until(lambda: len(w.server.reception.table or ()) == 1 + len(clients))
    for each in clients:
        await each.close()


async def test_a_listener_that_is_bound_while_the_broker_stops_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go = threading.Event(), threading.Event()
    sockets: list[socket.socket] = []

    def slow_bind(*arguments: Any) -> socket.socket:
        began.set()
        assert go.wait(PATIENCE_S)
        sockets.append(bind(*arguments))
        return sockets[0]

    monkeypatch.setattr(open_listeners, "bind", slow_bind)

    async with asyncio.timeout(PATIENCE_S), world(tmp_path) as w:
        listeners = w.server.listeners
        assert listeners is not None
        more = ("listeners", f"{STATIC_LISTENER},INSIDE://127.0.0.1:0")
        change = asyncio.create_task(w.set(more, (MAP, "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT")))
        await until(began.is_set)
        listeners.close()
        go.set()
        await change
        assert "INSIDE" not in listeners
    assert sockets[0].fileno() == -1
