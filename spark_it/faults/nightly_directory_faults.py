"""Readers of log directories under faults (`python -m tests.nightly spark-faults`).

Archives and quality reports run while the broker, workers and drivers are killed.
"""

from __future__ import annotations

import re
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from spark_it.kit import faulty_runs, records
from spark_it.kit.faulty_runs import TIMES, WAIT_S, Driver
from spark_it.kit.records import Count, count_rows
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from compat_tests.conftest import StartBroker
    from tests.support.brokers.brokers import Broker

pytestmark = [pytest.mark.long, pytest.mark.java, pytest.mark.timeout(3_600)]

PARTITIONS = 3
RECORDS = 6_000  # before each fault


class Archive:
    """Interrupted runs of an archive."""

    def __init__(self, folder: Path, broker: Broker, topic: str) -> None:
        self.target = folder / "archive"
        self._folder = folder
        self._broker = broker
        self._arguments = (
            *("--path", str(broker.data_dir), "--topics", topic, "--target", str(self.target)),
            *("--records-per-batch", "2000"),
        )

    def break_off(self, fault: str) -> None:
        """Start a run, and cause a fault after some progress."""
        before = self._batches()
        driver = self._driver()
        eventually(lambda: self._batches() > before or driver.status is not None, timeout_s=WAIT_S)
        if fault == "broker":
            self._broker.kill9()
            self._broker.start()
            assert driver.wait(WAIT_S) == 0
        elif fault == "workers":
            java = driver.java()
            # The run may have ended; if a worker is killed, it fails.
            killed = faulty_runs.kill_workers(java) if java is not None else 0
            assert driver.wait(WAIT_S) == 0 or killed
        else:
            driver.kill()

    def finish(self) -> None:
        assert self._driver().wait(WAIT_S) == 0

    def verified(self) -> list[tuple[int, int]]:
        text = (self._folder / "driver.log").read_text(encoding="utf-8")
        last = text.rpartition("records archived\n")[2]
        return [(int(match[1]), int(match[2])) for match in re.finditer(r"-(\d+): (\d+) rec", last)]

    def _driver(self) -> Driver:
        settings = faulty_runs.spark_table(self._folder)
        return Driver(self._folder, "archive", *self._arguments, settings=settings)

    def _batches(self) -> int:
        return len(list((self.target / "checkpoint" / "commits").glob("[0-9]*")))


def test_archive_under_faults_has_each_record_once(
    spark: SparkSession,
    start_broker: StartBroker,
    topic: str,
    tmp_path: Path,
    pytestconfig: pytest.Config,
) -> None:
    from wirebroker.pipelines.archive.archive import archived

    broker = start_broker()
    records.create_topic(broker.bootstrap, topic, partitions=PARTITIONS)
    archive = Archive(tmp_path, broker, topic)
    plan = faulty_runs.plan_of(pytestconfig.option.seed, ("broker", "driver", "workers"))
    for number, fault in enumerate(plan):
        numbers = range(number * RECORDS, (number + 1) * RECORDS)
        records.write(broker.bootstrap, topic, numbers, partitions=PARTITIONS, codec="lz4")
        archive.break_off(fault)
    archive.finish()
    count = TIMES * RECORDS
    assert count_rows(archived(spark, archive.target)) == Count.of_all(count)
    ends = records.end_offsets(broker.bootstrap, topic, partitions=PARTITIONS)
    assert archive.verified() == list(enumerate(ends))
    sys.stdout.write(f"archive: {TIMES} kills, {count} records once\n")


class Look(threading.Thread):
    """A quality report in a thread."""

    def __init__(self, spark: SparkSession, path: str, topic: str) -> None:
        super().__init__(daemon=True)
        self.found: list[Any] = []
        self.failure: Exception | None = None
        self._arguments = (spark, path, topic)

    def run(self) -> None:
        from wirebroker.pipelines.quality.quality import look_at

        try:
            self.found = look_at(*self._arguments)
        except Exception as error:  # noqa: BLE001 - the test looks what it was
            self.failure = error


def test_quality_report_under_faults_is_correct_or_fails(
    spark: SparkSession, start_broker: StartBroker, topic: str
) -> None:
    broker = start_broker()
    records.create_topic(broker.bootstrap, topic, partitions=PARTITIONS)
    records.write(broker.bootstrap, topic, range(90_000), partitions=PARTITIONS)
    java = int(spark.sparkContext._gateway.proc.pid)
    model = [(number, 30_000, 0, 0, 10) for number in range(PARTITIONS)]
    killed = correct = 0
    for number in range(TIMES):
        look = Look(spark, str(broker.data_dir), topic)
        look.start()
        if number % 2:
            broker.kill9()
            broker.start()
        else:
            while look.is_alive() and not faulty_runs.kill_workers(java):
                look.join(0.1)
        look.join(WAIT_S)
        assert not look.is_alive()
        killed += look.failure is not None
        if look.failure is None:
            correct += 1
            assert model == [
                (
                    partition_quality.partition,
                    partition_quality.records,
                    partition_quality.gaps,
                    partition_quality.resent,
                    partition_quality.keys,
                )
                for partition_quality in look.found
            ]
    assert correct >= TIMES // 2, "the broker's kills have nothing to do with it"
    sys.stdout.write(f"quality: {TIMES} kills, {correct} looks right, {killed} without an answer\n")
