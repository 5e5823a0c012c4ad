"""A recreated topic is never read from the old topic's position.

Each recreated topic has more records than the old one, so that the old offsets exist.
"""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient

from compat_tests.support import topics
from spark_it.kit import job_kit, records
from tests.support.tools.waiting import eventually
from wirebroker.segments.errors import RecreatedTopicError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from tests.support.brokers.brokers import Broker

pytestmark = [pytest.mark.nightly, pytest.mark.java]

OLD, NEW = range(600), range(10_000, 10_900)
PARTITIONS = 2


def topic_id(broker: Broker, topic: str) -> str:
    from wirebroker.pipelines.delivery.source_identity import ids_at_broker

    return ids_at_broker(AdminClient({"bootstrap.servers": broker.bootstrap}), [topic])[topic]


def create(broker: Broker, topic: str, numbers: range) -> str:
    records.create_topic(broker.bootstrap, topic, partitions=PARTITIONS)
    records.write(broker.bootstrap, topic, numbers, partitions=PARTITIONS)
    return topic_id(broker, topic)


def recreate(broker: Broker, topic: str) -> str:
    """Delete a topic, and create it with other records; return its new id."""
    topics.delete(broker.bootstrap, topic)
    # The folders, which would show the old topic, are deleted after the response.
    eventually(lambda: not list(Path(broker.data_dir).glob(f"{topic}-[0-9]")))
    return create(broker, topic, NEW)


def refused(ids: tuple[str, str], function: Callable[[], Any]) -> None:
    with pytest.raises(Exception, match="was recreated") as raised:
        function()
    assert all(recreated_id in str(raised.value) for recreated_id in ids), str(raised.value)


def test_stream_of_data_source_detects_recreated_topic(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    from wirebroker.segments import SegmentDataSource

    spark.dataSource.register(SegmentDataSource)
    checkpoint = tmp_path / "checkpoint"

    def run(**options: str) -> list[int]:
        numbers: list[int] = []

        def note(table: DataFrame, _: int) -> None:
            numbers.extend(row[0] for row in table.selectExpr("INT(STRING(value))").collect())

        reader = spark.readStream.format("wirebroker-segments").options(**options)
        reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
        table = reader.option("maxOffsetsPerTrigger", "500").load(str(broker.data_dir))
        writer = table.writeStream.foreachBatch(note).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(checkpoint)).start()
        query.awaitTermination()
        return sorted(numbers)

    first = create(broker, topic, OLD)
    assert run() == list(OLD)
    second = recreate(broker, topic)
    refused((first, second), run)
    refused((first, second), lambda: run(failOnDataLoss="false"))
    assert run(recreatedTopics="restart") == list(NEW)
    assert run() == []

    for path in (checkpoint / "offsets").glob("[0-9]*"):  # as before ids were stored
        *head, offsets = path.read_text(encoding="utf-8").splitlines()
        offsets_by_topic = json.loads(offsets)
        assert offsets_by_topic.pop("#topicIds") in ({topic: first}, {topic: second})
        path.write_text("\n".join([*head, json.dumps(offsets_by_topic)]), encoding="utf-8")
        path.with_name(f".{path.name}.crc").unlink()
    records.write(broker.bootstrap, topic, [1], partitions=PARTITIONS)
    assert run() == [1]
    refused((second, recreate(broker, topic)), run)


