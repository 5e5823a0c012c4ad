"""Compaction by Apache Kafka's cleaner and by wirebroker's results in the same bytes.

The test writes a log for Apache Kafka, whose cleaner runs immediately; wirebroker compacts a copy
with the clock that Kafka's delete horizons imply. In a second round both append more records to
Kafka's result and compact again, after the delete horizons of the first round.
"""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING

import pytest

from compat_tests.support import topics
from tests.support.brokers import java_start
from tests.support.brokers.brokers import ApacheKafka
from tests.support.storage.compaction import append, append_marker, compact
from tests.support.tools.waiting import eventually
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.records.batch import build_batch, iterate_batches, iterate_records
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.layout import DELETE_HORIZON_FLAG
from wirebroker.config.rows.topic import TopicSettings
from wirebroker.storage.checkpoints import CLEANER_CHECKPOINT, read_offsets
from wirebroker.storage.compaction.compaction import Compaction
from wirebroker.storage.compaction.map import OffsetMap
from wirebroker.storage.compaction.range import dirty_range, make_job
from wirebroker.storage.compaction.segment_swap import (
    begin_swap,
    enter_swapped,
    old_segments,
    set_aside_old,
)
from wirebroker.storage.files import Files
from wirebroker.storage.log.log import Log
from wirebroker.storage.recovery.log_recovery import load_log

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from random import Random

# The records' time: recent enough that no producer has expired.
NOW = SystemClock().now_ms() - 60_000
DELETE_RETENTION_MS = 100
CONFIGS = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0",
    "delete.retention.ms": str(DELETE_RETENTION_MS),
    "segment.bytes": str(1 << 20),
    "index.interval.bytes": "300",
    "compression.type": "producer",
}
# Settings for writing: segments far smaller than Kafka's minimum.
SMALL = TopicSettings(
    segment_bytes=3_000,
    index_interval_bytes=300,
    cleanup_policy=("compact",),
    delete_retention_ms=DELETE_RETENTION_MS,
)
SETTINGS = TopicSettings(
    segment_bytes=1 << 20,
    index_interval_bytes=300,
    cleanup_policy=("compact",),
    delete_retention_ms=DELETE_RETENTION_MS,
)
PRODUCERS = 4


def write_plain(log: Log, rng: Random) -> None:
    """Write batches of several records: few keys, tombstones, headers, unordered times."""
    for number in range(120):
        records = [
            (
                b"key-%d" % rng.randrange(25),
                None if rng.random() < 0.2 else b"value-%d" % number * rng.randrange(1, 5),
                (("header", b"%d" % number),) if rng.random() < 0.2 else (),
            )
            for _ in range(rng.randrange(1, 5))
        ]
        append(log, build_batch(records, timestamp_ms=NOW + rng.randrange(9999)), now_ms=NOW)


def write_idempotent(log: Log, rng: Random) -> None:
    """Write as idempotent producers, whose last batches are retained, even if empty."""
    sequences = dict.fromkeys(range(PRODUCERS), 0)
    producers = log.producer_state.producers
    for number in range(120):
        producer = rng.randrange(PRODUCERS)
        if number > 90:
            producer = 0  # the others end with batches whose records are all replaced
        entry = producers.get(producer)
        sequence = entry.last_sequence + 1 if entry else sequences[producer]
        records = [(b"key-%d" % rng.randrange(6), b"%d" % number, ()) for _ in range(3)]
        batch = build_batch(
            records,
            timestamp_ms=NOW + number,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=sequence,
        )
        append(log, batch, now_ms=NOW)


def write_log_append_time(log: Log, rng: Random) -> None:
    """Write batches whose records all have the broker's time."""
    for number in range(120):
        records = [
            (b"key-%d" % rng.randrange(25), None if rng.random() < 0.2 else b"%d" % number, ())
            for _ in range(3)
        ]
        batch = build_batch(
            records, timestamp_ms=NOW - number, log_append_time_ms=NOW + number // 3
        )
        append(log, batch, now_ms=NOW)


def write_transactions(log: Log, rng: Random) -> None:
    """Write overlapping transactions, half of them aborted, and plain batches in between."""
    producers = log.producer_state.producers
    is_open: set[int] = set()
    for number in range(160):
        producer = rng.randrange(PRODUCERS)
        entry = producers.get(producer)
        if producer in is_open and rng.random() < 0.4:
            append_marker(log, producer, is_commit=rng.random() < 0.5, now_ms=NOW + number)
            is_open.discard(producer)
            continue
        records = [(b"key-%d" % rng.randrange(20), b"%d" % number, ()) for _ in range(2)]
        batch = build_batch(
            records,
            timestamp_ms=NOW + number,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=entry.last_sequence + 1 if entry else 0,
            is_transactional=True,
        )
        append(log, batch, now_ms=NOW)
        is_open.add(producer)
    for producer in sorted(is_open):
        append_marker(log, producer, is_commit=False, now_ms=NOW + 999)
    write_plain(log, rng)


