"""What a console costs a broker with many partitions and groups.

    python -m benchmarks.console.collector_cost [--partitions 10000] [--groups 1000] [--seconds 60]
        [--ours .venv/compiled]

Measures the CPU of the broker in turn without a console, with one viewer and with ten, in percent
of a core; the console's own CPU and memory, the longest turn of its event loop, and the age of the
oldest values. The first round of requests, which is not limited, is shown apart.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from typing import TYPE_CHECKING

from benchmarks.console.broker import fill, read_arguments, serving
from benchmarks.measurement.machine import cpu_seconds, resident_mb
from wirebroker.base.clock import SystemClock, pause
from wirebroker.console.model.collector import POLLS, Collector
from wirebroker.console.model.settings import cluster_of_flag

if TYPE_CHECKING:
    import argparse

    from wirebroker.console.model.collector import SnapshotReader

_TICK_S = 0.001


async def _view(reader: SnapshotReader) -> None:
    while True:
        snapshot = await reader.next()
        # As a page does: the largest lags.
        sorted(snapshot.groups.values(), key=lambda group: -(group.lag or 0))


async def _watch_loop(holds: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await pause(_TICK_S)
        holds.append(time.perf_counter() - began - _TICK_S)


async def _measure(
    label: str, process_id: int, collector: Collector | None, seconds: float, viewers: int
) -> None:
    holds: list[float] = []
    before = cpu_seconds(process_id), cpu_seconds(os.getpid()), time.perf_counter()
    first_number = 0 if collector is None else collector.snapshot.number
    with contextlib.ExitStack() as stack:
        tasks = [asyncio.create_task(_watch_loop(holds))]
        for _ in range(viewers):
            assert collector is not None
            tasks.append(asyncio.create_task(_view(stack.enter_context(collector.subscribe()))))
        await pause(seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    elapsed_s = time.perf_counter() - before[2]
    broker = 100 * (cpu_seconds(process_id) - before[0]) / elapsed_s
    own = 100 * (cpu_seconds(os.getpid()) - before[1]) / elapsed_s
    snapshots = 0 if collector is None else collector.snapshot.number - first_number
    print(
        f"{label:22} broker {broker:5.2f} %, console {own:5.2f} %,"
        f" {resident_mb(os.getpid()):4.0f} MiB, longest turn {1000 * max(holds):4.0f} ms,"
        f" {snapshots} snapshots"
    )


async def _run(address: str, process_id: int, arguments: argparse.Namespace) -> None:
    collector = Collector(cluster_of_flag(f"scale={address}"), SystemClock())
    filler = Collector(cluster_of_flag(f"filler={address}"), SystemClock())
    await filler.start()
    began = time.perf_counter()
    await fill(filler.client, arguments.partitions, arguments.groups)
    await filler.stop()
    filled_s = time.perf_counter() - began
    print(f"{arguments.partitions} partitions, {arguments.groups} groups ({filled_s:.0f} s)")
    await _measure("no console", process_id, None, arguments.seconds, 0)
    cpu_before, began = cpu_seconds(process_id), time.perf_counter()
    await collector.start()
    with collector.subscribe() as reader:
        while not (await reader.next()).is_complete:
            pass
    print(
        f"first round: {time.perf_counter() - began:.1f} s,"
        f" {cpu_seconds(process_id) - cpu_before:.2f} s of the broker's CPU for {len(POLLS)} polls"
    )
    await _measure("one viewer", process_id, collector, arguments.seconds, 1)
    await _measure("ten viewers", process_id, collector, arguments.seconds, 10)
    await collector.stop()


def main() -> None:
    arguments = read_arguments(__doc__)
    with serving(arguments.ours) as (address, process_id):
        asyncio.run(_run(address, process_id, arguments))


if __name__ == "__main__":
    main()
