"""Pipelines from the command line, with interrupted runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.clients import confluent
from compat_tests.clients.message import WAIT_S
from spark_it.kit import records
from spark_it.kit.faulty_runs import Driver, spark_table, told
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from compat_tests.conftest import StartBroker
    from tests.support.brokers.brokers import Broker

pytestmark = [pytest.mark.long, pytest.mark.java]

PARTITIONS = 2
JOB_S = 240.0
CONTENT = ["partition", "offset", "timestamp", "key", "value", "headers"]


def committed(spark: SparkSession, folder: Path, topic: str) -> DataFrame:
    from wirebroker.segments import SegmentDataSource

    spark.dataSource.register(SegmentDataSource)
    reader = spark.read.format("wirebroker-segments").option("subscribe", topic)
    reader = reader.option("kafka.isolation.level", "read_committed")
    return reader.option("includeHeaders", "true").load(str(folder))


def abort_some(bootstrap: str, topic: str) -> None:
    producer = confluent.make_producer(bootstrap, {"transactional.id": topic})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    for number in range(100):
        producer.produce(topic, b"aborted", b"k", partition=number % PARTITIONS)
    assert producer.flush(WAIT_S) == 0
    producer.abort_transaction(WAIT_S)


def test_archive_has_each_committed_record_once_and_restores_same_log(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    from wirebroker.pipelines.archive.archive import archive, archived, compare
    from wirebroker.pipelines.archive.restore import FolderExistsError, restore

    target, path = tmp_path / "archive", str(broker.data_dir)
    records.create_topic(broker.bootstrap, topic, partitions=PARTITIONS)
    records.write(broker.bootstrap, topic, range(1_000), partitions=PARTITIONS, codec="lz4")
    abort_some(broker.bootstrap, topic)
    assert archive(spark, path, topic, target) == 1_000
    assert archive(spark, path, topic, target) == 0
    records.write(broker.bootstrap, topic, range(1_000, 1_500), partitions=PARTITIONS)
    assert archive(spark, path, topic, target) == 500
    # As if the run had been killed before it stored its end; the next run repeats it.
    last = max(
        (target / "checkpoint" / "commits").glob("[0-9]*"), key=lambda commit: int(commit.name)
    )
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink()
    archive(spark, path, topic, target)

    pairs = compare(spark, path, topic, target)
    assert [(summary.partition, summary.record_count) for summary, _ in pairs] == [
        (0, 750),
        (1, 750),
    ]
    assert all(in_archive == in_log for in_archive, in_log in pairs)
    order = ["partition", "offset"]
    expected = committed(spark, broker.data_dir, topic).select(*CONTENT).orderBy(*order).collect()
    assert archived(spark, target).select(*CONTENT).orderBy(*order).collect() == expected

    written = list(restore(spark, target, tmp_path / "back"))
    assert written == [(f"{topic}-{number}", 750) for number in range(PARTITIONS)]
    back = committed(spark, tmp_path / "back", topic).select(*CONTENT)
    assert back.orderBy(*order).collect() == expected
    with pytest.raises(FolderExistsError):
        list(restore(spark, target, tmp_path / "back"))


@pytest.mark.usefixtures("spark")  # makes PySpark importable
@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "give either a folder"),
        ({"into": "logs", "kafka": {"bootstrap.servers": "b:1"}}, "give either a folder"),
        ({"into": "logs", "map": "m"}, "map needs a broker"),
        ({"kafka": {"acks": 1}}, 'no "bootstrap.servers"'),
    ],
)
def test_restore_needs_exactly_one_target(settings: dict[str, Any], told: str) -> None:
    from wirebroker.pipelines.archive.restore_job import RestoreJob, restore_settings
    from wirebroker.pipelines.job.errors import JobFileError

    with pytest.raises(JobFileError, match=told):
        restore_settings(Path("restore.toml"), RestoreJob(target="archive", **settings))


@pytest.mark.nightly
def test_archive_is_restored_into_broker_at_same_or_mapped_offsets(
    spark: SparkSession, broker: Broker, start_broker: StartBroker, topic: str, tmp_path: Path
) -> None:
    from wirebroker.pipelines.archive.archive import archive, archived
    from wirebroker.pipelines.archive.broker_restore import restore_to_broker
    from wirebroker.pipelines.job.errors import PipelineError

    target, mapping = tmp_path / "archive", tmp_path / "mapping.jsonl"
    gaps = f"{topic}-gaps"
    for name in (topic, gaps):
        records.create_topic(broker.bootstrap, name, partitions=PARTITIONS)
        records.write(broker.bootstrap, name, range(1_000), partitions=PARTITIONS, codec="zstd")
    archive(spark, str(broker.data_dir), topic, target)
    other = start_broker()
    kafka = {"bootstrap.servers": other.bootstrap}
    written = list(restore_to_broker(spark, target, kafka))
    assert written == [(f"{topic}-{number}", 500) for number in range(PARTITIONS)]
    order = ["partition", "offset"]
    expected = archived(spark, target).select(*CONTENT).orderBy(*order).collect()
    back = committed(spark, other.data_dir, topic).select(*CONTENT)
    assert back.orderBy(*order).collect() == expected
    with pytest.raises(PipelineError, match="is not empty"):
        list(restore_to_broker(spark, target, kafka))

    abort_some(broker.bootstrap, gaps)
    records.write(broker.bootstrap, gaps, range(1_000, 1_100), partitions=PARTITIONS)
    target = tmp_path / "gaps"
    archive(spark, str(broker.data_dir), gaps, target)
    with pytest.raises(PipelineError, match=f"{gaps}-0 has 550 records at offsets 0 to 600"):
        list(restore_to_broker(spark, target, kafka))
    written = list(restore_to_broker(spark, target, kafka, mapping))
    assert written == [(f"{gaps}-{number}", 550) for number in range(PARTITIONS)]
    lines = [json.loads(line) for line in mapping.read_text(encoding="utf-8").splitlines()]
    assert lines == [
        {"topic": gaps, "partition": number, "from": old, "to": new, "records": count}
        for number in range(PARTITIONS)
        for old, new, count in ((0, 0, 500), (551, 500, 50))
    ]
    with pytest.raises(PipelineError, match="is not empty"):
        list(restore_to_broker(spark, target, kafka, mapping))
    assert len(mapping.read_text(encoding="utf-8").splitlines()) == len(lines)
    with pytest.raises(PipelineError, match=r"--map .*: Is a directory"):
        list(restore_to_broker(spark, target, kafka, tmp_path))
    values = committed(spark, other.data_dir, gaps).orderBy(*order).select("value").collect()
    archived_values = archived(spark, target).orderBy(*order).select("value").collect()
    assert values == archived_values


@pytest.mark.nightly
def test_archive_skips_deleted_records_if_configured(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    from wirebroker.pipelines.archive.archive_job import ArchiveJob, run_archive
    from wirebroker.pipelines.job.errors import PipelineError
    from wirebroker.pipelines.run.job_run import StopRequest

    logs = tmp_path / "logs"
    names = (f"{topic}-a", f"{topic}-b")

    def write(numbers: range) -> None:
        for name in names:
            records.write(broker.bootstrap, name, numbers, partitions=1)
            shutil.copytree(broker.data_dir / f"{name}-0", logs / f"{name}-0", dirs_exist_ok=True)

    def run(choice: str) -> dict[str, Any]:
        job = ArchiveJob(
            path=str(logs),
            topics=f"{topic}-.*",
            target=str(tmp_path / "archive"),
            metrics=str(tmp_path / "metrics.jsonl"),
            lost_records=choice,
            patience=1.0,
        )
        assert run_archive(spark, job, StopRequest()) == 0
        return told(tmp_path, "summary")[-1]

    for name in names:
        records.create_topic(broker.bootstrap, name, partitions=1)
    write(range(100))
    # As after a run that found the disk full before its first batch was planned.
    offsets = tmp_path / "archive" / "checkpoint" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.f00.tmp").touch()
    (offsets / "..0.f00.tmp.crc").touch()
    summary = run("stop")
    assert (summary["records"], summary["cleared_files"], summary["lost_offsets"]) == (200, 2, 0)

    write(range(100, 400))
    start = logs / "log-start-offset-checkpoint"
    start.write_text(f"0\n1\n{names[0]} 0 250\n", encoding="utf-8")
    shutil.rmtree(logs / f"{names[1]}-0")
    with pytest.raises(PipelineError, match='; lost_records = "skip" continues without them'):
        run("stop")
    for lost_offsets, archived_records in ((150, 150), (0, 0)):
        summary = run("skip")
        assert summary["records"] == archived_records
        assert (summary["lost_offsets"], summary["lost_partitions"]) == (lost_offsets, 1)
    lost = [(loss["topic"], loss["start"], loss["end"]) for loss in told(tmp_path, "loss")]
    assert lost == [(names[0], 100, 250), *[(names[1], 100, 100)] * 2]


@pytest.mark.nightly
def test_missing_record_in_archive_is_reported(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    from wirebroker.pipelines.archive.archive import NoArchiveError, archive, compare
    from wirebroker.pipelines.archive.archive_job import print_comparison

    target, path = tmp_path / "archive", str(broker.data_dir)
    with pytest.raises(NoArchiveError):
        compare(spark, path, topic, target)
    records.create_topic(broker.bootstrap, topic, partitions=1)
    records.write(broker.bootstrap, topic, range(100), partitions=1)
    archive(spark, path, topic, target)
    pairs = compare(spark, path, topic, target)
    assert print_comparison(pairs) == 0
    ((in_archive, in_log),) = pairs
    assert print_comparison([(in_archive._replace(record_count=99), in_log)]) == 1
    assert print_comparison([(in_archive._replace(checksum=1), in_log)]) == 1


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_archive_job_counts_all_batches_and_stops_after_a_batch(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    records.create_topic(broker.bootstrap, topic, partitions=PARTITIONS)
    records.write(broker.bootstrap, topic, range(1_600), partitions=PARTITIONS)
    # Spark keeps few progress reports, so counting only these would miss records.
    settings = {**spark_table(tmp_path), "spark.sql.streaming.numRecentProgressUpdates": "2"}
    lines = [
        *(f'path = "{broker.data_dir}"', f'topics = "{topic}"', 'target = "archive"'),
        *("records_per_batch = 200", 'metrics = "metrics.jsonl"', "[spark]"),
        *(f'"{name}" = {json.dumps(value)}' for name, value in settings.items()),
    ]
    (tmp_path / "job.toml").write_text("\n".join(lines), encoding="utf-8")
    first = Driver(tmp_path, "archive", str(tmp_path / "job.toml"))
    eventually(lambda: len(told(tmp_path, "batch")) > 1, timeout_s=JOB_S)
    assert first.terminate() == 0
    (summary,) = told(tmp_path, "summary")
    assert summary["records"] < 1_600
    assert summary["records"] == sum(metric["records"] for metric in told(tmp_path, "batch"))
    log = (tmp_path / "driver.log").read_text(encoding="utf-8")
    assert "stopped as requested: the next run continues, and verifies" in log
    assert "WARN" not in log
    noise = (tmp_path / "archive" / "spark.log").read_text(encoding="utf-8")
    assert "WARN" in noise, "Spark prints some when it starts"
    assert Driver(tmp_path, "archive", str(tmp_path / "job.toml")).wait(JOB_S) == 0
    last = told(tmp_path, "summary")[-1]
    assert (last["verified_partitions"], last["wrong_partitions"]) == (PARTITIONS, 0)
    # Both runs, or only one, may report an interrupted batch.
    assert abs(summary["records"] + last["records"] - 1_600) <= 200
    log = (tmp_path / "driver.log").read_text(encoding="utf-8")
    assert f"{last['records']} records archived" in log
    assert all(f"{topic}-{number}: 800 records" in log for number in range(PARTITIONS))
