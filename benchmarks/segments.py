"""Spark reading a topic: the data source over log directories beside the stock Kafka connector.

    python -m benchmarks.segments [--scale 0.05] [--sizes '1 KiB'] [--codecs none,lz4] [--pairs 3]
                                  [--ours CHECKOUT] [--output segments.svg]

20 million records of 100 B and 2 million of 1 KiB, times the scale, in 4 partitions of a broker of
ours that runs; each read to its end by both in turns (A B, B A), all columns of the connector's.
Printed per case: records a second and CPU of Spark and its Python workers (of the broker, too, for
the connector, which reads through it), each as the median of the pairs, and their ratios; the
largest memory of a worker. Before them, what reading a record of each partition takes: the start of
a read, which is in each of the others. --ours is a compiled checkout (`make compiled`): without it
the workers have plain Python, and the first line says so. --output draws the ratios (extra
`bench`).
"""

from __future__ import annotations

import importlib
import itertools
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import spark_pictures
from benchmarks.machine import cpu_seconds, describe
from benchmarks.spark_reads import (
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
from spark_it import session
from tests.support.brokers import make_broker

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import SparkSession

    from tests.support.brokers import Broker

CODECS = ("none", "lz4", "zstd", "gzip", "snappy")
COLUMNS = "key,value,topic,partition,offset,timestamp,timestampType"
CONNECTOR, SEGMENTS = "connector", "segments"


class ReadWish(NamedTuple):
    """What is read; `size` is its name in the table."""

    size: str
    record_bytes: int
    records: int
    codec: str


def main() -> None:
    """Measure what the arguments ask for."""
    options = _arguments()
    use_checkout(options.ours)
    print(describe())
    print("the workers' columns are made in", "C" if _is_quick() else "plain Python", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        broker = make_broker("wirebroker", Path(folder) / "broker")
        broker.start()
        spark = start_spark(Path(folder) / "spark")
        segments = importlib.import_module("wirebroker.segments")
        spark.dataSource.register(segments.SegmentDataSource)
        try:
            none = _pairs(spark, broker, ReadWish("start", 100, PARTITIONS, "none"), options.pairs)
            for kind, runs in ((CONNECTOR, none.before), (SEGMENTS, none.after)):
                seconds, cpu = median_of(runs, "seconds"), median_of(runs, "all_cpu_s")
                print(f"start of a read, {kind}: {seconds:.2f} s, {cpu:.2f} s of CPU")
            print("| records | codec | connector | segments | rate | CPU | worker |")
            print("|---|---|---|---|---|---|---|", flush=True)
            rows = []
            for size, codec in itertools.product(options.sizes, options.codecs):
                rows.append(_measure(spark, broker, size, codec, options))
                print(_told(rows[-1]), flush=True)
            if options.output:
                spark_pictures.ratios(options.output, rows)
        finally:
            session.stop(spark)
            broker.stop()


def _arguments() -> argparse.Namespace:
    parser = arguments(__doc__)
    parser.add_argument("--codecs", type=lambda text: text.split(","), default=list(CODECS))
    return parser.parse_args()


def _is_quick() -> bool:
    code = "from wirebroker.codecs.records.columns import IS_QUICK; print(IS_QUICK)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip() == "True"


def _measure(
    spark: SparkSession, broker: Broker, size: str, codec: str, options: argparse.Namespace
) -> ReadPairs:
    record_bytes, most = SIZES[size]
    count = max(PARTITIONS, int(most * options.scale))
    return _pairs(spark, broker, ReadWish(size, record_bytes, count, codec), options.pairs)


def _pairs(spark: SparkSession, broker: Broker, wish: ReadWish, pairs: int) -> ReadPairs:
    """Fill a topic and read it in pairs."""
    size, record_bytes, count, codec = wish
    topic = f"t-{record_bytes}-{codec}-{count}"
    fill(broker, topic, record_bytes, count, codec)

    def read(kind: str) -> Read:
        return _read(spark, broker, kind, topic, count)

    runs = in_turns(CONNECTOR, SEGMENTS, pairs, read)
    return ReadPairs(size, codec, count, *runs, largest_worker_mb(spark_process()))


def _told(pairs: ReadPairs) -> str:
    """Return the table's row."""
    cells = [
        f"{pairs.record_count:,} of {pairs.size}",
        pairs.codec,
        *(
            f"{pairs.record_count / median_of(runs, 'seconds'):,.0f}/s, "
            f"{median_of(runs, 'all_cpu_s') / pairs.record_count * 1e6:.2f} us"
            for runs in (pairs.before, pairs.after)
        ),
        f"{pairs.rate_ratio:.2f}",
        f"{pairs.cpu_ratio:.2f}",
        f"{pairs.worker_mb:.0f} MB",
    ]
    return f"| {' | '.join(cells)} |"


def _read(spark: SparkSession, broker: Broker, kind: str, topic: str, count: int) -> Read:
    if kind == CONNECTOR:
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
        table = reader.option("subscribe", topic).load()
    else:
        options = {"subscribe": topic, "columns": COLUMNS}
        table = spark.read.format("wirebroker-segments").options(**options)
        table = table.load(str(broker.data_dir))
    assert ",".join(table.columns) == COLUMNS
    cpu, broker_cpu = cpu_of_tree(spark_process()), cpu_seconds(broker.process_id)
    begun = time.perf_counter()
    table.write.format("noop").mode("overwrite").save()
    seconds = time.perf_counter() - begun
    found = Read(
        seconds,
        cpu_of_tree(spark_process()) - cpu,
        cpu_seconds(broker.process_id) - broker_cpu if kind == CONNECTOR else 0.0,
    )
    assert table.count() == count
    return found


if __name__ == "__main__":
    main()
