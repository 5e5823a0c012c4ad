"""Compaction in a running broker: its choice of logs, and concurrent changes."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.protocol.requests import create_topic, delete_topic
from tests.support.records.clocks import MovedClock
from tests.support.storage.compaction import append
from tests.support.tools.waiting import PATIENCE_S
from tests.unit.wirebroker.maintenance.compactor_kit import (
    COMPACTED,
    NOW,
    Kit,
    Meanwhile,
    cleaned_files,
    fail,
    fill,
    kit,
    offsets,
)
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import build_batch
from wirebroker.maintenance.compaction_child import (
    CompactionProgress,
    WorkerDiedError,
    run_here,
)
from wirebroker.maintenance.compactor import MOST_DEATHS
from wirebroker.replica.deleted_files import DeletedSegments
from wirebroker.storage.checkpoints import CLEANER_CHECKPOINT
from wirebroker.storage.files import Files
from wirebroker.storage.log.wall_clocks import ClockReading

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from wirebroker.maintenance.compaction_child import News
    from wirebroker.maintenance.compaction_order import Limits
    from wirebroker.storage.compaction.compaction import CompactionJob
    from wirebroker.storage.log.segment.segment import Segment


async def test_compaction_updates_log_and_checkpoint(tmp_path):
    async with kit(tmp_path) as k:
        t = await k.topic("t")
        await create_topic(k.client, "other")
        fill(t)
        fill(k.partition("other"))
        assert await k.compact() == [True]
        assert offsets(t) == [5, 6]
        assert k.checkpoint() == "0\n1\nt 0 6\n"
        assert len(k.partition("other").log.segments) == 4
        assert await k.compact() == []
        deleted = k.broker.replicas.deleted_segments
        assert len(deleted) == 3
        assert cleaned_files(t) == []
    async with kit(tmp_path) as k:
        assert offsets(k.partition("t")) == [5, 6]
        assert await k.compact() == []


async def test_log_is_flushed_before_records_are_removed(tmp_path):
    # In the active segment: a transaction marker or a producer's newest batch.
    async with kit(tmp_path) as k:
        log = (await k.topic("t")).log
        fill(k.partition("t"))
        log.mark_flushed(log.segments.active.base_offset)
        await k.compact()
        assert log.recovery_point == log.log_end_offset


async def test_dirtiest_log_is_compacted_first(tmp_path):
    async with kit(tmp_path) as k:
        half, whole = await k.topic("half"), await k.topic("whole")
        fill(half)
        await k.compact()
        fill(half, segments=1)
        fill(whole)
        await k.compact()
        assert k.checkpoint() == "0\n2\nhalf 0 6\nwhole 0 6\n"
        await k.compact()
        assert k.checkpoint() == "0\n2\nhalf 0 9\nwhole 0 6\n"


async def test_concurrent_compactions_are_limited_by_cleaner_threads(tmp_path):
    async with kit(tmp_path, log_cleaner_threads="2") as k:
        for name in "abc":
            fill(await k.topic(name))
        assert len(await k.compactor.start_due()) == 2
        assert await k.compactor.start_due() == []
        await k.compactor.stop()


async def test_moved_log_does_not_block_other_compactions(tmp_path):
    async with kit(tmp_path, log_cleaner_threads="1") as k:
        moved, other = await k.topic("moved"), await k.topic("other")
        fill(moved, segments=9)
        fill(other)
        async with moved.upkeep_lock, asyncio.timeout(PATIENCE_S):
            assert await k.compact() == [True]
            assert k.checkpoint() == "0\n1\nother 0 6\n"
            assert await k.compact() == []
        assert await k.compact() == [True]


async def test_log_below_the_dirty_ratio_is_not_compacted(tmp_path):
    async with kit(tmp_path) as k:
        t = await k.topic("t", **{"min.cleanable.dirty.ratio": "0.9"})
        fill(t)
        await k.compact()
        fill(t, segments=1)
        assert await k.compact() == []


async def test_broker_compacts_automatically_unless_disabled(tmp_path, monkeypatch):
    settings = {"log.cleaner.backoff.ms": "1"}
    async with running(tmp_path, settings=settings) as server, client_of(server) as client:
        await create_topic(client, "t", **COMPACTED)
        t = broker_of(server).replicas.find("t", b"", by_id=False)[0][0]
        done = asyncio.Event()
        swapped: list[Segment] = []

        def add(_: object, segments: list[Segment], *, delay_ms: int) -> None:
            assert delay_ms == 60_000
            swapped.extend(segments)
            done.set()

        monkeypatch.setattr(DeletedSegments, "add", add)
        fill(t)
        await asyncio.wait_for(done.wait(), 30)
        assert [segment.base_offset for segment in swapped] == [0, 2, 4]
        assert offsets(t) == [5, 6]


async def test_dying_workers_make_a_log_uncleanable_but_not_others(tmp_path):
    def run(job: CompactionJob, limits: Limits) -> AsyncGenerator[News, None]:
        if "bad" in job.directory:
            return fail(WorkerDiedError("killed"))
        return run_here(Files())(job, limits)

    async with kit(tmp_path, run=run, log_cleaner_threads="5") as k:
        bad, good = await k.topic("bad"), await k.topic("good")
        fill(bad)
        fill(good)
        assert sorted(await k.compact()) == [False, True]
        for _ in range(MOST_DEATHS - 1):
            assert await k.compact() == [False]
        assert k.compactor.uncleanable == {bad}
        assert await k.compact() == []
        assert offsets(bad) == list(range(7))


async def test_segments_deleted_by_retention_do_not_make_a_log_uncleanable(tmp_path):
    async def run(job: CompactionJob, limits: Limits) -> AsyncGenerator[News, None]:
        yield CompactionProgress(0)
        assert t.log.delete_old_segments(ClockReading(NOW))
        raise WorkerDiedError("the segment is missing")

    async with kit(tmp_path, run=run) as k:
        t = await k.topic("t", **{"cleanup.policy": "compact,delete", "retention.bytes": "1"})
        for _ in range(MOST_DEATHS):
            fill(t)
            assert await k.compact() == [False]
        assert not k.compactor.uncleanable


async def test_unreadable_log_is_uncleanable(tmp_path):
    def run(job: CompactionJob, limits: Limits) -> AsyncGenerator[News, None]:
        return fail(KafkaError(ErrorCode.CORRUPT_MESSAGE, "a wrong CRC"))

    async with kit(tmp_path, run=run) as k:
        t = await k.topic("t")
        fill(t)
        assert await k.compact() == [False]
        assert k.compactor.uncleanable == {t}
        assert t.directory.is_online


async def test_failing_disk_goes_offline_but_a_full_one_does_not(tmp_path):
    number = errno.ENOSPC

    def run(job: CompactionJob, limits: Limits) -> AsyncGenerator[News, None]:
        return fail(OSError(number, "failed"))

    async with kit(tmp_path, run=run) as k:
        t = await k.topic("t")
        fill(t)
        assert await k.compact() == [False]
        assert t.directory.is_online
        number = errno.EIO
        assert await k.compact() == [False]
        assert not t.directory.is_online
        assert await k.compact() == []
        assert k.compactor.uncleanable == set()


async def test_clock_jump_does_not_age_tombstones(tmp_path):
    clock = MovedClock()
    settings = {"log.cleaner.enable": "false"}
    async with (
        running(tmp_path, settings=settings, clock=clock) as server,
        client_of(server) as client,
    ):
        k = Kit(server, client, tmp_path, None)
        t = await k.topic("t")
        append(t.log, build_batch([(b"gone", None, ())], timestamp_ms=NOW), now_ms=NOW)
        fill(t)
        await k.compact()
        clock.jumped_ms = 400 * 86_400_000
        fill(t)
        assert await k.compact() == [True]
        assert offsets(t)[0] == 0


async def test_stop_cancels_compaction_and_deletes_its_output(tmp_path):
    meanwhile = Meanwhile()
    async with kit(tmp_path, run=meanwhile) as k:
        t = await k.topic("t")
        fill(t)
        (task,) = await k.compactor.start_due()
        await meanwhile.is_written.wait()
        assert cleaned_files(t)
        await k.compactor.stop()
        assert task.cancelled()
        assert cleaned_files(t) == []
        assert offsets(t) == list(range(7))


async def test_damaged_checkpoint_is_ignored(tmp_path):
    (tmp_path / CLEANER_CHECKPOINT).write_text("nonsense")
    async with kit(tmp_path) as k:
        fill(await k.topic("t"))
        assert await k.compact() == [True]
        assert k.checkpoint() == "0\n1\nt 0 6\n"


async def test_recreated_topic_does_not_inherit_the_checkpoint(tmp_path):
    async with kit(tmp_path) as k:
        fill(await k.topic("t"))
        assert await k.compact() == [True]
        await delete_topic(k.client, "t")
        assert await k.compact() == []
        assert k.checkpoint() == "0\n0\n"
    (tmp_path / CLEANER_CHECKPOINT).write_text("0\n1\nt 0 6\n")
    async with kit(tmp_path) as k:
        fill(await k.topic("other"), segments=1)
        await k.compact()
        assert " 6" not in k.checkpoint()


async def test_checkpoint_beyond_the_log_end_is_corrected(tmp_path):
    (tmp_path / CLEANER_CHECKPOINT).write_text("0\n1\nt 0 99\n")
    async with kit(tmp_path) as k:
        fill(await k.topic("t"))
    (tmp_path / CLEANER_CHECKPOINT).write_text("0\n1\nt 0 99\n")
    async with kit(tmp_path) as k:
        assert await k.compact() == [True]
        assert k.checkpoint() == "0\n1\nt 0 6\n"
