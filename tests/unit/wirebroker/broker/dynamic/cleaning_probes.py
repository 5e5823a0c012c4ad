"""Probes for configs of deletion and compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.protocol.requests import create_topic
from tests.support.tools.waiting import until
from tests.unit.wirebroker.broker.dynamic.dynamic_config_kit import DAY_MS, World, probe
from wirebroker.storage.file_names import DELETED_SUFFIX

if TYPE_CHECKING:
    from wirebroker.replica.partition import Partition


# -- deletion --


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


# -- compaction --


async def _compacted(w: World) -> Partition:
    """Create a log that is entirely dirty and an hour old."""
    partition = await w.topic(cleanup_policy="compact")
    for _ in range(2):
        await w.append(at=w.now_ms() - 3_600_000)
        partition.log.roll(now_ms=w.now_ms())
    return partition


async def _is_begun(w: World) -> bool:
    started = await w.compactor.start_due()
    await until(lambda: len(w.jobs) == len(w.compactor._running))
    return bool(started) or bool(w.compactor._running)


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
    # The change ends the cleaner's wait of a day.
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
