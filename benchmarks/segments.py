"""Spark reading a topic: the data source over log directories beside the stock Kafka connector.

    python -m benchmarks.segments [--scale 0.05] [--codecs none,lz4] [--pairs 3] [--ours CHECKOUT]

20 million records of 100 B and 2 million of 1 KiB, times the scale, in 4 partitions of a broker of
ours that runs; each read to its end by both in turns (A B, B A), all columns of the connector's.
Printed per case: records a second and CPU of Spark and its Python workers (of the broker, too, for
the connector, which reads through it), each as the median of the pairs, and their ratios; the
largest memory of a worker. --ours is a compiled checkout (`make compiled`): without it the workers
have plain Python, and the first line says so.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.machine import cpu_seconds, describe
from spark_it import records, session
from tests.support.brokers import make_broker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from tests.support.brokers import Broker

PARTITIONS = 4
SIZES = {"100 B": (100, 20_000_000), "1 KiB": (1024, 2_000_000)}
CODECS = ("none", "lz4", "zstd", "gzip", "snappy")
COLUMNS = "key,value,topic,partition,offset,timestamp,timestampType"
CONNECTOR, SEGMENTS = "connector", "segments"


class Read(NamedTuple):
    """One read of a topic to its end."""

    seconds: float
    cpu_s: float
    broker_cpu_s: float


def main() -> None:
    """Measure what the arguments ask for."""
    options = _arguments()
    if options.ours is not None:
        # Before the folder that this runs in, for the workers as well.
        os.environ |= {"PYTHONPATH": str(options.ours.resolve()), "PYTHONSAFEPATH": "1"}
    print(describe())
    print("the workers' columns are made in", "C" if _is_quick() else "plain Python", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        broker = make_broker("wirebroker", Path(folder) / "broker")
        broker.start()
        spark = session.start(Path(folder) / "spark")
        segments = importlib.import_module("wirebroker.segments")
        spark.dataSource.register(segments.SegmentDataSource)
        try:
            print("| records | codec | connector | segments | rate | CPU | worker |")
            print("|---|---|---|---|---|---|---|", flush=True)
            for size, codec in ((size, codec) for size in SIZES for codec in options.codecs):
                print(_measure(spark, broker, size, codec, options), flush=True)
        finally:
            session.stop(spark)
            broker.stop()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of records")
    parser.add_argument("--codecs", type=lambda text: text.split(","), default=list(CODECS))
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--ours", type=Path, help="a compiled checkout for the workers")
    return parser.parse_args()


def _is_quick() -> bool:
    code = "from wirebroker.codecs.records.columns import IS_QUICK; print(IS_QUICK)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip() == "True"


def _measure(
    spark: SparkSession, broker: Broker, size: str, codec: str, options: argparse.Namespace
) -> str:
    """Fill a topic, read it in pairs, and return the table's row."""
    record_bytes, most = SIZES[size]
    count = max(PARTITIONS, int(most * options.scale))
    topic = f"t-{record_bytes}-{codec}"
    _fill(broker, topic, record_bytes, count, codec)
    runs: dict[str, list[Read]] = {CONNECTOR: [], SEGMENTS: []}
    for number in range(options.pairs + 1):
        for kind in sorted(runs, reverse=bool(number % 2)):
            found = _read(spark, broker, kind, topic, count)
            if number:  # the first pair warms up
                runs[kind].append(found)
    rates = {
        kind: count / statistics.median(each.seconds for each in found)
        for kind, found in runs.items()
    }
    cpu = {
        kind: statistics.median(each.cpu_s + each.broker_cpu_s for each in found) / count * 1e6
        for kind, found in runs.items()
    }
    cells = [
        f"{count:,} of {size}",
        codec,
        *(f"{rates[kind]:,.0f}/s, {cpu[kind]:.2f} us" for kind in (CONNECTOR, SEGMENTS)),
        f"{rates[SEGMENTS] / rates[CONNECTOR]:.2f}",
        f"{cpu[CONNECTOR] / cpu[SEGMENTS]:.2f}",
        f"{_largest_worker_mb(_spark_process()):.0f} MB",
    ]
    return f"| {' | '.join(cells)} |"


def _fill(broker: Broker, topic: str, record_bytes: int, count: int, codec: str) -> None:
    """Write records whose values compress to about the half, as logs and JSON do or better."""
    from compat_tests.clients import confluent

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


def _read(spark: SparkSession, broker: Broker, kind: str, topic: str, count: int) -> Read:
    if kind == CONNECTOR:
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
        table = reader.option("subscribe", topic).load()
    else:
        options = {"subscribe": topic, "columns": COLUMNS}
        table = spark.read.format("wirebroker-segments").options(**options)
        table = table.load(str(broker.data_dir))
    assert ",".join(table.columns) == COLUMNS
    cpu, broker_cpu = _cpu_of_tree(_spark_process()), cpu_seconds(broker.process_id)
    begun = time.perf_counter()
    table.write.format("noop").mode("overwrite").save()
    seconds = time.perf_counter() - begun
    found = Read(
        seconds,
        _cpu_of_tree(_spark_process()) - cpu,
        cpu_seconds(broker.process_id) - broker_cpu if kind == CONNECTOR else 0.0,
    )
    assert table.count() == count
    return found


def _spark_process() -> int:
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    assert gateway is not None
    return int(gateway.proc.pid)


def _tree(process_id: int) -> Iterator[int]:
    """Return a process and all below it."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    waiting = [process_id]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += children.get(each, [])


def _cpu_of_tree(process_id: int) -> float:
    return sum(cpu_seconds(each) for each in _tree(process_id))


def _largest_worker_mb(process_id: int) -> float:
    """Return the most memory that a Python worker has had."""
    peaks = [0.0]
    for each in _tree(process_id):
        text = Path(f"/proc/{each}/status").read_text()
        if "Name:\tpython" in text:
            peaks += [int(line.split()[1]) / 1024 for line in text.splitlines() if "VmHWM" in line]
    return max(peaks)


if __name__ == "__main__":
    main()
