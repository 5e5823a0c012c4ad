"""The cost of brokers in tests (wirebroker.testing).

    python -m benchmarks.scenarios.kit [--rounds 200] [--apache]

Start to `bootstrap_servers`, stop, reset with 20 topics, their snapshot and restore, in this
process and in another (without CPU); the import of the pytest plugin; and a suite of 100 tests,
each with a topic, records and a consumer. --apache runs the suite on one Apache Kafka as well. A
failure ends the benchmark.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks.measurement.brokers import apache_kafka, version
from benchmarks.measurement.machine import describe
from wirebroker.testing import Broker

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.testing import Snapshot

_TOPICS: Final = {f"topic-{number}": 1 for number in range(20)}
_IMPORTS: Final = 21
_TESTS: Final = 100
_SUITE: Final = f"""\
import os
import confluent_kafka
import pytest

if "SERVERS" in os.environ:
    @pytest.fixture
    def servers():
        return os.environ["SERVERS"]
else:
    @pytest.fixture
    def servers(wirebroker):
        return wirebroker.bootstrap_servers

@pytest.mark.parametrize("number", range({_TESTS}))
def test_what_was_produced_is_consumed(servers, number):
    topic = f"orders-{{number}}"
    producer = confluent_kafka.Producer({{"bootstrap.servers": servers}})
    for value in range(10):
        producer.produce(topic, str(value))
    assert producer.flush(20) == 0
    consumer = confluent_kafka.Consumer({{"bootstrap.servers": servers, "group.id": topic}})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    assert len(consumer.consume(10, 20)) == 10
    consumer.close()
"""
_IMPORT: Final = """\
import time
import pytest
cpu, before = time.process_time(), time.perf_counter()
import wirebroker.testing.plugin
print((time.perf_counter() - before) * 1000, (time.process_time() - cpu) * 1000)
"""


class Row(NamedTuple):
    """Durations and CPU of a repeated action, in ms."""

    what: str
    times_ms: list[float]
    cpu_ms: list[float]

    def __str__(self) -> str:
        ordered = sorted(self.times_ms)
        p99 = ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
        median = statistics.median(ordered)
        cpu = f"{statistics.median(self.cpu_ms):.1f} ms" if self.cpu_ms else ""
        return f"| {self.what} | {len(ordered)} | {median:.1f} ms | {p99:.1f} ms | {cpu} |"

    def add(self, work: Callable[[], object]) -> None:
        cpu, before = time.process_time(), time.perf_counter()
        work()
        self.times_ms.append((time.perf_counter() - before) * 1000)
        self.cpu_ms.append((time.process_time() - cpu) * 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--apache", action="store_true", help="run the tests on Apache Kafka too")
    arguments = parser.parse_args()
    print(f"{version(None)}, {describe()}\n")
    print("| what | times | median | p99 | CPU |\n| --- | --- | --- | --- | --- |")
    for row in _life(arguments.rounds, own_process=False):
        print(row, flush=True)
    for row in _life(max(5, arguments.rounds // 10), own_process=True):
        print(row._replace(cpu_ms=[]), flush=True)
    imports = [_import_ms() for _ in range(_IMPORTS)]
    print(Row("import of the plugin", *map(list, zip(*imports, strict=True))), flush=True)
    with tempfile.TemporaryDirectory(prefix="wirebroker-kit-") as name:
        folder = Path(name)
        print(
            f"\n{_TESTS} tests with the kit: {_cost_of(partial(_run_suite, folder, {}))}",
            flush=True,
        )
        if arguments.apache:
            cost = _cost_of(partial(_run_on_apache, folder))
            print(f"the same on one Apache Kafka, its start and stop included: {cost}")


def _life(rounds: int, *, own_process: bool) -> list[Row]:
    location = "in its own process" if own_process else "in the tests' process"
    starts, stops = Row(f"start, {location}", [], []), Row(f"stop, {location}", [], [])
    for _ in range(rounds):
        broker = Broker(own_process=own_process)
        starts.add(broker.start)
        stops.add(broker.stop)
        broker.close()
    resets = Row(f"reset with 20 topics, {location}", [], [])
    snapshots = Row(f"snapshot of 20 topics, {location}", [], [])
    restores = Row(f"restore of these topics, {location}", [], [])
    with Broker(own_process=own_process) as broker:
        for _ in range(rounds):
            broker.create_topics(_TOPICS)
            for topic in _TOPICS:
                broker.produce(topic, "one")
            resets.add(broker.reset)
        broker.create_topics(_TOPICS)
        prepared = broker.snapshot()
        for _ in range(rounds):
            for topic in _TOPICS:
                broker.produce(topic, "one")
            copies: list[Snapshot] = []
            snapshots.add(lambda: copies.append(broker.snapshot()))  # noqa: B023 - called at once
            copies.pop().remove()
            # The same each time, so that the data does not grow.
            restores.add(partial(broker.restore, prepared))
    return [starts, stops, resets, snapshots, restores]


def _import_ms() -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, "-c", _IMPORT], capture_output=True, text=True, check=True
    )
    took_ms, cpu_ms = done.stdout.split()
    return float(took_ms), float(cpu_ms)


def _cost_of(work: Callable[[], None]) -> str:
    before, cpu_before = time.perf_counter(), os.times()
    work()
    took_s, cpu = time.perf_counter() - before, os.times()
    cpu_s = sum(cpu[:4]) - sum(cpu_before[:4])
    return f"{took_s:.1f} s, {cpu_s:.1f} s of CPU"


def _run_on_apache(folder: Path) -> None:
    kafka = apache_kafka(folder / "kafka")
    kafka.start()
    try:
        _run_suite(folder, {"SERVERS": kafka.bootstrap})
    finally:
        kafka.stop()


def _run_suite(folder: Path, variables: dict[str, str]) -> None:
    (folder / "test_suite.py").write_text(_SUITE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_suite.py"]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | variables, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)


if __name__ == "__main__":
    main()
