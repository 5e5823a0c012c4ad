"""`serve --workers 2`, compared with one process and with one Apache Kafka, on two cores.

Each worker leads a partition and has a generator.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.cluster import figures
from benchmarks.cluster.admin import Admin, await_served, until
from benchmarks.load import generators
from benchmarks.measurement.brokers import Checkout, apache_kafka
from benchmarks.measurement.pairs import Pairs, Sample
from benchmarks.measurement.pairs import measure as measure_pairs
from tests.support.protocol.raw_client import request_frame
from tests.support.protocol.requests import produce_request
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.cluster.figures import Figure
    from tests.support.brokers.brokers import Broker

_WORKERS = 2
_LEAST_RATE, _MOST_CPU = 1.5, 1.1
_VERSION = 11
_numbers = itertools.count()


class Workers(Checkout):
    @property
    def process_id(self) -> int:
        """Worker 1, which listens at the port."""
        return self._children()[0]

    @property
    def process_ids(self) -> Sequence[int]:
        return [super().process_id, *self._children()]

    def _command(self) -> list[str]:
        return [*super()._command(), "--workers", str(_WORKERS)]

    def _children(self) -> list[int]:
        path = Path(f"/proc/{super().process_id}/task/{super().process_id}/children")
        return sorted(int(child) for child in path.read_text().split())


@dataclass(frozen=True)
class Spread:
    """Two generators, each at the leader of a partition."""

    name: str
    unit: str
    connections: int
    batch: bytes
    seconds: float

    def prepare(self, broker: Broker) -> str:
        topic, admin = f"spread-{next(_numbers):05d}", Admin(broker)
        nodes = sorted(admin.brokers())
        replicas = [[nodes[index % len(nodes)]] for index in range(_WORKERS)]
        admin.create(topic, replicas)
        admin.await_replicas(topic, replicas)
        admin.close()
        for index, port in enumerate(self._leaders(broker, topic)):
            await_served(port, topic, index)
        return topic

    def run(self, broker: Broker, topic: str) -> Sample:
        leaders = self._leaders(broker, topic)
        with ThreadPoolExecutor(len(leaders)) as threads:
            results = list(threads.map(partial(self._drive, topic), range(len(leaders)), leaders))
        seconds = max(result["seconds"] for result in results)
        requests = sum(result["requests"] for result in results)
        share = sum(result["cpu_s"] for result in results) / seconds / 2
        p99 = max(result["p99_us"] for result in results)
        return Sample(requests, seconds, {"p99_us": p99, "generators": share})

    def clean(self, broker: Broker, topic: str) -> None:
        admin = Admin(broker)
        admin.delete(topic)
        admin.close()

    def _leaders(self, broker: Broker, topic: str) -> list[int]:
        admin = Admin(broker)
        ports = admin.ports()
        leader_ports = [ports[partition.leader_id] for partition in admin.partitions(topic)]
        admin.close()
        return leader_ports

    def _drive(self, topic: str, index: int, port: int) -> dict[str, float]:
        request = produce_request({(topic, index): self.batch})
        frame = request_frame(ApiKey.PRODUCE, _VERSION, request)
        return generators.drive(
            port,
            [frame],
            connections=self.connections // _WORKERS,
            seconds=self.seconds,
            error_at=generators.produce_error_at(topic),
        )


def cases(seconds: float) -> list[Spread]:
    small = generators.one_batch(records=1, record_bytes=100)
    large = generators.one_batch(records=1, record_bytes=65_000)
    return [
        Spread("100 B, 200 connections", "record", 200, small, seconds),
        Spread("64 KiB, 4 connections", "request", 4, large, seconds),
    ]


def measure(
    checkout: Path | None, pairs: int, *, seconds: float = 3.0, most_tries: int
) -> list[Figure]:
    results: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="wirebroker-workers-") as name:
        several = Workers(Path(name) / "workers", checkout)
        kafka = apache_kafka(Path(name) / "theirs")
        single = Checkout(Path(name) / "one", checkout)
        try:
            for broker in (several, kafka, single):
                broker.start()
            admin = Admin(several)
            until(lambda: len(admin.brokers()) == _WORKERS)
            admin.close()
            for case in cases(seconds):
                runs = measure_pairs(case, several, kafka, pairs, single, most_tries=most_tries)
                results += _figures(case, runs)
        finally:
            for broker in (several, kafka, single):
                broker.stop()
    return results


def _figures(case: Spread, runs: Pairs) -> list[Figure]:
    kafka = figures.of_pairs(
        f"2 workers compared with Kafka, {case.name}", runs, unit=case.unit, reach=(None, None)
    )
    beside_one = Pairs(ours=runs.ours, theirs=runs.plain)
    single_process = figures.of_pairs(
        f"2 workers compared with one process, {case.name}",
        beside_one,
        unit=case.unit,
        reach=(_LEAST_RATE, 1 / _MOST_CPU),
    )
    shares: dict[str, Any] = {
        kind: statistics.median(run.extra["generators"] for run in kind_runs)
        for kind, kind_runs in (("workers", runs.ours), ("Kafka", runs.theirs), ("one", runs.plain))
    }
    print("\n".join(figure.row() for figure in (*kafka, *single_process)), flush=True)
    print("  generators took", {kind: f"{share:.0%}" for kind, share in shares.items()}, flush=True)
    return [*kafka, *single_process, _share(case, runs)]


def _share(case: Spread, runs: Pairs) -> Figure:
    worker_shares, single_shares = (
        [run.extra["generators"] * 100 for run in side_runs]
        for side_runs in (runs.ours, runs.plain)
    )
    name = f"2 workers and one process, {case.name}: both cores' share of the generators"
    return figures.Figure(name, "%", worker_shares, single_shares, is_more_better=True)