def write_compressed(log: Log, rng: Random) -> None:
    for number in range(150):
        records = [(b"key-%d" % rng.randrange(30), b"value-%d" % number * 20, ()) for _ in range(4)]
        codec = Codec(1 + number % 4)
        append(log, build_batch(records, timestamp_ms=NOW + number, codec=codec), now_ms=NOW)


CASES: dict[str, Callable[[Log, Random], None]] = {
    "plain": write_plain,
    "idempotent": write_idempotent,
    "append-time": write_log_append_time,
    "transactions": write_transactions,
    "compressed": write_compressed,
}


def open_log(directory: Path, settings: TopicSettings) -> Log:
    log = Log(
        str(directory),
        Files(),
        topic=directory.name.rpartition("-")[0],
        partition=0,
        topic_id=bytes(16),
        settings=settings,
        producer_id_expiration_ms=1 << 60,
    )
    load_log(log, recovery_point=0, clean=False, now_ms=NOW)
    log.set_high_watermark(log.log_end_offset)
    return log


def add_records(directory: Path, case: str, seed: int) -> None:
    """Append a case's records, and enough to close their last segment."""
    log = open_log(directory, SMALL)
    log.roll(now_ms=NOW)
    CASES[case](log, random.Random(f"{case} {seed}"))
    log.roll(now_ms=NOW)
    append(log, build_batch([(b"last", b"one", ())], timestamp_ms=NOW), now_ms=NOW)
    log.close(clean=True)


def closed_segments(directory: Path) -> dict[str, bytes]:
    suffixes = (".log", ".index", ".timeindex", ".txnindex")
    active = max(path.name for path in directory.glob("*.log")).partition(".")[0]
    return {
        path.name: path.read_bytes()
        for path in sorted(directory.iterdir())
        if path.suffix in suffixes and not path.name.startswith(active)
    }


def horizons(files: dict[str, bytes]) -> list[int]:
    return [
        header.base_timestamp
        for name, content in files.items()
        if name.endswith(".log")
        for _, header in iterate_batches(content)
        if header.attributes & DELETE_HORIZON_FLAG
    ]


def decoded(files: dict[str, bytes]) -> list[object]:
    """Return headers and records without values that depend on the compressor."""
    return [
        (header._replace(length=0, crc=0), *iterate_records(memoryview(content)[position:], header))
        for name, content in files.items()
        if name.endswith(".log")
        for position, header in iterate_batches(content)
    ]


class CleaningKafka:
    """Apache Kafka, which compacts its directory after each start."""

    def __init__(self, directory: Path) -> None:
        settings = {
            "log.cleaner.backoff.ms": "100",
            "producer.id.expiration.ms": str((1 << 31) - 1),
            "log.retention.check.interval.ms": "100000000",
        }
        self.broker = ApacheKafka(directory, settings, java_options=java_start.options())
        self.broker.start()
        for case in CASES:
            topics.create(self.broker.bootstrap, case, configs=CONFIGS)
        for name in INTERRUPTED:
            configs = {**CONFIGS, "min.cleanable.dirty.ratio": "1"}
            topics.create(self.broker.bootstrap, name, configs=configs)
        self.broker.stop()

    def partition(self, case: str) -> Path:
        return self.broker.data_dir / f"{case}-0"

    def clean(self) -> None:
        """Compact all logs up to their active segments."""
        expected = {
            (case, 0): int(max(path.stem for path in self.partition(case).glob("*.log")))
            for case in CASES
        }
        checkpoint = str(self.broker.data_dir / CLEANER_CHECKPOINT)
        self.broker.start()
        try:
            eventually(lambda: read_offsets(Files(), checkpoint) == expected)
        finally:
            self.broker.stop()


# Topic -> number of old segments with final names at the crash.
INTERRUPTED = {"swap-begun": 0, "swap-half-done": 3, "swap-nearly-done": 99}


