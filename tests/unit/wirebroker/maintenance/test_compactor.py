"""Compaction in a running broker: its choice of logs, and concurrent changes."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import select
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.harness.async_tests import on_a_loop
from tests.support.protocol.requests import create_topic, delete_topic
from tests.support.records.clocks import MovedClock
from tests.support.storage.compaction import append, records_of
from tests.support.tools.waiting import PATIENCE_S
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import build_batch
from wirebroker.maintenance.compaction_child import (
    CompactionProgress,
    WorkerDiedError,
    run_here,
    run_in_child,
)
from wirebroker.maintenance.compaction_order import Limits, decode_order, encode_order
from wirebroker.maintenance.compaction_worker import BrokerGoneError, work
from wirebroker.maintenance.compactor import MOST_DEATHS, Compactor
from wirebroker.replica.deleted_files import DeletedSegments
from wirebroker.storage.checkpoints import CLEANER_CHECKPOINT
from wirebroker.storage.compaction.compaction import CleanedGroup
from wirebroker.storage.compaction.range import dirty_range, make_job
from wirebroker.storage.files import Files
from wirebroker.storage.log.wall_clocks import ClockReading

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from pathlib import Path

    from tests.support.protocol.raw_client import RawClient
    from wirebroker.broker.server import Server
    from wirebroker.maintenance.compaction_child import News, Run
    from wirebroker.replica.partition import Partition
    from wirebroker.storage.compaction.compaction import CompactionJob
    from wirebroker.storage.log.segment.segment import Segment

NOW = 1_700_000_000_000
COMPACTED = {"cleanup.policy": "compact"}
LIMITS = Limits(1 << 20, 0.9, 1e300)


class Kit:
    """A broker whose logs are compacted on the test's request."""

    def __init__(self, server: Server, client: RawClient, path: Path, run: Run | None) -> None:
        self.broker = broker_of(server)
        self.server = server
        self.client = client
        self.path = path
        files = server.files
        self.compactor = Compactor(self.broker, files, run or run_here(files))

    async def topic(self, name: str, **configs: str) -> Partition:
        await create_topic(self.client, name, **{**COMPACTED, **configs})
        return self.partition(name)

    def partition(self, name: str) -> Partition:
        return self.broker.replicas.find(name, b"", by_id=False)[0][0]

    async def compact(self) -> list[bool]:
        return [await task for task in await self.compactor.start_due()]

    def checkpoint(self) -> str:
        return (self.path / CLEANER_CHECKPOINT).read_text()


@contextlib.asynccontextmanager
async def kit(
    path: Path, *, run: Run | None = None, files: Files | None = None, **settings: str
) -> AsyncIterator[Kit]:
    configs = {name.replace("_", "."): value for name, value in settings.items()}
    async with (
        running(path, settings={"log.cleaner.enable": "false", **configs}, files=files) as server,
        client_of(server) as client,
    ):
        yield Kit(server, client, path, run)


def fill(partition: Partition, *, segments: int = 3, per_segment: int = 2) -> None:
    log = partition.log
    for _ in range(segments):
        for number in range(per_segment):
            batch = build_batch([(b"key", b"%d" % number, ())], timestamp_ms=NOW)
            append(log, batch, now_ms=NOW)
        log.roll(now_ms=NOW)
    append(log, build_batch([(b"active", b"", ())], timestamp_ms=NOW), now_ms=NOW)


def offsets(partition: Partition) -> list[int]:
    return [record.offset for record in records_of(partition.log)]


def cleaned_files(partition: Partition) -> list[str]:
    names = Files().list_directory(partition.log.directory)
    return [name for name in names if "cleaned" in name or "swap" in name]


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


async def test_worker_process_compacts_like_the_broker(tmp_path):
    async with kit(tmp_path, run=run_in_child) as k:
        t = await k.topic("t")
        fill(t)
        assert await k.compact() == [True]
        assert offsets(t) == [5, 6]
        assert k.checkpoint() == "0\n1\nt 0 6\n"


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


async def fail(error: Exception) -> AsyncGenerator[News, None]:
    yield CompactionProgress(1)
    raise error


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


