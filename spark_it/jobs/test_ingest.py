"""*ingest* sends each row once, even after interrupted runs, and bad rows with reasons."""

from __future__ import annotations

import csv
import gzip
import json
import os
import zlib
from typing import TYPE_CHECKING, Any

import fastavro
import pytest

from spark_it.kit import job_kit, records
from wirebroker.client.records.partitioning import partition_for
from wirebroker.pipelines.job.errors import PipelineError, PositionError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.brokers.brokers import Broker

pytestmark = [pytest.mark.long, pytest.mark.java]

PARTITIONS = 3


class Job:
    def __init__(self, folder: Path, broker: Broker, topic: str, **settings: Any) -> None:
        self.folder = folder
        self.source = folder / "in"
        self.source.mkdir()
        self._bootstrap = broker.bootstrap
        self._topic = topic
        required = {
            "name": f"job-{topic}",
            "topic": topic,
            "source": "in",
            "partitions": PARTITIONS,
        }
        self._settings = required | {"key": "who"} | settings
        self.change()

    def change(self, **settings: Any) -> None:
        self._settings |= settings
        tables = {"schema": {"id": "long", "who": "string"}}
        self._file = job_kit.write_job(self.folder, self._bootstrap, tables, **self._settings)

    def run(self, spark: SparkSession) -> dict[str, Any]:
        return job_kit.run("ingest", self._file, spark)

    def read(self, topic: str, count: int, *, partitions: int) -> list[Any]:
        return job_kit.read_all(self._bootstrap, topic, count, partitions=partitions)

    def check_rows(self, count: int) -> None:
        messages = self.read(self._topic, count, partitions=PARTITIONS)
        numbers = [json.loads(message.value())["id"] for message in messages]
        assert sorted(numbers) == list(range(count))
        for partition in range(PARTITIONS):
            in_partition = [message for message in messages if message.partition() == partition]
            assert {partition_for(message.key(), PARTITIONS) for message in in_partition} == {
                partition
            }


def lines(*numbers: int) -> str:
    return "".join(f'{{"id": {number}, "who": "k{number % 10}"}}\n' for number in numbers)


