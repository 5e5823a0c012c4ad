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
from benchmarks.spark.kept_reads import KeptReads, Pace
from benchmarks.spark.spark_reads import (
    PARTITIONS,
    SIZES,
    Read,
    ReadPairs,
    ReadWish,
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
# Assumed speeds of first steps, below a busy machine's.
FILL_MB_S, PAIR_MB_S = 10, 25


def main() -> int:
    """Run the command line; return 1 if measurements are missing."""
    options = _arguments()
    use_checkout(options.ours)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # stops brokers and Spark as well
    print(describe())
    print("the workers' columns are made in", "C" if _is_quick() else "plain Python", flush=True)
    start = ReadWish("start", 100, PARTITIONS, "none")
    wishes = [_wish_of(*each, options) for each in itertools.product(options.sizes, options.codecs)]
    with ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        kept = KeptReads(folder / "reads.jsonl")
        left = [each for each in (start, *wishes) if _missing(kept, each, options)]
        if left:
            reading = Reading(folder, kept, Pace(options.minutes), stack, is_cold=options.cold)
            left = [each for each in left if not reading.measure(each, options.pairs)]
    print("\n".join(_table(kept, start, [each for each in wishes if each not in left])))
    if left:
        print(f"{len(left)} of {1 + len(wishes)} cases are not done: --resume goes on")
        return 1
    if options.output:
        spark_pictures.ratios(options.output, [kept.pairs_of(each) for each in wishes])
    return 0


def _arguments() -> argparse.Namespace:
    parser = arguments(__doc__)
    parser.add_argument("--codecs", type=lambda text: text.split(","), default=list(CODECS))
    parser.add_argument("--folder", type=Path, help="keep topics and results here between runs")
    parser.add_argument("--resume", action="store_true", help="go on with what --folder has")
    parser.add_argument("--minutes", type=float, help="end before a run takes longer")
    parser.add_argument("--cold", action="store_true", help="nothing of a topic is in memory")
    options = parser.parse_args()
    if options.folder is None and (options.resume or options.minutes is not None):
        parser.error("--resume and --minutes need --folder")
    if options.folder is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
        if any(options.folder.iterdir()) and not options.resume:
            parser.error(f"{options.folder} has something in it: --resume goes on with it")
    return options


def _is_quick() -> bool:
    code = "from wirebroker.codecs.records.columns import IS_QUICK; print(IS_QUICK)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip() == "True"


def _wish_of(size: str, codec: str, options: argparse.Namespace) -> ReadWish:
    record_bytes, most = SIZES[size]
    return ReadWish(size, record_bytes, max(PARTITIONS, int(most * options.scale)), codec)


def _missing(kept: KeptReads, wish: ReadWish, options: argparse.Namespace) -> bool:
    return len(kept.pairs_of(wish).before) < options.pairs


class Reading:
    """Measurement of both kinds of reads; `is_cold` drops a topic from memory before each."""

    def __init__(
        self, folder: Path, kept: KeptReads, pace: Pace, stack: ExitStack, *, is_cold: bool
    ) -> None:
        self._is_cold = is_cold
        self._kept = kept
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

    def measure(self, wish: ReadWish, pairs: int) -> bool:
        """Measure missing pairs of a case; return whether it is complete."""
        if not self._has_topic(wish):
            return False
        kind = f"pair of {wish.case}"
        done = len(self._kept.pairs_of(wish).before)
        for number in range(done, pairs):
            if not self._pace.allows(kind, wish.size_mb / PAIR_MB_S):
                return False
            began = time.monotonic()
            if number == done:
                self._read_pair(wish, number, WARM_RECORDS)
            self._kept.add(wish, *self._read_pair(wish, number), self._worker_mb())
            self._pace.note(kind, began)
        self._kept.forget(wish)
        forget(self._broker, wish.topic)
        if wish.records > PARTITIONS:
            print(_row(self._kept.pairs_of(wish)), flush=True)
        return True

    def _has_topic(self, wish: ReadWish) -> bool:
        """Fill a topic if needed; return whether it is complete."""
        if self._kept.is_filled(wish):
            return True
        if not self._pace.allows(f"fill {wish.size}", wish.size_mb / FILL_MB_S):
            return False
        began = time.monotonic()
        forget(self._broker, wish.topic)  # from an interrupted run
        fill(self._broker, wish.topic, wish.record_bytes, wish.records, wish.codec)
        for kind in (CONNECTOR, SEGMENTS):
            assert self._table(kind, wish, None).count() == wish.records, kind
        self._kept.fill(wish)
        self._pace.note(f"fill {wish.size}", began)
        return True

    def _read_pair(self, wish: ReadWish, number: int, most: int | None = None) -> tuple[Read, Read]:
        found = {
            kind: self._read(kind, wish, most)
            for kind in sorted((CONNECTOR, SEGMENTS), reverse=bool(number % 2))
        }
        return found[CONNECTOR], found[SEGMENTS]

    def _read(self, kind: str, wish: ReadWish, most: int | None) -> Read:
        table = self._table(kind, wish, most)
        assert ",".join(table.columns) == COLUMNS
        process = self._broker.process_id
        self._set_pages(wish)
        cpu, broker_cpu = cpu_of_tree(spark_process()), cpu_seconds(process)
        begun = time.perf_counter()
        table.write.format("noop").mode("overwrite").save()
        return Read(
            time.perf_counter() - begun,
            cpu_of_tree(spark_process()) - cpu,
            cpu_seconds(process) - broker_cpu if kind == CONNECTOR else 0.0,
        )

    def _set_pages(self, wish: ReadWish) -> None:
        """Load a topic into memory, or drop it."""
        if self._is_cold:
            os.sync()  # dirty pages cannot be dropped
        files = ReadOnlyFiles()
        for path in self._broker.data_dir.glob(f"{wish.topic}-*/*.log"):
            file = files.data(str(path))
            if self._is_cold:
                file.cool(0, file.size())
            else:
                file.warm(0, file.size())
        files.close_all()

    def _table(self, kind: str, wish: ReadWish, most: int | None) -> DataFrame:
        """Return a topic, or about `most` records of it, as a table."""
        options = {"subscribe": wish.topic}
        if most is not None and most < wish.records:
            ends = dict.fromkeys(map(str, range(PARTITIONS)), most // PARTITIONS)
            options["endingOffsets"] = json.dumps({wish.topic: ends})
        if kind == CONNECTOR:
            options["kafka.bootstrap.servers"] = self._broker.bootstrap
            return self._spark.read.format("kafka").options(**options).load()
        reader = self._spark.read.format("wirebroker-segments")
        return reader.options(**options, columns=COLUMNS).load(str(self._broker.data_dir))

    def _worker_mb(self) -> float:
        return largest_worker_mb(spark_process())


def _table(kept: KeptReads, start: ReadWish, wishes: list[ReadWish]) -> list[str]:
    """Return the table's lines for complete cases."""
    none = kept.pairs_of(start)
    lines = []
    for kind, runs in ((CONNECTOR, none.before), (SEGMENTS, none.after)):
        if runs:
            seconds, cpu = median_of(runs, "seconds"), median_of(runs, "all_cpu_s")
            lines.append(f"start of a read, {kind}: {seconds:.2f} s, {cpu:.2f} s of CPU")
    lines.append("| records | codec | connector | segments | rate | CPU | worker | load |")
    lines.append("|---|---|---|---|---|---|---|---|")
    return lines + [_row(kept.pairs_of(each)) for each in wishes]


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
