"""Spark reading a topic: the data source over log directories compared with Spark's connector.

    python -m benchmarks.spark.segments [--scale 0.05] [--sizes '1 KiB'] [--codecs none,lz4]
        [--pairs 3]
                                  [--ours CHECKOUT] [--output segments.svg]
                                  [--folder FOLDER [--resume] [--minutes 10]] [--cold]

20 million records of 100 B and 2 million of 1 KiB, times the scale, in 4 partitions of a running
wirebroker; both read all of the connector's columns, in turns (A B, B A). Printed per case: medians
of records a second and of the CPU of Spark and its Python workers (and of the connector's broker),
their ratios, the largest worker memory, and the median load. Before them, the time to read one
record of each partition, the start of each read. --ours is a compiled checkout (`make compiled`);
without it the workers have plain Python. Each read finds its topic in memory, or with --cold
nothing of it; otherwise one read would change the other's cache. --output draws the ratios (extra
`bench`).

--folder keeps the broker's directory and each pair of reads; with --resume the next run continues.
--minutes ends a run, with status 1, before a step that would take longer; SIGTERM ends it at any
time. Each run warms up each case with a pair of a million records that does not count.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measurement.machine import cpu_seconds, describe
from benchmarks.spark import spark_pictures
from benchmarks.spark.kept_reads import Pace, StoredReads
from benchmarks.spark.spark_reads import (
    PARTITIONS,
    SIZES,
    Read,
    ReadCase,
    ReadPairs,
    arguments,
    cpu_of_tree,
    fill,
    forget,
    largest_worker_mb,
    median_of,
    spark_process,
    start_spark,
    use_checkout,
)
from spark_it.tools import session
from tests.support.brokers.brokers import make_broker
from wirebroker.inspect.views.read_only_files import ReadOnlyFiles

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import DataFrame, SparkSession

    from tests.support.brokers.brokers import Broker

CODECS = ("none", "lz4", "zstd", "gzip", "snappy")
COLUMNS = "key,value,topic,partition,offset,timestamp,timestampType"
CONNECTOR, SEGMENTS = "connector", "segments"
WARM_RECORDS = 1_000_000
# Assumed for first steps, below a busy machine's.
FILL_MB_S, PAIR_MB_S = 10, 25


def main() -> int:
    """Return 1 if measurements are missing."""
    options = _arguments()
    use_checkout(options.ours)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # stops brokers and Spark as well
    print(describe())
    print("the workers' columns are made in", "C" if _is_quick() else "plain Python", flush=True)
    start = ReadCase("start", 100, PARTITIONS, "none")
    wishes = [
        _read_case(*combination, options)
        for combination in itertools.product(options.sizes, options.codecs)
    ]
    with ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stored_reads = StoredReads(folder / "reads.jsonl")
        remaining = [
            read_case
            for read_case in (start, *wishes)
            if _missing(stored_reads, read_case, options)
        ]
        if remaining:
            reading = Reading(
                folder, stored_reads, Pace(options.minutes), stack, is_cold=options.cold
            )
            remaining = [
                read_case
                for read_case in remaining
                if not reading.measure(read_case, options.pairs)
            ]
    complete = [read_case for read_case in wishes if read_case not in remaining]
    print("\n".join(_table(stored_reads, start, complete)))
    if remaining:
        print(f"{len(remaining)} of {1 + len(wishes)} cases are missing: continue with --resume")
        return 1
    if options.output:
        spark_pictures.ratios(
            options.output, [stored_reads.pairs_of(read_case) for read_case in wishes]
        )
    return 0


def _arguments() -> argparse.Namespace:
    parser = arguments(__doc__)
    parser.add_argument("--codecs", type=lambda text: text.split(","), default=list(CODECS))
    parser.add_argument("--folder", type=Path, help="keep topics and results here between runs")
    parser.add_argument("--resume", action="store_true", help="continue the run in --folder")
    parser.add_argument("--minutes", type=float, help="stop before the run takes longer")
    parser.add_argument("--cold", action="store_true", help="read topics that are not in memory")
    options = parser.parse_args()
    if options.folder is None and (options.resume or options.minutes is not None):
        parser.error("--resume and --minutes need --folder")
    if options.folder is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
        if any(options.folder.iterdir()) and not options.resume:
            parser.error(f"{options.folder} is not empty: continue it with --resume")
    return options


def _is_quick() -> bool:
    code = "from wirebroker.codecs.records.columns import IS_QUICK; print(IS_QUICK)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip() == "True"


def _read_case(size: str, codec: str, options: argparse.Namespace) -> ReadCase:
    record_bytes, full_count = SIZES[size]
    return ReadCase(size, record_bytes, max(PARTITIONS, int(full_count * options.scale)), codec)


def _missing(stored_reads: StoredReads, read_case: ReadCase, options: argparse.Namespace) -> bool:
    return len(stored_reads.pairs_of(read_case).before) < options.pairs


class Reading:
    """Measurement of both kinds of reads; `is_cold` drops a topic from memory before each."""

    def __init__(
        self,
        folder: Path,
        stored_reads: StoredReads,
        pace: Pace,
        stack: ExitStack,
        *,
        is_cold: bool,
    ) -> None:
        self._is_cold = is_cold
        self._stored_reads = stored_reads
        self._pace = pace
        self._broker: Broker = make_broker("wirebroker", folder / "broker")
        self._broker.start()
        stack.callback(self._broker.stop)
        self._spark: SparkSession = start_spark(folder / "spark")
        stack.callback(self._stop_spark)
        segments = importlib.import_module("wirebroker.segments")
        self._spark.dataSource.register(segments.SegmentDataSource)

    def _stop_spark(self) -> None:
        from py4j.protocol import Py4JError

        # A signal to the terminal's processes may have ended it.
        with contextlib.suppress(Py4JError, ConnectionError):
            session.stop(self._spark)

    def measure(self, read_case: ReadCase, pairs: int) -> bool:
        if not self._has_topic(read_case):
            return False
        kind = f"pair of {read_case.case}"
        done = len(self._stored_reads.pairs_of(read_case).before)
        for number in range(done, pairs):
            if not self._pace.allows(kind, read_case.size_mb / PAIR_MB_S):
                return False
            began = time.monotonic()
            if number == done:
                self._read_pair(read_case, number, WARM_RECORDS)
            self._stored_reads.add(
                read_case, *self._read_pair(read_case, number), self._worker_mb()
            )
            self._pace.note(kind, began)
        self._stored_reads.forget(read_case)
        forget(self._broker, read_case.topic)
        if read_case.records > PARTITIONS:
            print(_row(self._stored_reads.pairs_of(read_case)), flush=True)
        return True

    def _has_topic(self, read_case: ReadCase) -> bool:
        if self._stored_reads.is_filled(read_case):
            return True
        if not self._pace.allows(f"fill {read_case.size}", read_case.size_mb / FILL_MB_S):
            return False
        began = time.monotonic()
        forget(self._broker, read_case.topic)  # from an interrupted run
        fill(
            self._broker,
            read_case.topic,
            read_case.record_bytes,
            read_case.records,
            read_case.codec,
        )
        for kind in (CONNECTOR, SEGMENTS):
            assert self._table(kind, read_case, None).count() == read_case.records, kind
        self._stored_reads.fill(read_case)
        self._pace.note(f"fill {read_case.size}", began)
        return True

    def _read_pair(
        self, read_case: ReadCase, number: int, max_records: int | None = None
    ) -> tuple[Read, Read]:
        reads = {
            kind: self._read(kind, read_case, max_records)
            for kind in sorted((CONNECTOR, SEGMENTS), reverse=bool(number % 2))
        }
        return reads[CONNECTOR], reads[SEGMENTS]

    def _read(self, kind: str, read_case: ReadCase, max_records: int | None) -> Read:
        table = self._table(kind, read_case, max_records)
        assert ",".join(table.columns) == COLUMNS
        process = self._broker.process_id
        self._set_pages(read_case)
        cpu, broker_cpu = cpu_of_tree(spark_process()), cpu_seconds(process)
        began = time.perf_counter()
        table.write.format("noop").mode("overwrite").save()
        return Read(
            time.perf_counter() - began,
            cpu_of_tree(spark_process()) - cpu,
            cpu_seconds(process) - broker_cpu if kind == CONNECTOR else 0.0,
        )

    def _set_pages(self, read_case: ReadCase) -> None:
        if self._is_cold:
            os.sync()  # dirty pages cannot be dropped
        files = ReadOnlyFiles()
        for path in self._broker.data_dir.glob(f"{read_case.topic}-*/*.log"):
            file = files.data(str(path))
            if self._is_cold:
                file.cool(0, file.size())
            else:
                file.warm(0, file.size())
        files.close_all()

    def _table(self, kind: str, read_case: ReadCase, max_records: int | None) -> DataFrame:
        """Return a topic, or about `max_records` records of it, as a table."""
        options = {"subscribe": read_case.topic}
        if max_records is not None and max_records < read_case.records:
            ends = dict.fromkeys(map(str, range(PARTITIONS)), max_records // PARTITIONS)
            options["endingOffsets"] = json.dumps({read_case.topic: ends})
        if kind == CONNECTOR:
            options["kafka.bootstrap.servers"] = self._broker.bootstrap
            return self._spark.read.format("kafka").options(**options).load()
        reader = self._spark.read.format("wirebroker-segments")
        return reader.options(**options, columns=COLUMNS).load(str(self._broker.data_dir))

    def _worker_mb(self) -> float:
        return largest_worker_mb(spark_process())


def _table(stored_reads: StoredReads, start: ReadCase, wishes: list[ReadCase]) -> list[str]:
    none = stored_reads.pairs_of(start)
    lines = []
    for kind, runs in ((CONNECTOR, none.before), (SEGMENTS, none.after)):
        if runs:
            seconds, cpu = median_of(runs, "seconds"), median_of(runs, "all_cpu_s")
            lines.append(f"start of a read, {kind}: {seconds:.2f} s, {cpu:.2f} s of CPU")
    lines.append("| records | codec | connector | segments | rate | CPU | worker | load |")
    lines.append("|---|---|---|---|---|---|---|---|")
    return lines + [_row(stored_reads.pairs_of(read_case)) for read_case in wishes]


def _row(pairs: ReadPairs) -> str:
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
        f"{pairs.load:.1f}",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
