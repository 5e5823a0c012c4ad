"""Quality reports: counts, gaps, duplicates, skew and lag."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from confluent_kafka import TopicPartition

from compat_tests.clients import confluent
from spark_it.jobs.test_pipelines import abort_some
from spark_it.kit import records
from tests.support.tools.ports import free_port
from tests.support.tools.waiting import eventually
from wirebroker.pipelines.job.errors import PipelineError
from wirebroker.pipelines.job.job_file import load_job
from wirebroker.pipelines.quality.quality_picture import _cut, picture_of_quality
from wirebroker.pipelines.quality.quality_report import skew_of, table_of_quality

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.brokers.brokers import Broker

pytestmark = [pytest.mark.long, pytest.mark.java]


def test_quality_report_of_topic_has_counts_and_lag(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    from wirebroker.pipelines.job.job_file import kafka_settings_if_any
    from wirebroker.pipelines.quality.group_lag import lags_of
    from wirebroker.pipelines.quality.quality import look_at
    from wirebroker.pipelines.quality.quality_job import QualityJob, run_quality
    from wirebroker.pipelines.quality.quality_report import lines_of_quality

    records.create_topic(broker.bootstrap, topic, partitions=3)
    # Two of three partitions, and an aborted transaction: markers are not gaps.
    records.write(broker.bootstrap, topic, [n for n in range(900) if n % 3], partitions=3)
    abort_some(broker.bootstrap, topic)
    records.write(broker.bootstrap, topic, range(900, 903), partitions=3)
    consumer = confluent.make_consumer(broker.bootstrap, {"group.id": topic})
    # Apache Kafka's coordinator may not be ready.
    eventually(lambda: confluent.has_committed(consumer, TopicPartition(topic, 1, 100)))
    consumer.close()

    qualities = look_at(spark, str(broker.data_dir), topic)
    assert [
        (partition.partition, partition.records, partition.gaps, partition.resent)
        for partition in qualities
    ] == [
        *((0, 51, 0, 0), (1, 351, 0, 0), (2, 301, 0, 0)),
    ]
    second = qualities[1]
    assert (second.first_offset, second.last_offset, second.markers, second.keyed, second.keys) == (
        *(0, 351, 1, 351, 11),
    )
    (lag,) = lags_of({"bootstrap.servers": broker.bootstrap}, {topic})
    assert (lag.group, lag.partition, lag.lag) == (topic, 1, 252)
    assert skew_of(qualities) == 351 * 3 / 703
    lines = list(table_of_quality(qualities, [lag]))
    assert lines[0] == f"{topic}: 703 records, skew 1.50"
    assert lines[3].endswith("#" * 30)
    assert f"  group {topic}, partition 1: lag 252" in lines
    metrics = [json.loads(line) for line in lines_of_quality(qualities, [lag])]
    assert [metric["kind"] for metric in metrics] == [*["partition"] * 3, "topic", "lag"]
    picture = ElementTree.fromstring("\n".join(picture_of_quality(qualities, [lag])))
    texts = [element.text for element in picture if element.tag.endswith("text")]
    assert texts[1:] == [
        *("partition 0", "51", "partition 1", "351", "partition 2", "301"),
        *(_cut(f"{topic}, 1"), "252 behind"),
    ]
    widths = [int(element.get("width", 0)) for element in picture if element.tag.endswith("rect")]
    assert widths[1:] == [51, 350, 300, 251]

    file = tmp_path / "job.toml"
    text = f'path = "{broker.data_dir}"\ntopics = "{topic}"\nmetrics = "m.jsonl"\nplot = "q.svg"\n'
    file.write_text(f'{text}[kafka]\n"bootstrap.servers" = "{broker.bootstrap}"', encoding="utf-8")
    job = load_job(file, QualityJob)
    assert run_quality(spark, job, kafka_settings_if_any(file, job.kafka)) == 0
    lines = (tmp_path / "m.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == metrics
    drawn = ElementTree.fromstring((tmp_path / "q.svg").read_text(encoding="utf-8"))
    assert [element.text for element in drawn if element.tag.endswith("text")] == texts
    closed_port = {"bootstrap.servers": f"127.0.0.1:{free_port()}", "socket.timeout.ms": "1000"}
    with pytest.raises(PipelineError, match=r"127\.0\.0\.1:\d+: "):
        run_quality(spark, job, closed_port)


def test_partitions_without_records_are_reported_and_increase_skew(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    from wirebroker.pipelines.quality.quality import look_at
    from wirebroker.segments.errors import OptionError

    records.create_topic(broker.bootstrap, topic, partitions=3)
    # Apache Kafka creates the folders after its response.
    eventually(lambda: len(list(broker.data_dir.glob(f"{topic}-*"))) == 3)
    qualities = look_at(spark, str(broker.data_dir), topic)
    assert [
        (partition.partition, partition.records, partition.gaps) for partition in qualities
    ] == [
        *((0, 0, 0), (1, 0, 0), (2, 0, 0)),
    ]
    assert next(iter(table_of_quality(qualities, []))) == f"{topic}: 0 records, skew 0.00"
    records.write(broker.bootstrap, topic, range(0, 300, 3), partitions=3)
    qualities = look_at(spark, str(broker.data_dir), topic)
    assert [partition.records for partition in qualities] == [100, 0, 0]
    assert skew_of(qualities) == 3
    with pytest.raises(OptionError, match="no directory"):
        look_at(spark, f"{broker.data_dir}-elsewhere", topic)


def test_duplicate_records_are_reported(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    from wirebroker.pipelines.quality.quality import look_at

    records.create_topic(broker.bootstrap, topic, partitions=2)
    records.write(broker.bootstrap, topic, range(1, 600, 2), partitions=2)
    # A copied segment with other offsets and the same sequences.
    (tmp_path / f"{topic}-0").mkdir()
    name = "00000000000000000000.log"
    shutil.copy(broker.data_dir / f"{topic}-1" / name, tmp_path / f"{topic}-0" / name)
    segment = bytearray((tmp_path / f"{topic}-0" / name).read_bytes())
    position = 0
    while position < len(segment):
        offset = int.from_bytes(segment[position : position + 8])
        segment[position : position + 8] = (offset + 1_000).to_bytes(8)
        position += 12 + int.from_bytes(segment[position + 8 : position + 12])
    (tmp_path / f"{topic}-0" / f"{1_000:020}.log").write_bytes(segment)
    (again,) = look_at(spark, str(tmp_path), topic)
    assert (again.records, again.resent, again.gaps) == (600, 300, 700)
