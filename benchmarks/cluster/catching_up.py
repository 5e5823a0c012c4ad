"""Catch-up: the time in which a reassigned replica copies a gigabyte and gets in sync.

Both nodes are warm, with the pages in memory.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.cluster.admin import Admin, await_served, until
from benchmarks.cluster.figures import Figure
from benchmarks.cluster.nodes import FIRST, OURS, THEIRS, Trio, trio
from benchmarks.load import generators
from benchmarks.measurement.machine import cpu_seconds

if TYPE_CHECKING:
    from pathlib import Path

_TOPIC = "catch-up"
_FROM, _TO = 2, 3
_RECORD_BYTES = 1000
_HALF_OF_THEIRS = 2.0


class Copied(NamedTuple):
    mb_a_second: float
    leader_s: float
    follower_s: float


def measure(checkout: Path | None, pairs: int, *, records: int = 1_000_000) -> list[Figure]:
    """Copy in turns; the first copy of each kind does not count."""
    copies: dict[str, list[Copied]] = {OURS: [], THEIRS: []}
    settings = {"log.segment.delete.delay.ms": "1000"}
    with trio(OURS, checkout, settings) as wirebroker, trio(THEIRS, None, settings) as kafka:
        for nodes in (wirebroker, kafka):
            _fill(nodes, records)
        for number in range(pairs + 1):
            for kind, nodes in ((OURS, wirebroker), (THEIRS, kafka)):
                copied = _copy(nodes, records)
                print(f"  {kind}: {copied}", flush=True)
                if number:
                    copies[kind].append(copied)
    megabytes = records * _RECORD_BYTES / 1e6
    wirebroker_copies, kafka_copies = copies[OURS], copies[THEIRS]

    def figure(name: str, unit: str, metric: str, *, is_rate: bool = False) -> Figure:
        per = 1.0 if is_rate else 1000 / megabytes
        return Figure(
            name,
            unit,
            [getattr(copy, metric) * per for copy in wirebroker_copies],
            [getattr(copy, metric) * per for copy in kafka_copies],
            is_more_better=is_rate,
            least_ratio=None if is_rate else _HALF_OF_THEIRS,
            digits=0 if is_rate else 2,
        )

    return [
        figure("catching up 1 GB", "MB/s", "mb_a_second", is_rate=True),
        figure("catching up: CPU of the leader", "s/GB", "leader_s"),
        figure("catching up: CPU of the follower", "s/GB", "follower_s"),
    ]


def _fill(nodes: Trio, records: int) -> None:
    admin = Admin(nodes.nodes[FIRST])
    admin.create(_TOPIC, [[_FROM]])
    admin.await_replicas(_TOPIC, [[_FROM]])
    admin.close()
    await_served(nodes.nodes[_FROM].port, _TOPIC)
    options = {"records": records, "record_bytes": _RECORD_BYTES}
    generators.librdkafka(nodes.nodes[_FROM], _TOPIC, "produce", options)


def _copy(nodes: Trio, records: int) -> Copied:
    admin = Admin(nodes.nodes[FIRST])
    leader, follower = (nodes.nodes[node_id].process_id for node_id in (_FROM, _TO))
    before = cpu_seconds(leader), cpu_seconds(follower)
    began = time.monotonic()
    admin.reassign(_TOPIC, [_FROM, _TO])
    until(lambda: set(admin.partitions(_TOPIC)[0].isr_nodes) == {_FROM, _TO}, poll_s=0.01)
    took_s = time.monotonic() - began
    copied = Copied(
        records * _RECORD_BYTES / 1e6 / took_s,
        cpu_seconds(leader) - before[0],
        cpu_seconds(follower) - before[1],
    )
    admin.reassign(_TOPIC, [_FROM])
    admin.await_replicas(_TOPIC, [[_FROM]])
    admin.close()
    until(lambda: not any(nodes.nodes[_TO].data_dir.glob(f"{_TOPIC}-*")))
    return copied