class Meanwhile:
    def __init__(self) -> None:
        self.is_written = asyncio.Event()
        self.go_on = asyncio.Event()

    async def __call__(self, job: CompactionJob, limits: Limits) -> AsyncGenerator[News, None]:
        async with contextlib.aclosing(run_here(Files())(job, limits)) as worker:
            async for news in worker:
                if isinstance(news, CleanedGroup):
                    self.is_written.set()
                    await self.go_on.wait()
                yield news


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


async def test_topic_deleted_during_compaction_is_not_swapped(tmp_path):
    meanwhile = Meanwhile()
    async with kit(tmp_path, run=meanwhile) as k:
        fill(await k.topic("t"))
        (task,) = await k.compactor.start_due()
        await meanwhile.is_written.wait()
        await delete_topic(k.client, "t")
        meanwhile.go_on.set()
        assert not await task
        assert k.compactor.uncleanable == set()
        assert not (tmp_path / CLEANER_CHECKPOINT).exists()


async def test_log_cut_by_retention_during_compaction_is_unchanged(tmp_path):
    meanwhile = Meanwhile()
    async with kit(tmp_path, run=meanwhile) as k:
        t = await k.topic("t", **{"cleanup.policy": "compact,delete"})
        fill(t)
        (task,) = await k.compactor.start_due()
        await meanwhile.is_written.wait()
        t.log.increment_log_start_offset(2)
        assert [s.base_offset for s in t.log.delete_old_segments(ClockReading(NOW))] == [0]
        meanwhile.go_on.set()
        assert not await task
        assert offsets(t) == [2, 3, 4, 5, 6]
        assert cleaned_files(t) == []
        assert await k.compact() == [True]
        assert offsets(t) == [5, 6]


async def test_swap_of_changed_segments_is_undone(tmp_path, monkeypatch):
    async with kit(tmp_path) as k:
        t = await k.topic("t", **{"cleanup.policy": "compact,delete"})
        fill(t)
        sync = Files.sync_directory

        def cut_and_sync(self: Files, path: str) -> None:
            if len(cleaned_files(t)) and t.log.segments[0].base_offset == 0:
                is_swapping = any("swap" in name for name in cleaned_files(t))
                if is_swapping:
                    t.log.increment_log_start_offset(2)
                    t.log.delete_old_segments(ClockReading(NOW))
            sync(self, path)

        monkeypatch.setattr(Files, "sync_directory", cut_and_sync)
        assert await k.compact() == [False]
        assert offsets(t) == [2, 3, 4, 5, 6]
        assert cleaned_files(t) == []


async def test_swap_waits_for_free_file_descriptors(tmp_path, monkeypatch):
    async with kit(tmp_path) as k:
        t = await k.topic("t")
        fill(t)
        sync = Files.sync_directory
        refused: list[str] = []

        def sync_at_the_third_attempt(self: Files, path: str) -> None:
            is_swapping = any("swap" in name for name in cleaned_files(t))
            if is_swapping and len(refused) < 2:
                refused.append(path)
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
            sync(self, path)

        monkeypatch.setattr(Files, "sync_directory", sync_at_the_third_attempt)
        assert await k.compact() == [True]
        assert len(refused) == 2
        assert offsets(t) == [5, 6]
        assert cleaned_files(t) == []


async def test_swap_with_an_unsynced_start_is_undone(tmp_path, monkeypatch):
    """Otherwise the next start would complete it over a log that has changed."""
    async with kit(tmp_path) as k:
        t = await k.topic("t")
        fill(t)
        sync = Files.sync_directory

        def refuse_once(self: Files, path: str) -> None:
            if any("swap" in name for name in cleaned_files(t)):
                monkeypatch.setattr(Files, "sync_directory", sync)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            sync(self, path)

        monkeypatch.setattr(Files, "sync_directory", refuse_once)
        assert await k.compact() == [False]
        assert cleaned_files(t) == []
        assert offsets(t) == list(range(7))
        assert await k.compact() == [True]
        assert offsets(t) == [5, 6]


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


async def test_cancelled_worker_is_killed(tmp_path):
    async with kit(tmp_path) as k:
        t = await k.topic("t")
        fill(t, per_segment=1000)
        job = make_job(t.log, dirty_range(t.log, None, now_ms=NOW), now_ms=NOW)
        # So slow that it would take days, but it reports that it is alive.
        worker = run_in_child(job, LIMITS._replace(bytes_per_second=1.0))
        assert isinstance(await anext(worker), CompactionProgress)
        await worker.aclose()
        assert await anext(worker, None) is None


