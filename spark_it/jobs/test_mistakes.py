"""Mistakes in a job's file are reported before a topic or checkpoint is created."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.clients import confluent
from spark_it.kit import job_kit, records
from wirebroker.pipelines.job.errors import JobFileError, PatienceError, PipelineError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from compat_tests.conftest import StartBroker

pytestmark = [pytest.mark.nightly, pytest.mark.java]

SCHEMA = {"schema": {"id": "long", "who": "string"}}
SUMS = {**SCHEMA, "columns": {"n": "count(*)"}}


def test_missing_sources_are_reported_before_start(
    spark: SparkSession, start_broker: StartBroker, topic: str, tmp_path: Path
) -> None:
    broker = start_broker()
    source = f"{topic}-in"
    records.create_topic(broker.bootstrap, source, partitions=1)
    common: dict[str, Any] = {"name": topic, "topic": topic}
    mistyped = {**common, "source": f"{topic}-inn"}
    existing, data_dir = {**common, "source": source}, str(broker.data_dir)
    for kind, tables, settings, expected in (
        ("ingest", SCHEMA, {**common, "source": "files"}, "there is no .*files"),
        ("ingest", SCHEMA, {**common, "source": "files/*.csv"}, "there is no .*files"),
        ("replay", {}, mistyped, f"there is no topic {topic}-inn; did you mean {source}"),
        ("replay", {}, {**mistyped, "path": data_dir}, f"did you mean {source}"),
        ("replay", {}, {**mistyped, "path": "logs"}, "there is no directory .*/logs"),
        ("windows", SUMS, {**mistyped, "key": "who"}, f"there is no topic {topic}-inn"),
        (
            "windows",
            {**SCHEMA, "columns": {"__Row": "count(*)"}},
            {**existing, "key": "who"},
            "a column cannot have the name __row",
        ),
        ("replay", {"reader": {"minPartition": 3}}, existing, "did you mean minPartitions"),
        ("replay", {"reader": {"minPartition": 3}}, {**existing, "path": data_dir}, "is unknown"),
    ):
        path = job_kit.write_job(tmp_path, broker.bootstrap, tables, **settings)
        with pytest.raises(JobFileError, match=expected):
            job_kit.run(kind, path, spark)
        assert not (tmp_path / "checkpoint").exists(), expected
    consumer = confluent.make_consumer(broker.bootstrap)
    assert topic not in consumer.list_topics(timeout=10).topics
    consumer.close()


def test_settings_that_spark_rejects_end_job_without_retry(
    spark: SparkSession, start_broker: StartBroker, topic: str, tmp_path: Path
) -> None:
    broker = start_broker()
    source = f"{topic}-in"
    records.create_topic(broker.bootstrap, source, partitions=1)
    records.write(broker.bootstrap, source, range(10), partitions=1)
    common: dict[str, Any] = {"name": topic, "topic": topic, "source": source, "key": "who"}
    for number, (tables, settings, expected) in enumerate(
        (
            ({**SUMS, "columns": {"n": "summ(id)"}}, {}, "summ"),
            (SUMS, {"window": "1 minit"}, "minit"),
            ({**SUMS, "reader": {"minOffsetsPerTrigger": "many"}}, {}, "many"),
            ({**SUMS, "reader": {"failOnDataLoss": "maybe"}}, {}, "maybe"),
            ({**SUMS, "reader": {"kafka.max.poll.records": "few"}}, {}, "few"),
            ({**SUMS, "reader": {"startingOffsets": '{"x": {"0": 1}}'}}, {}, "specify all"),
        )
    ):
        job_settings = {**common, **settings, "checkpoint": f"checkpoint-{number}"}
        path = job_kit.write_job(tmp_path, broker.bootstrap, tables, **job_settings, patience=3)
        with pytest.raises(PipelineError, match=expected) as raised:
            job_kit.run("windows", path, spark)
        assert not isinstance(raised.value, PatienceError), expected


def test_files_may_arrive_after_job_start(
    spark: SparkSession, start_broker: StartBroker, topic: str, tmp_path: Path
) -> None:
    """An empty folder, a pattern without matches, and files without lines are valid."""
    broker = start_broker()
    for folder, source in (("a", "a"), ("b", "b/*.jsonl")):
        (tmp_path / folder).mkdir()
        job: dict[str, Any] = {"name": f"{topic}-{folder}", "topic": topic, "source": source}
        path = job_kit.write_job(
            *(tmp_path, broker.bootstrap, SCHEMA), **job, checkpoint=f"checkpoint-{folder}"
        )
        summary = job_kit.run("ingest", path, spark)
        assert (summary["records"], summary["faults"]) == (0, 0)
        (tmp_path / folder / "empty.jsonl").touch()
        (tmp_path / folder / "one.jsonl").write_text('{"id": 1, "who": "x"}\n', "utf-8")
        summary = job_kit.run("ingest", path, spark)
        assert (summary["records"], summary["faults"]) == (1, 0)
