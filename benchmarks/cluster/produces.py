"""acks=all with replication factor 3: rate, CPU of all three processes per record, latency.

One partition, led by node 2: the cost of a record does not depend on the number of partitions.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.cluster import figures
from benchmarks.cluster.admin import Admin, await_served
from benchmarks.cluster.nodes import FIRST, OURS, THEIRS, Trio, trio
from benchmarks.load import generators
from benchmarks.measurement.pairs import measure as measure_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from benchmarks.cluster.figures import Figure
    from benchmarks.measurement.pairs import Sample
    from tests.support.brokers.brokers import Broker

_REPLICAS = [[2, 3, 1]]
_LEADER = 2
_HALF_OF_THEIRS = 2.0
_numbers = itertools.count()


class Replicated:
    """A cluster for pairs.py: driven at the leader, with the CPU of all nodes."""

    def __init__(self, nodes: Trio) -> None:
        self.nodes = nodes

    @property
    def leader(self) -> Broker:
        return self.nodes.nodes[_LEADER]

    @property
    def port(self) -> int:
        return self.leader.port

    @property
    def process_id(self) -> int:
        return self.leader.process_id

    @property
    def process_ids(self) -> Sequence[int]:
        return self.nodes.process_ids


@dataclass(frozen=True)
class ReplicatedProduce:
    """A kind of load; `load` drives (broker, topic)."""

    name: str
    unit: str
    load: Callable[..., Sample]

    def prepare(self, cluster: Replicated) -> str:
        topic, admin = f"replicated-{next(_numbers):05d}", Admin(cluster.nodes.nodes[FIRST])
        admin.create(topic, _REPLICAS)
        admin.await_replicas(topic, _REPLICAS)
        admin.close()
        await_served(cluster.port, topic)
        return topic

    def run(self, cluster: Replicated, topic: str) -> Sample:
        return self.load(cluster.leader, topic)

    def clean(self, cluster: Replicated, topic: str) -> None:
        admin = Admin(cluster.nodes.nodes[FIRST])
        admin.delete(topic)
        admin.close()


def cases(seconds: float) -> list[ReplicatedProduce]:

    def load(connections: int, record_bytes: int) -> Any:
        batch = generators.one_batch(records=1, record_bytes=record_bytes)
        return partial(
            generators.raw_produce,
            connections=connections,
            batch=batch,
            records=1,
            seconds=seconds,
        )

    return [
        ReplicatedProduce("RF 3, acks=all, 100 B, 200 connections", "record", load(200, 100)),
        ReplicatedProduce("RF 3, acks=all, 64 KiB, 4 connections", "request", load(4, 65_000)),
    ]


def measure(
    checkout: Path | None, pairs: int, *, seconds: float = 3.0, most_tries: int
) -> list[Figure]:
    results: list[Figure] = []
    settings = {"log.segment.delete.delay.ms": "1000"}
    with trio(OURS, checkout, settings) as wirebroker, trio(THEIRS, None, settings) as kafka:
        for case in cases(seconds):
            runs = measure_pairs(
                case, Replicated(wirebroker), Replicated(kafka), pairs, most_tries=most_tries
            )
            reach = (None, _HALF_OF_THEIRS)
            results += figures.of_pairs(case.name, runs, unit=case.unit, reach=reach)
            print("\n".join(figure.row() for figure in results[-3:]), flush=True)
    return results
