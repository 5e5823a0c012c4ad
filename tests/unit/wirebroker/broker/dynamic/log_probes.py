"""Probes for configs that control how records are stored."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.protocol.requests import create_topic, produce
from tests.support.records.batches import batch
from tests.support.tools.waiting import until
from tests.unit.wirebroker.broker.dynamic.dynamic_config_kit import DAY_MS, World, probe
from tests.unit.wirebroker.replica.test_transitions import enter
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.records.codec import Codec

if TYPE_CHECKING:
    from wirebroker.replica.partition import Partition


# -- how records are stored --


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
    assert await w.error_of(batch(b"v")) is ErrorCode.NONE  # from 2023
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
    # With one replica Kafka requires one, whatever is set; the log still gets the value.
    partition = await w.topic()
    await w.set(("min.insync.replicas", "2"))
    assert partition.log.settings.min_insync_replicas == 2
    assert await w.error_of(batch(b"v")) is ErrorCode.NONE


# -- segments --


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
    """Append an hour apart, before and after a change that makes the log roll."""
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
    # The jitter is random, but it makes the bound differ from segment.ms.
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
    sizes = [_size_on_disk(partition) for partition in (first, second)]
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
