"""The cost of pipelines: Spark with either broker, an archive's rate, the latency of windows.

    python -m benchmarks.spark.pipelines [--scale 0.05] [--sizes '1 KiB'] [--pairs 3]
                                   [--ours CHECKOUT] [--only NAME] [--seconds 120]
                                   [--output latency.svg]

    brokers   20 million records of 100 B and 2 million of 1 KiB, times the scale, read to their
              end by Spark's connector from wirebroker and from Apache Kafka in turns (A B, B A):
              records a second, CPU of Spark and of the broker, medians of the pairs
    archive   the same topics of a running wirebroker to Parquet, verified: MB of log a second,
              CPU of Spark with its workers, the largest memory of a worker
    windows   1,000 records a second, windows of a second, a batch each half second: from a window's
              end until a consumer has its record, p50, p99 and the longest

--ours is a compiled checkout (`make compiled`), for wirebroker and for Spark's workers.
"""

from __future__ import annotations

import functools
import statistics
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measurement.brokers import Checkout, apache_kafka
from benchmarks.measurement.machine import cpu_seconds, describe
from benchmarks.spark import spark_pictures
from benchmarks.spark.spark_reads import (
    PARTITIONS,
    SIZES,
    Read,
    ReadPairs,
    arguments,
    cpu_of_tree,
    fill,
    in_turns,
    largest_worker_mb,
    median_of,
    spark_process,
    start_spark,
    use_checkout,
)
from compat_tests.clients import confluent
from spark_it.kit import job_kit, records
from spark_it.tools import session

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from tests.support.brokers.brokers import Broker

WARM_S, A_SECOND = 30, 1_000


def main() -> None:
    options = _arguments()
    use_checkout(options.ours)
    print(describe(), flush=True)
    parts = {"brokers": _brokers, "archive": _archive, "windows": _windows}
    for name, measure in parts.items():
        if options.only in (None, name):
            with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
                spark = start_spark(Path(folder) / "spark")
                stack.callback(session.stop, spark)
                measure(spark, Path(folder), options, stack)


def _arguments() -> argparse.Namespace:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=int, default=120, help="how long to watch windows")
    parser.add_argument("--only", choices=("brokers", "archive", "windows"))
    return parser.parse_args()


def _started(stack: ExitStack, broker: Broker) -> Broker:
    stack.callback(broker.stop)
    broker.start()
    return broker


def _brokers(
    spark: SparkSession, folder: Path, options: argparse.Namespace, stack: ExitStack
) -> None:
    kafka = _started(stack, apache_kafka(folder / "apache"))
    wirebroker = _started(stack, Checkout(folder / "ours", options.ours))
    print("| records | through Apache Kafka | through wirebroker | rate | CPU | broker's CPU |")
    print("|---|---|---|---|---|---|", flush=True)
    for size in options.sizes:
        record_bytes, full_count = SIZES[size]
        count = max(PARTITIONS, int(full_count * options.scale))
        topic = f"t-{record_bytes}"
        both = {"a": kafka, "b": wirebroker}
        for broker in both.values():
            fill(broker, topic, record_bytes, count, "none")
        read = functools.partial(_read_of, spark, both, topic, count)
        runs = in_turns("a", "b", options.pairs, read)
        pairs = ReadPairs(size, "none", count, *runs, 0.0)
        cells = [
            f"{count:,} of {size}",
            *(
                f"{count / median_of(reads, 'seconds'):,.0f}/s, "
                f"{median_of(reads, 'cpu_s') / count * 1e6:.2f} + "
                f"{median_of(reads, 'broker_cpu_s') / count * 1e6:.2f} us"
                for reads in runs
            ),
            f"{pairs.rate_ratio:.2f}",
            f"{pairs.cpu_ratio:.2f}",
            f"{median_of(runs[0], 'broker_cpu_s') / median_of(runs[1], 'broker_cpu_s'):.2f}",
        ]
        print(f"| {' | '.join(cells)} |", flush=True)


def _read_of(
    spark: SparkSession, brokers: Mapping[str, Broker], topic: str, count: int, kind: str
) -> Read:
    broker = brokers[kind]
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    table = reader.option("subscribe", topic).load()
    cpu, broker_cpu = cpu_of_tree(spark_process()), cpu_seconds(broker.process_id)
    began = time.perf_counter()
    table.write.format("noop").mode("overwrite").save()
    result = Read(
        time.perf_counter() - began,
        cpu_of_tree(spark_process()) - cpu,
        cpu_seconds(broker.process_id) - broker_cpu,
    )
    assert table.count() == count
    return result