def messages_of(job: CompactionJob, *, broker: int) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []
    work(job, LIMITS, broker, sent.append)
    return sent


async def test_incomplete_output_segment_is_not_swapped_in(tmp_path):
    async def run(job: CompactionJob, limits: Limits) -> AsyncGenerator[News, None]:
        async with contextlib.aclosing(run_here(Files())(job, limits)) as worker:
            async for news in worker:
                (tmp_path / "t-0" / f"{0:020d}.{missing}.cleaned").unlink(missing_ok=True)
                yield news

    for missing in ("log", "index", "timeindex"):
        async with kit(tmp_path, run=run) as k:
            t = k.partition("t") if missing != "log" else await k.topic("t")
            if missing == "log":
                fill(t)
            assert await k.compact() == [False]
            assert offsets(t) == list(range(7))
            assert cleaned_files(t) == []


async def test_worker_reports_its_error(tmp_path):
    async with kit(tmp_path) as k:
        t = await k.topic("t")
        fill(t)
        job = make_job(t.log, dirty_range(t.log, None, now_ms=NOW), now_ms=NOW)
        path = tmp_path / "t-0" / f"{0:020d}.log"
        content = path.read_bytes()
        path.write_bytes(content[:-1] + b"\x7f")
        (message,) = messages_of(job, broker=os.getppid())
        assert (message["error"], message["errno"]) == ("corrupt", None)
        path.unlink()
        (message,) = messages_of(job, broker=os.getppid())
        assert (message["error"], message["errno"]) == ("disk", errno.ENOENT)
        path.write_bytes(content)
        *groups, done = messages_of(job, broker=os.getppid())
        assert [list(message["group"]) for message in groups] == [[0, 2, 4]]
        assert done == {"done": 6}


async def test_worker_ends_without_its_broker(tmp_path):
    async with kit(tmp_path) as k:
        t = await k.topic("t")
        fill(t, per_segment=1000)
        job = make_job(t.log, dirty_range(t.log, None, now_ms=NOW), now_ms=NOW)
        with pytest.raises(BrokerGoneError):
            messages_of(job, broker=1)


# A broker that has a slow worker, prints the worker's process id and hangs.
BROKER = """
import asyncio, os, sys
from wirebroker.maintenance.compaction_child import run_in_child
from wirebroker.maintenance.compaction_order import decode_order
job, limits, _ = decode_order(sys.stdin.buffer.readline())
async def main():
    worker = run_in_child(job, limits)
    await anext(worker)
    print(open(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read(), flush=True)
    sys.stdin.read()
asyncio.run(main())
"""


async def order_of_a_slow_compaction(path: Path) -> bytes:
    async with kit(path) as k:
        t = await k.topic("t")
        fill(t, per_segment=1000)
        job = make_job(t.log, dirty_range(t.log, None, now_ms=NOW), now_ms=NOW)
        return encode_order(job, LIMITS._replace(bytes_per_second=1.0))


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="processes are watched as Linux has it")
def test_a_worker_is_killed_with_its_broker(tmp_path):
    order = on_a_loop(order_of_a_slow_compaction(tmp_path))
    command = [sys.executable, "-c", BROKER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as broker:
        assert broker.stdin is not None
        assert broker.stdout is not None
        broker.stdin.write(order)
        broker.stdin.flush()
        worker = os.pidfd_open(int(broker.stdout.readline()))
        assert select.select([worker], [], [], 0)[0] == []
        broker.kill()
        assert select.select([worker], [], [], 30)[0] == [worker]
        os.close(worker)


async def test_compaction_job_round_trips_to_the_worker(tmp_path):
    async with kit(tmp_path) as k:
        t = await k.topic("t")
        batch = build_batch([(b"k", b"v", ())], timestamp_ms=NOW, producer_id=7, producer_epoch=2)
        append(t.log, batch, now_ms=NOW)
        fill(t)
        job = make_job(t.log, dirty_range(t.log, None, now_ms=NOW), now_ms=NOW)
        assert job.producers
        assert decode_order(encode_order(job, LIMITS)) == (job, LIMITS, os.getpid())
