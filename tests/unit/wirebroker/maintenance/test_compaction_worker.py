"""The process that compacts: its messages, errors and end."""

from __future__ import annotations

import errno
import os
import select
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.harness.async_tests import on_a_loop
from tests.support.storage.compaction import append
from tests.unit.wirebroker.maintenance.compactor_kit import (
    LIMITS,
    NOW,
    fill,
    kit,
    messages_of,
    offsets,
)
from wirebroker.codecs.records.batch import build_batch
from wirebroker.maintenance.compaction_child import (
    CompactionProgress,
    run_in_child,
)
from wirebroker.maintenance.compaction_order import decode_order, encode_order
from wirebroker.maintenance.compaction_worker import BrokerGoneError
from wirebroker.storage.compaction.range import dirty_range, make_job

if TYPE_CHECKING:
    from pathlib import Path


async def test_worker_process_compacts_like_the_broker(tmp_path):
    async with kit(tmp_path, run=run_in_child) as k:
        t = await k.topic("t")
        fill(t)
        assert await k.compact() == [True]
        assert offsets(t) == [5, 6]
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