def _archive(
    spark: SparkSession, folder: Path, options: argparse.Namespace, stack: ExitStack
) -> None:
    from wirebroker.pipelines.archive.archive import archive, compare

    wirebroker = _started(stack, Checkout(folder / "ours", options.ours))
    print("| archive of | MB/s of log | records/s | CPU per record | worker | Parquet / log |")
    print("|---|---|---|---|---|---|", flush=True)
    for size in options.sizes:
        record_bytes, full_count = SIZES[size]
        count = max(PARTITIONS, int(full_count * options.scale))
        topic = f"t-{record_bytes}"
        fill(wirebroker, topic, record_bytes, count, "none")
        log_bytes = sum(
            file.stat().st_size for file in wirebroker.data_dir.glob(f"{topic}-*/*.log")
        )
        cpu, began = cpu_of_tree(spark_process()), time.perf_counter()
        archived = archive(spark, str(wirebroker.data_dir), topic, folder / topic)
        seconds = time.perf_counter() - began
        used_s = cpu_of_tree(spark_process()) - cpu
        assert archived == count
        pairs = compare(spark, str(wirebroker.data_dir), topic, folder / topic)
        assert len(pairs) == PARTITIONS
        assert all(in_archive == logged for in_archive, logged in pairs)
        files = (folder / topic / "records").rglob("*.parquet")
        cells = [
            f"{count:,} of {size}",
            f"{log_bytes / seconds / 1e6:.1f}",
            f"{count / seconds:,.0f}",
            f"{used_s / count * 1e6:.2f} us",
            f"{largest_worker_mb(spark_process()):.0f} MB",
            f"{sum(file.stat().st_size for file in files) / log_bytes:.2f}",
        ]
        print(f"| {' | '.join(cells)} |", flush=True)


def _windows(
    spark: SparkSession, folder: Path, options: argparse.Namespace, stack: ExitStack
) -> None:
    from wirebroker.pipelines.commands.job_commands import run_job
    from wirebroker.pipelines.run.job_run import StopRequest

    wirebroker = _started(stack, Checkout(folder / "ours", options.ours))
    records.create_topic(wirebroker.bootstrap, "events", partitions=1)
    records.create_topic(wirebroker.bootstrap, "sums", partitions=1)
    tables = {
        "schema": {"who": "string", "cents": "long"},
        "columns": {"events": "count(*)", "cents": "sum(cents)"},
    }
    job = job_kit.write_job(
        *(folder, wirebroker.bootstrap, tables),
        name="latency",
        source="events",
        topic="sums",
        key="who",
        window="1 second",
        delay="0 seconds",
        every=0.5,
    )
    stop = StopRequest()
    thread = threading.Thread(target=lambda: run_job("windows", job, stop=stop, spark=spark))
    source = Source(wirebroker.bootstrap)
    for worker in (source, thread):
        worker.start()
    delays = _window_delays(wirebroker.bootstrap, options.seconds)
    source.stop.set()
    stop.ask()
    for worker in (source, thread):
        worker.join(60)
    tail = statistics.quantiles(delays, n=100)[98]
    print(
        f"windows: {len(delays)} received, p50 {statistics.median(delays):.2f} s, "
        f"p99 {tail:.2f} s, longest {max(delays):.2f} s after their ends"
    )
    if options.output:
        spark_pictures.latencies(options.output, delays)


class Source(threading.Thread):
    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self.stop = threading.Event()
        self._producer = confluent.make_producer(bootstrap, {"linger.ms": 5})

    def run(self) -> None:
        begin = 0
        while not self.stop.wait(0.01):
            begin += A_SECOND // 100
            for number in range(begin, begin + A_SECOND // 100):
                value = b'{"who": "k%d", "cents": %d}' % (number % 5, number % 100)
                self._producer.produce("events", value, partition=0)
            self._producer.poll(0)
        self._producer.flush(30)


def _window_delays(bootstrap: str, seconds: int) -> list[float]:
    """Return the seconds between windows' ends and their records, without a warm-up."""
    from wirebroker.base.clock import SystemClock

    clock = SystemClock()
    consumer = confluent.make_consumer(
        bootstrap, {"group.id": "latency-reader", "isolation.level": "read_committed"}
    )
    consumer.subscribe(["sums"])
    delays: list[float] = []
    began: float | None = None
    while began is None or clock.monotonic() < began + WARM_S + seconds:
        message: Any = consumer.poll(1.0)
        if message is None or message.error():
            continue
        began = began or clock.monotonic()
        if clock.monotonic() > began + WARM_S:
            delays.append((clock.now_ms() - message.timestamp()[1]) / 1000)
    consumer.close()
    return delays


if __name__ == "__main__":
    main()
