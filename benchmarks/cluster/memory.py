"""Memory, and CPU while idle, of nodes with many replicas.

Topics have 100 partitions with replication factor 3; each node leads a third.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from benchmarks.cluster.admin import Admin, until
from benchmarks.cluster.figures import Figure
from benchmarks.cluster.nodes import FIRST, OURS, THEIRS, Trio, trio
from benchmarks.measurement.machine import cpu_seconds, resident_mb

if TYPE_CHECKING:
    from pathlib import Path

_IN_A_TOPIC = 100
_IDLE_S = 10.0
_QUARTER_OF_THEIRS = 4.0
_TURNS = ([1, 2, 3], [2, 3, 1], [3, 1, 2])


def measure(checkout: Path | None, sizes: tuple[int, ...] = (1_000, 10_000)) -> list[Figure]:
    """Measure each kind in turn, so that they do not share memory."""
    memory: dict[tuple[str, int], list[float]] = {}
    idle: dict[tuple[str, int], list[float]] = {}
    for kind in (OURS, THEIRS):
        with trio(kind, checkout if kind == OURS else None) as nodes:
            existing = 0
            for size in sizes:
                _create(nodes, existing // _IN_A_TOPIC, size // _IN_A_TOPIC)
                existing = size
                time.sleep(_IDLE_S)  # idle time is measured
                idle[kind, size] = _idle_ms(nodes)
                memory[kind, size] = [resident_mb(process_id) for process_id in nodes.process_ids]
                print(f"  {kind}, {size}: {memory[kind, size]} {idle[kind, size]}", flush=True)
    results: list[Figure] = []
    for size in sizes:
        name = f"{size:,} replicas on a node"
        wirebroker_values, kafka_values = (
            [statistics.mean(memory[kind, size])] for kind in (OURS, THEIRS)
        )
        results.append(
            Figure(
                f"{name}: memory",
                "MB",
                wirebroker_values,
                kafka_values,
                least_ratio=_QUARTER_OF_THEIRS,
            )
        )
        wirebroker_values, kafka_values = (
            [statistics.mean(idle[kind, size])] for kind in (OURS, THEIRS)
        )
        results.append(
            Figure(
                f"{name}: CPU of an idle second", "ms", wirebroker_values, kafka_values, digits=1
            )
        )
    return results


def _create(nodes: Trio, first: int, last: int) -> None:
    admin = Admin(nodes.nodes[FIRST])
    until(lambda: admin.brokers() == {1, 2, 3})
    replicas = [_TURNS[index % 3] for index in range(_IN_A_TOPIC)]
    names = [f"many-{number}" for number in range(first, last)]
    for name in names:
        admin.create(name, replicas)
    for name in names:
        admin.await_replicas(name, replicas)
    admin.close()


def _idle_ms(nodes: Trio) -> list[float]:
    before = [cpu_seconds(process_id) for process_id in nodes.process_ids]
    time.sleep(_IDLE_S)  # idle time is measured
    after = [cpu_seconds(process_id) for process_id in nodes.process_ids]
    return [(b - a) * 1000 / _IDLE_S for a, b in zip(before, after, strict=True)]
