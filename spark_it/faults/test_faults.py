"""An ingest while its broker and its workers are killed: each row once."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from spark_it.kit import faulty_runs, job_kit
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from compat_tests.conftest import StartBroker

pytestmark = [pytest.mark.nightly, pytest.mark.java]

FILES, ROWS, PARTITIONS = 16, 300, 2
WAIT_S = 120.0


class InThread(threading.Thread):
    """A job in a thread."""

    def __init__(self, job: Path, spark: SparkSession) -> None:
        super().__init__(daemon=True)
        self.summary: dict[str, Any] = {}
        self._job = job
        self._spark = spark

    def run(self) -> None:
        self.summary = job_kit.run("ingest", self._job, self._spark)


def java_of(spark: SparkSession) -> int:
    return int(spark.sparkContext._gateway.proc.pid)


def test_each_row_is_written_once_when_broker_and_workers_are_killed(
    spark: SparkSession, start_broker: StartBroker, topic: str, tmp_path: Path
) -> None:
    broker = start_broker()
    job_kit.write_files(tmp_path / "in", FILES, ROWS)
    path = job_kit.write_job(
        *(tmp_path, broker.bootstrap, {"schema": {"id": "long", "who": "string"}}),
        name=f"job-{topic}",
        topic=topic,
        source="in",
        key="who",
        partitions=PARTITIONS,
        files_per_batch=1,
        patience=WAIT_S,
    )
    job = InThread(path, spark)
    job.start()
    eventually(lambda: len(faulty_runs.told(tmp_path, "batch")) >= 3, timeout_s=WAIT_S)
    broker.kill9()
    broker.start()
    done = len(faulty_runs.told(tmp_path, "batch"))
    eventually(lambda: len(faulty_runs.told(tmp_path, "batch")) > done, timeout_s=WAIT_S)
    faults = len(faulty_runs.told(tmp_path, "fault"))
    while job.is_alive() and len(faulty_runs.told(tmp_path, "fault")) == faults:
        # Until a busy worker is killed.
        faulty_runs.kill_workers(java_of(spark))
        time.sleep(0.2)  # the pace of the faults
    job.join(WAIT_S)
    assert not job.is_alive()
    assert len(faulty_runs.told(tmp_path, "fault")) > faults, "no worker was killed at work"
    job_kit.check_files(broker.bootstrap, topic, FILES, ROWS, partitions=PARTITIONS)