def test_each_row_is_sent_once_and_invalid_rows_are_dead_letters(
    spark: SparkSession,
    broker: Broker,
    topic: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    job = Job(tmp_path, broker, topic)
    bad = '{"id": "x", "who": "k"}\n\n{"id": 1\n'
    (job.source / "a.jsonl").write_text(lines(*range(500)) + bad, encoding="utf-8")
    summary = job.run(spark)
    assert (summary["records"], summary["dead_letters"], summary["batches"]) == (500, 2, 1)
    size = (job.source / "a.jsonl").stat().st_size
    assert f": batch 0: 1 files found, {size:,} bytes\n" in capsys.readouterr().out
    assert job.run(spark)["records"] == 0
    (job.source / "b.jsonl").write_text(lines(*range(500, 800)), encoding="utf-8")
    assert job.run(spark)["records"] == 300
    job.check_rows(800)
    messages = job.read(topic, 800, partitions=PARTITIONS)
    for partition in range(PARTITIONS):
        ids = [
            json.loads(message.value())["id"]
            for message in messages
            if message.partition() == partition
        ]
        assert ids == sorted(ids), "rows of a file keep their order"
    dead = job.read(f"{topic}.dead-letters", 2, partitions=1)
    headers = [dict(message.headers()) for message in dead]
    reasons = sorted(header["reason"].decode() for header in headers)
    assert reasons[0] == "field id is not of type long: 'x'"
    assert reasons[1].startswith("is not valid JSON: ")
    assert all(header["file"].endswith(b"/in/a.jsonl") for header in headers)
    metrics = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [metric["kind"] for metric in metrics] == [
        "batch",
        "summary",
        "summary",
        "batch",
        "summary",
    ]
    assert sum(metric["records"] for metric in metrics if metric["kind"] == "batch") == 800


def test_repeated_batch_sends_nothing_again_after_added_partitions(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    job = Job(tmp_path, broker, topic, files_per_batch=1)
    for number in range(3):
        path = job.source / f"{number}.jsonl"
        path.write_text(lines(*range(number * 100, number * 100 + 100)), encoding="utf-8")
    assert job.run(spark)["batches"] == 3
    job_kit.forget_last_commit(tmp_path)
    records.add_partitions(broker.bootstrap, topic, partitions=PARTITIONS + 2)
    again = job.run(spark)
    assert (again["records"], again["slices_sent_before"]) == (0, PARTITIONS)
    job.check_rows(300)
    (job.source / "more.jsonl").write_text(lines(*range(300, 400)), encoding="utf-8")
    assert job.run(spark)["records"] == 100
    messages = job.read(topic, 400, partitions=PARTITIONS + 2)
    assert sorted(json.loads(message.value())["id"] for message in messages) == list(range(400))


@pytest.mark.nightly
def test_recreated_checkpoint_is_rejected(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    job = Job(tmp_path, broker, topic)
    (job.source / "a.jsonl").write_text(lines(*range(10)), encoding="utf-8")
    assert job.run(spark)["records"] == 10
    (tmp_path / "checkpoint").rename(tmp_path / "lost")
    with pytest.raises(PositionError, match="positions of another checkpoint"):
        job.run(spark)
    assert len(job.read(topic, 10, partitions=PARTITIONS)) == 10


def test_csv_and_avro_files_are_ingested(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "csv").mkdir()
    job = Job(tmp_path / "csv", broker, f"{topic}-csv", format="csv")
    text = "id,who\n" + "".join(f'{number},"k{number % 10}"\n' for number in range(100)) + "7\n"
    (job.source / "a.csv").write_text(text, encoding="utf-8")
    summary = job.run(spark)
    assert (summary["records"], summary["dead_letters"]) == (100, 1)
    job.check_rows(100)

    (tmp_path / "avro").mkdir()
    job = Job(tmp_path / "avro", broker, f"{topic}-avro", format="avro")
    fields = [{"name": "id", "type": "long"}, {"name": "who", "type": "string"}]
    rows = [{"id": number, "who": f"k{number % 10}"} for number in range(100)]
    with (job.source / "a.avro").open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "row", "fields": fields}, rows)
    assert job.run(spark)["records"] == 100
    job.check_rows(100)


@pytest.mark.nightly
def test_old_files_are_read_and_hidden_files_counted_or_read(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    job = Job(tmp_path, broker, topic, files_per_batch=1)
    newest_s = 1_700_000_000
    for number, (name, age_s) in enumerate(
        ((".first.jsonl", 0), ("new.jsonl", 0), ("month.jsonl", 30 * 86_400), ("1971.jsonl", 1.6e9))
    ):
        path = job.source / name
        path.write_text(lines(number), encoding="utf-8")
        os.utime(path, (newest_s - age_s, newest_s - age_s))
    summary = job.run(spark)
    assert (summary["records"], summary["unread_files"]) == (3, 1)
    assert summary["first_unread_file"] == str(job.source / ".first.jsonl")
    path = job.source / "last.jsonl"
    path.write_text(lines(4), encoding="utf-8")
    os.utime(path, (newest_s - 30 * 86_400, newest_s - 30 * 86_400))
    assert job.run(spark)["records"] == 1

    (job.source / "_bad.csv").write_text("no row\n", encoding="utf-8")
    job.change(hidden_files=True)
    summary = job.run(spark)
    assert (summary["records"], summary["dead_letters"], summary["unread_files"]) == (1, 1, 0)
    assert job.run(spark)["records"] == 0
    job.check_rows(5)
    (dead,) = job.read(f"{topic}.dead-letters", 1, partitions=1)
    assert dict(dead.headers())["file"] == (job.source / "_bad.csv").as_uri().encode()


@pytest.mark.nightly
def test_csv_records_may_have_line_breaks_and_damaged_files_are_counted(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    job = Job(tmp_path, broker, topic, format="csv", files_per_batch=2)
    rows = [[number, f"two\r\nlines, {number}"] for number in range(20_000)]
    with (job.source / "a b.csv").open("w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file).writerows([["id", "who"], *rows])
    with (job.source / "c.csv").open("w", newline="", encoding="utf-8") as file:
        file.write('20000,"x"\n20001,5" pipe\n')
    summary = job.run(spark)
    counts = (summary["records"], summary["dead_letters"], summary["damaged_files"])
    assert counts == (20_001, 1, 0)
    text = "".join(f"{number},x\n" for number in range(20_001, 30_000)).encode()
    (job.source / "d.csv.gz").write_bytes(gzip.compress(text))
    (job.source / "e.csv.gz").write_bytes(gzip.compress(b"30000,x\n" * 10_000)[:-9])
    summary = job.run(spark)
    assert (summary["dead_letters"], summary["damaged_files"]) == (1, 1)
    assert 9_999 < summary["records"] <= 19_999
    dead = job.read(f"{topic}.dead-letters", 2, partitions=1)
    assert any(b"after record" in dict(message.headers())["reason"] for message in dead)
    (job.source / "f.csv.gz").write_bytes(b"not compressed")
    job.change(damaged_files="stop")
    with pytest.raises(PipelineError, match=r"f\.csv\.gz: the file cannot be read after record 0"):
        job.run(spark)
    job.change(damaged_files="dead-letter")
    assert job.run(spark)["damaged_files"] == 1


@pytest.mark.nightly
def test_spark_reads_hadoops_compression_formats(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    job = Job(tmp_path, broker, topic)
    for number, start in enumerate((0, 10)):
        text = lines(*range(start, start + 10)).encode()
        (job.source / f"[{number}] a.jsonl.deflate").write_bytes(zlib.compress(text))
    (job.source / "b.jsonl").write_text(lines(*range(20, 30)), encoding="utf-8")
    assert job.run(spark)["records"] == 30
    job.check_rows(30)
