"""Common parts of benchmarks with Spark."""

from __future__ import annotations

import argparse
import os
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka.admin import AdminClient

from benchmarks.measurement.machine import TickedTimes, cpu_seconds
from compat_tests.clients import confluent
from compat_tests.clients.message import WAIT_S
from spark_it.kit import records
from spark_it.tools import session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from tests.support.brokers.brokers import Broker

PARTITIONS = 4
# Record bytes and number of records.
SIZES = {"100 B": (100, 20_000_000), "1 KiB": (1024, 2_000_000)}


class ReadCase(NamedTuple):
    """A case of reads; `size` is its name in the table."""

    size: str
    record_bytes: int
    records: int
    codec: str

    @property
    def case(self) -> str:
        return f"{self.size}, {self.codec}, {self.records}"

    @property
    def topic(self) -> str:
        return f"t-{self.record_bytes}-{self.codec}-{self.records}"

    @property
    def size_mb(self) -> float:
        return self.records * self.record_bytes / 1e6


class Read(NamedTuple):
    """A read of a topic to its end: seconds, CPU of Spark with its workers, and of the broker."""

    seconds: float
    cpu_s: float
    broker_cpu_s: float

    @property
    def all_cpu_s(self) -> float:
        return self.cpu_s + self.broker_cpu_s


class ReadPairs(NamedTuple):
    """Reads of a topic in two ways, in turns, with the largest worker memory and the loads."""

    size: str
    codec: str
    record_count: int
    before: list[Read]
    after: list[Read]
    worker_mb: float
    loads: tuple[float, ...] = ()

    @property
    def load(self) -> float:
        return statistics.median(self.loads)

    @property
    def rate_ratio(self) -> float:
        return median_of(self.before, "seconds") / median_of(self.after, "seconds")

    @property
    def cpu_ratio(self) -> float:
        return median_of(self.before, "all_cpu_s") / median_of(self.after, "all_cpu_s")


def median_of(runs: list[Read], name: str) -> float:
    return statistics.median(getattr(run, name) for run in runs)


def arguments(document: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=document)
    parser.add_argument(
        "--scale", type=float, default=1.0, help="factor for the numbers of records"
    )
    parser.add_argument("--sizes", type=lambda text: text.split(","), default=list(SIZES))
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--ours", type=Path, help="a compiled checkout")
    parser.add_argument("--output", type=Path, help="a picture, .svg")
    return parser


def use_checkout(checkout: Path | None) -> None:
    """Make child processes import a checkout's modules; call this before Spark starts."""
    if checkout is not None:
        # Before the current folder, also for workers.
        os.environ |= {"PYTHONPATH": str(checkout.resolve()), "PYTHONSAFEPATH": "1"}


def in_turns(
    first: str, second: str, pairs: int, read: Callable[[str], Read]
) -> tuple[list[Read], list[Read]]:
    runs: dict[str, list[Read]] = {first: [], second: []}
    for number in range(pairs + 1):
        for kind in sorted(runs, reverse=bool(number % 2)):
            result = read(kind)
            if number:  # the first pair warms up
                runs[kind].append(result)
    return runs[first], runs[second]


def fill(broker: Broker, topic: str, record_bytes: int, count: int, codec: str) -> None:
    """Write records whose values compress to about half, like logs and JSON."""
    records.create_topic(broker.bootstrap, topic, partitions=PARTITIONS)
    producer = confluent.make_producer(
        broker.bootstrap,
        {
            "compression.type": codec,
            "batch.size": 1 << 16,
            "linger.ms": 100,
            "queue.buffering.max.messages": 1_000_000,
        },
    )
    values = [os.urandom(record_bytes // 4).hex() + "v" * (record_bytes // 2) for _ in range(1000)]
    for number in range(count):
        key = b"k%07d" % (number % 1_000_000)
        while True:
            try:
                partition = number % PARTITIONS
                producer.produce(topic, values[number % 1000], key, partition=partition)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(600) == 0


def forget(broker: Broker, topic: str) -> None:
    # Without librdkafka's messages below warnings.
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 4})
    if topic in admin.list_topics(timeout=WAIT_S).topics:
        admin.delete_topics([topic])[topic].result(WAIT_S)


def start_spark(folder: Path) -> SparkSession:
    """Start Spark with Java's normal compilation."""
    return session.start(folder, {"spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder}"})


def spark_process() -> int:
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    assert gateway is not None
    return int(gateway.proc.pid)


def tree(process_id: int) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    waiting = [process_id]
    while waiting:
        current = waiting.pop()
        yield current
        waiting += children.get(current, [])


def cpu_of_tree(process_id: int) -> float:
    return sum(
        cpu_seconds(descendant) + _of_ended_children(descendant) for descendant in tree(process_id)
    )


def _of_ended_children(process_id: int) -> float:
    # Spark starts Python twice to plan a read.
    times = TickedTimes.of(process_id)
    return times.childrens_user_s + times.childrens_kernel_s


def largest_worker_mb(process_id: int) -> float:
    peaks = [0.0]
    for descendant in tree(process_id):
        text = Path(f"/proc/{descendant}/status").read_text()
        if "Name:\tpython" in text:
            peaks += [int(line.split()[1]) / 1024 for line in text.splitlines() if "VmHWM" in line]
    return max(peaks)
