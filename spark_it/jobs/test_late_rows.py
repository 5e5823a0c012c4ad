"""*windows* counts each late row; Spark itself counts groups of rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.clients.message import WAIT_S
from spark_it.kit import faulty_runs, job_kit, records
from spark_it.kit.event_rows import START_MS, WINDOW_MS, event, write
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests.support.brokers.brokers import Broker

pytestmark = [pytest.mark.nightly, pytest.mark.java]

_IDLE_INTERVAL = "spark.sql.streaming.noDataProgressEventInterval"
_SEVERAL_OPERATORS = "spark.sql.streaming.statefulOperator.allowMultiple"


@pytest.fixture
def groups_dropped(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which Spark's count of late groups in each batch is added."""
    del spark  # makes PySpark importable
    from wirebroker.pipelines.windows.windows import Windows

    counts: list[int] = []
    note = Windows.note

    def note_and_keep(self: Windows, progress: dict[str, Any]) -> None:
        counts.extend(
            operator["numRowsDroppedByWatermark"] for operator in progress["stateOperators"]
        )
        note(self, progress)

    monkeypatch.setattr(Windows, "note", note_and_keep)
    return counts


def late_job(broker: Broker, topic: str, folder: Path, **settings: Any) -> Path:
    """Write a job that counts events by minute and key and accepts no late rows."""
    for name in (topic, f"{topic}-sums"):
        records.create_topic(broker.bootstrap, name, partitions=1)
    schema = {"at": "timestamp", "who": "string", "price": "decimal(10,2)"}
    tables = {"schema": schema, "columns": {"orders": "count(*)"}}
    fixed_settings = {"source": topic, "topic": f"{topic}-sums", "key": "who", "time": "at"}
    job_settings = {"name": f"job-{topic}", "delay": "0 seconds", **fixed_settings, **settings}
    return job_kit.write_job(folder, broker.bootstrap, tables, **job_settings)


def write_minutes(broker: Broker, topic: str, *minutes: float, key: str = "") -> None:
    keys = [key or f"k{number}" for number in range(len(minutes))]
    rows = [event(round(at * WINDOW_MS), user, 1) for at, user in zip(minutes, keys, strict=True)]
    write(broker.bootstrap, topic, rows)


@pytest.mark.parametrize(("allows_several", "late"), [("true", 4), ("false", 8)])
def test_late_row_count_equals_spark_count_with_distinct_keys(
    spark: SparkSession,
    broker: Broker,
    topic: str,
    tmp_path: Path,
    groups_dropped: list[int],
    *,
    allows_several: str,
    late: int,
) -> None:
    job = late_job(broker, topic, tmp_path, records_per_batch=4)
    write_minutes(broker, topic, 0, 1, 2, 10)
    # Late by the first batch's watermark, which Spark by default uses one batch later.
    write_minutes(broker, topic, 0, 0, 1, 1)
    write_minutes(broker, topic, 0, 8.5, 9.5, 10)  # the first three windows have ended
    write_minutes(broker, topic, 10, 11, 11, 9)
    spark.conf.set(_SEVERAL_OPERATORS, allows_several)
    try:
        summary = job_kit.run("windows", job, spark)
    finally:
        spark.conf.unset(_SEVERAL_OPERATORS)
    assert (summary["rows"], summary["late_rows"], sum(groups_dropped)) == (16, late, late)


@pytest.mark.parametrize("is_last_commit_lost", [False, True])
def test_late_row_count_equals_spark_count_after_restart(
    spark: SparkSession,
    broker: Broker,
    topic: str,
    tmp_path: Path,
    groups_dropped: list[int],
    *,
    is_last_commit_lost: bool,
) -> None:
    job = late_job(broker, topic, tmp_path)
    write_minutes(broker, topic, 0, 10)
    assert job_kit.run("windows", job, spark)["late_rows"] == 0
    if is_last_commit_lost:
        job_kit.forget_last_commit(tmp_path)
    write_minutes(broker, topic, 9.5, 9.5, 20, 10)
    second = job_kit.run("windows", job, spark)
    assert (second["late_rows"], sum(groups_dropped)) == (2, 2)
    write_minutes(broker, topic, 15, 19.5, 19.5, 20)
    third = job_kit.run("windows", job, spark)
    assert (third["late_rows"], sum(groups_dropped)) == (3, 2 + 3)


def test_late_rows_of_same_window_and_key_are_counted_separately(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, groups_dropped: list[int]
) -> None:
    job = late_job(broker, topic, tmp_path)
    write_minutes(broker, topic, 10)
    job_kit.run("windows", job, spark)
    write_minutes(broker, topic, *[1.5] * 50, key="k0")
    assert job_kit.run("windows", job, spark)["late_rows"] == 50
    assert sum(groups_dropped) == 1


def test_row_late_for_some_sliding_windows_is_counted_once(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, groups_dropped: list[int]
) -> None:
    shift = START_MS // WINDOW_MS % 2  # so that windows end at odd minutes
    job = late_job(broker, topic, tmp_path, window="5 minutes", slide="2 minutes")
    minutes = [shift + minute for minute in (1, 5, 6.5, 9, 10.5, 11)]
    write_minutes(broker, topic, shift + 11)
    job_kit.run("windows", job, spark)
    write_minutes(broker, topic, *minutes)
    assert job_kit.run("windows", job, spark)["late_rows"] == 5
    assert sum(groups_dropped) == 2 + 2 + 3 + 1 + 1  # windows of each row that ended by minute 11


def test_late_rows_are_counted_in_idle_job(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    from wirebroker.pipelines.commands.job_commands import run_job
    from wirebroker.pipelines.run.job_run import StopRequest

    def is_idle() -> bool:
        progresses = [
            progress for query in spark.streams.active for progress in query.recentProgress
        ]
        return any("addBatch" not in progress["durationMs"] for progress in progresses)

    def sent() -> int:
        return sum(metric["records"] for metric in faulty_runs.told(tmp_path, "batch"))

    job = late_job(broker, topic, tmp_path, every=0.2)
    spark.conf.set(_IDLE_INTERVAL, "0")  # report an idle query immediately
    stop = StopRequest()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_job, "windows", job, stop=stop, spark=spark)
        try:
            eventually(is_idle, timeout_s=WAIT_S)
            write_minutes(broker, topic, 0, 10)
            eventually(lambda: sent() == 1, timeout_s=WAIT_S)
            write_minutes(broker, topic, 0, 0, 11, key="k0")
            eventually(lambda: sent() == 2, timeout_s=WAIT_S)
        finally:
            stop.ask()
            spark.conf.unset(_IDLE_INTERVAL)
        summary = running.result(WAIT_S)
    assert (summary["rows"], summary["late_rows"]) == (5, 2)


def test_late_rows_of_batch_before_fault_are_counted(
    spark: SparkSession,
    broker: Broker,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from wirebroker.pipelines.run import job_run
    from wirebroker.pipelines.windows.windows import Windows

    handle = Windows.handle
    faults = [OSError("once")]

    def fail_once(self: Windows, table: DataFrame, batch: int) -> None:
        if batch == 1 and faults:
            raise faults.pop()
        handle(self, table, batch)

    monkeypatch.setattr(Windows, "handle", fail_once)
    monkeypatch.setattr(job_run, "_LOOK_S", WAIT_S)  # the fault precedes the next check
    job = late_job(broker, topic, tmp_path, records_per_batch=2)
    write_minutes(broker, topic, 0, 10, 11, 12, 0, 0)
    summary = job_kit.run("windows", job, spark)
    assert (summary["faults"], summary["rows"], summary["late_rows"]) == (1, 6, 2)
