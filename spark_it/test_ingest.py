"""Files into topics: each row once, bad ones with their reasons, and again after a broken run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import fastavro
import pytest

from spark_it import job_kit, records
from wirebroker.client.partitioning import partition_for

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.brokers import Broker

pytestmark = [pytest.mark.long, pytest.mark.java]

PARTITIONS = 3


class Job:
    """An ingest in a folder: its file, its input, its runs."""

    def __init__(self, folder: Path, broker: Broker, topic: str, **settings: Any) -> None:
        self.folder = folder
        self.source = folder / "in"
        self.source.mkdir()
        self._bootstrap = broker.bootstrap
        self._topic = topic
        given = {"name": f"job-{topic}", "topic": topic, "source": "in", "partitions": PARTITIONS}
        schema = {"id": "long", "who": "string"}
        self._file = job_kit.write_job(
            folder, broker.bootstrap, {"schema": schema}, **given | settings
        )

    def run(self, spark: SparkSession) -> dict[str, Any]:
        return job_kit.run("ingest", self._file, spark)

    def read(self, topic: str, count: int, *, partitions: int) -> list[Any]:
        return job_kit.read_all(self._bootstrap, topic, count, partitions=partitions)

    def check_rows(self, count: int) -> None:
        """Assert that the rows 0 to count - 1 are there, once, by their keys."""
        found = self.read(self._topic, count, partitions=PARTITIONS)
        numbers = [json.loads(each.value())["id"] for each in found]
        assert sorted(numbers) == list(range(count))
        for partition in range(PARTITIONS):
            mine = [each for each in found if each.partition() == partition]
            assert {partition_for(each.key(), PARTITIONS) for each in mine} == {partition}


def lines(*numbers: int) -> str:
    return "".join(f'{{"id": {each}, "who": "k{each % 10}"}}\n' for each in numbers)


def test_each_row_is_there_once_and_bad_ones_are_dead_letters(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    job = Job(tmp_path, broker, topic, key="who")
    bad = '{"id": "x", "who": "k"}\n\n{"id": 1\n'
    (job.source / "a.jsonl").write_text(lines(*range(500)) + bad, encoding="utf-8")
    summary = job.run(spark)
    assert (summary["records"], summary["dead_letters"], summary["batches"]) == (500, 2, 1)
    assert job.run(spark)["records"] == 0
    (job.source / "b.jsonl").write_text(lines(*range(500, 800)), encoding="utf-8")
    assert job.run(spark)["records"] == 300
    job.check_rows(800)
    found = job.read(topic, 800, partitions=PARTITIONS)
    for partition in range(PARTITIONS):
        ids = [json.loads(each.value())["id"] for each in found if each.partition() == partition]
        assert ids == sorted(ids), "rows of a file keep their order"
    dead = job.read(f"{topic}.dead-letters", 2, partitions=1)
    headers = [dict(each.headers()) for each in dead]
    reasons = sorted(each["reason"].decode() for each in headers)
    assert reasons[0] == "field id is no long: 'x'"
    assert reasons[1].startswith("is no JSON: ")
    assert all(each["file"].endswith(b"/in/a.jsonl") for each in headers)
    told = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [each["kind"] for each in told] == ["batch", "summary", "summary", "batch", "summary"]
    assert sum(each["records"] for each in told if each["kind"] == "batch") == 800


def test_a_batch_that_is_done_again_repeats_nothing_also_with_more_partitions(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    job = Job(tmp_path, broker, topic, key="who", files_per_batch=1)
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
    found = job.read(topic, 400, partitions=PARTITIONS + 2)
    assert sorted(json.loads(each.value())["id"] for each in found) == list(range(400))


def test_a_checkpoint_that_was_made_anew_is_refused(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    from wirebroker.pipelines.errors import PositionError

    job = Job(tmp_path, broker, topic)
    (job.source / "a.jsonl").write_text(lines(*range(10)), encoding="utf-8")
    assert job.run(spark)["records"] == 10
    (tmp_path / "checkpoint").rename(tmp_path / "lost")
    with pytest.raises(PositionError, match="positions of another checkpoint"):
        job.run(spark)
    assert len(job.read(topic, 10, partitions=PARTITIONS)) == 10


def test_csv_and_avro_are_rows_as_well(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "csv").mkdir()
    job = Job(tmp_path / "csv", broker, f"{topic}-csv", format="csv", key="who")
    text = "id,who\n" + "".join(f'{each},"k{each % 10}"\n' for each in range(100)) + "7\n"
    (job.source / "a.csv").write_text(text, encoding="utf-8")
    summary = job.run(spark)
    assert (summary["records"], summary["dead_letters"]) == (100, 1)
    job.check_rows(100)

    (tmp_path / "avro").mkdir()
    job = Job(tmp_path / "avro", broker, f"{topic}-avro", format="avro", key="who")
    fields = [{"name": "id", "type": "long"}, {"name": "who", "type": "string"}]
    rows = [{"id": each, "who": f"k{each % 10}"} for each in range(100)]
    with (job.source / "a.avro").open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "row", "fields": fields}, rows)
    assert job.run(spark)["records"] == 100
    job.check_rows(100)