def interrupt_a_swap(directory: Path, *, old_names: int) -> None:
    """Leave a directory as after a crash during wirebroker's swap of segments.

    Args:
        directory: A partition's directory, without segments.
        old_names: Number of old segments that already have their final names.
    """
    log = open_log(directory, SMALL)
    write_plain(log, random.Random(1))
    log.roll(now_ms=NOW)
    append(log, build_batch([(b"last", b"one", ())], timestamp_ms=NOW), now_ms=NOW)
    log.close(clean=True)
    log = open_log(directory, SETTINGS)
    files = Files()
    job = make_job(log, dirty_range(log, None, now_ms=NOW), now_ms=NOW)
    offset_map = OffsetMap(1 << 20, load_factor=0.9, secret=bytes(16))
    (group,) = Compaction(job, files, offset_map).run()
    begin_swap(files, log.directory, group.base_offsets[0])
    old = old_segments(log, group.base_offsets)
    assert old is not None
    enter_swapped(log, files, old)
    for segment in old[:old_names]:
        set_aside_old(log, segment)
    log.close(clean=False)


Rounds = list[dict[str, tuple[dict[str, bytes], dict[str, bytes]]]]


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> Rounds:
    """Return Kafka's and wirebroker's files for each round and case."""
    folder = tmp_path_factory.mktemp("compaction")
    kafka = CleaningKafka(folder / "kafka")
    all_results: Rounds = []
    dirty_from = dict.fromkeys(CASES, 0)
    for name, old_names in INTERRUPTED.items():
        for path in kafka.partition(name).glob("0*"):
            path.unlink()
        interrupt_a_swap(kafka.partition(name), old_names=old_names)
        shutil.copytree(kafka.partition(name), folder / "swaps" / f"{name}-0")
    for seed in range(2):
        for case in CASES:
            if seed == 0:
                for path in kafka.partition(case).glob("0*"):
                    path.unlink()
            add_records(kafka.partition(case), case, seed)
            shutil.copytree(kafka.partition(case), folder / f"ours-{seed}" / f"{case}-0")
        kafka.clean()
        results: dict[str, tuple[dict[str, bytes], dict[str, bytes]]] = {}
        for case in CASES:
            kafka_files = closed_segments(kafka.partition(case))
            now_ms = max(horizons(kafka_files), default=NOW) - DELETE_RETENTION_MS
            directory = folder / f"ours-{seed}" / f"{case}-0"
            log = open_log(directory, SETTINGS)
            dirty_from[case] = compact(log, Files(), dirty_from[case], now_ms=now_ms)
            log.close(clean=True)
            results[case] = kafka_files, closed_segments(directory)
        all_results.append(results)
    swaps: dict[str, tuple[dict[str, bytes], dict[str, bytes]]] = {}
    for name in INTERRUPTED:
        directory = folder / "swaps" / f"{name}-0"
        open_log(directory, SETTINGS).close(clean=True)
        swaps[name] = closed_segments(kafka.partition(name)), closed_segments(directory)
    all_results.append(swaps)
    return all_results


@pytest.mark.parametrize("number", range(2))
@pytest.mark.parametrize("case", [case for case in CASES if case != "compressed"])
def test_compacted_files_are_identical(case: str, number: int, rounds: Rounds) -> None:
    kafka_files, wirebroker_files = rounds[number][case]
    assert list(wirebroker_files) == list(kafka_files)
    assert decoded(wirebroker_files) == decoded(kafka_files)
    assert [name for name in wirebroker_files if wirebroker_files[name] != kafka_files[name]] == []


@pytest.mark.parametrize("number", range(2))
def test_compressed_records_are_identical(number: int, rounds: Rounds) -> None:
    kafka_files, wirebroker_files = rounds[number]["compressed"]
    assert list(wirebroker_files) == list(kafka_files)
    assert decoded(wirebroker_files) == decoded(kafka_files)


@pytest.mark.parametrize("case", ["plain", "transactions"])
def test_delete_horizons_of_first_round_have_passed_in_second(case: str, rounds: Rounds) -> None:
    (first, _), (second, _) = rounds[0][case], rounds[1][case]
    assert set(horizons(first))
    assert set(horizons(second)).isdisjoint(horizons(first))


@pytest.mark.parametrize("name", INTERRUPTED)
def test_interrupted_segment_swap_is_completed_identically(name: str, rounds: Rounds) -> None:
    kafka_files, wirebroker_files = rounds[-1][name]
    assert list(wirebroker_files) == [
        f"{0:020d}{suffix}" for suffix in (".index", ".log", ".timeindex")
    ]
    assert wirebroker_files == kafka_files