def test_archive_and_restore_detect_recreated_topic(
    spark: SparkSession,
    broker: Broker,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from wirebroker.pipelines.archive import archive
    from wirebroker.pipelines.archive.archive_job import ArchiveJob, run_archive
    from wirebroker.pipelines.archive.restore_job import RestoreJob, run_restore
    from wirebroker.pipelines.run.job_run import StopRequest

    target = tmp_path / "archive"

    def run(recreated_topic: str = "stop") -> int:
        path = str(broker.data_dir)
        job = ArchiveJob(
            path=path, topics=topic, target=str(target), recreated_topic=recreated_topic
        )
        return run_archive(spark, job, StopRequest())

    def restored(name: str, topic_ids: str = "") -> int:
        job = RestoreJob(target=str(target), into=str(tmp_path / name), topic_ids=topic_ids)
        assert run_restore(spark, job, {}) == 0
        reader = spark.read.format("wirebroker-segments").option("subscribe", topic)
        return reader.load(str(tmp_path / name)).count()

    first = create(broker, topic, OLD)
    with monkeypatch.context() as before:  # as before ids were stored
        columns = archive._COMMITTED["columns"].replace(",topicId", "")
        before.setitem(archive._COMMITTED, "columns", columns)
        assert run() == 0
    assert restored("unknown") == len(OLD)
    shutil.rmtree(target)
    assert run() == 0
    assert restored("one") == len(OLD)
    second = recreate(broker, topic)
    refused((first, second), run)
    assert run("restart") == 0
    assert run() == 0
    refused((first, second), lambda: restored("none"))
    assert restored("old", first) == len(OLD)
    assert restored("new", f"{second}, {second}") == len(NEW)


@pytest.mark.parametrize("by_path", [False, True])
def test_job_detects_recreated_topic_at_start(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, *, by_path: bool
) -> None:
    target = f"{topic}-to"
    first = create(broker, topic, OLD)
    records.create_topic(broker.bootstrap, target, partitions=1)

    def run(recreated_topic: str = "stop") -> int:
        path = job_kit.write_job(
            *(tmp_path, broker.bootstrap, {}),
            name=target,
            source=topic,
            topic=target,
            recreated_topic=recreated_topic,
            records_per_batch=400,
            path=str(broker.data_dir) if by_path else "",
        )
        summary = job_kit.run("replay", path, spark)
        count = summary["records"]
        assert isinstance(count, int)
        return count

    assert run() == len(OLD)
    (tmp_path / "checkpoint" / "source.json").unlink()  # as before ids were stored
    assert run() == 0
    job_kit.forget_last_commit(tmp_path)
    second = recreate(broker, topic)
    refused((first, second), run)
    assert run("restart") == len(NEW)
    assert run() == 0
    messages = job_kit.read_all(broker.bootstrap, target, len(OLD) + len(NEW), partitions=1)
    assert sorted(int(message.value()) for message in messages) == [*OLD, *NEW]
    refused((second, recreate(broker, topic)), run)


@pytest.mark.parametrize("recreated_topic", ["stop", "restart"])
def test_running_job_detects_recreated_topic(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, recreated_topic: str
) -> None:
    from wirebroker.pipelines.commands.job_commands import run_job
    from wirebroker.pipelines.run.job_run import StopRequest

    target, stop = f"{topic}-to", StopRequest()
    ids = [create(broker, topic, OLD)]
    records.create_topic(broker.bootstrap, target, partitions=1)
    path = job_kit.write_job(
        *(tmp_path, broker.bootstrap, {}),
        name=target,
        source=topic,
        topic=target,
        recreated_topic=recreated_topic,
        every=0.5,
        patience=60,
    )
    failures: list[Exception] = []

    def run() -> None:
        try:
            run_job("replay", path, stop=stop, spark=spark)
        except RecreatedTopicError as error:
            failures.append(error)

    def written() -> int:
        return records.end_offsets(broker.bootstrap, target, partitions=1)[0]

    thread = threading.Thread(target=run)
    thread.start()
    try:
        eventually(lambda: written() > len(OLD), timeout_s=120)  # with its marker
        ids.append(recreate(broker, topic))
        if recreated_topic == "restart":
            eventually(lambda: written() > len(OLD) + len(NEW), timeout_s=120)
        else:
            thread.join(120)
    finally:
        stop.ask()
        thread.join(120)
    assert not thread.is_alive()
    count = len(OLD) + len(NEW) if recreated_topic == "restart" else len(OLD)
    job_kit.read_all(broker.bootstrap, target, count, partitions=1)
    assert [all(recreated_id in str(failure) for recreated_id in ids) for failure in failures] == [
        True
    ] * (recreated_topic == "stop")


@pytest.mark.parametrize("recreated_topic", ["stop", "restart"])
@pytest.mark.parametrize("by_path", [False, True])
def test_topic_recreated_between_check_and_read_is_detected(
    spark: SparkSession,
    broker: Broker,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    by_path: bool,
    recreated_topic: str,
) -> None:
    from wirebroker.pipelines.delivery.source_identity import SourceIdentity

    target = f"{topic}-to"
    ids = [create(broker, topic, OLD)]
    records.create_topic(broker.bootstrap, target, partitions=2)
    path = job_kit.write_job(
        *(tmp_path, broker.bootstrap, {}),
        name=target,
        source=topic,
        topic=target,
        recreated_topic=recreated_topic,
        patience=60,
        path=str(broker.data_dir) if by_path else "",
    )
    check = SourceIdentity.check

    def check_and_recreate(self: SourceIdentity) -> None:
        check(self)
        if len(ids) == 1:
            ids.append(recreate(broker, topic))

    monkeypatch.setattr(SourceIdentity, "check", check_and_recreate)
    if recreated_topic == "restart":
        assert job_kit.run("replay", path, spark)["records"] == len(NEW)
    else:
        refused((ids[0], ""), lambda: job_kit.run("replay", path, spark))
    count = len(NEW) if recreated_topic == "restart" else 0
    messages = job_kit.read_all(broker.bootstrap, target, count, partitions=2)
    assert sorted(int(message.value()) for message in messages) == [*NEW][:count]


def test_quality_report_detects_recreated_topic(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    from wirebroker.pipelines.quality.quality_job import QualityJob, run_quality

    first = create(broker, topic, OLD)
    copy = tmp_path / "copy"
    for number in range(PARTITIONS):
        shutil.copytree(Path(broker.data_dir) / f"{topic}-{number}", copy / f"{topic}-{number}")
    kafka = {"bootstrap.servers": broker.bootstrap}
    job = QualityJob(path=str(copy), topics=topic, kafka=dict(kafka))
    assert run_quality(spark, job, kafka) == 0
    second = recreate(broker, topic)
    refused((first, second), lambda: run_quality(spark, job, kafka))
    assert run_quality(spark, job, {}) == 0
    shutil.rmtree(copy / f"{topic}-1")
    shutil.copytree(Path(broker.data_dir) / f"{topic}-1", copy / f"{topic}-1")
    refused((first, second), lambda: run_quality(spark, job, {}))
