"""*replay* sends a time range of a topic through a function, each record once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_it.kit import job_kit, records

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.brokers.brokers import Broker

pytestmark = [pytest.mark.long, pytest.mark.java]

FUNCTION = """
def halve(record):
    number = int(record.value)
    if number % 10 == 7:
        raise ValueError(f"{number} is no good")
    if number % 2:
        return None
    return [record, record._replace(key=b"copy", value=b"-" + record.value)]
"""


def moment(number: int) -> str:
    import datetime

    at_s = (records.START_MS + number) / 1000
    return datetime.datetime.fromtimestamp(at_s, datetime.UTC).isoformat()


@pytest.mark.parametrize(
    "by_path",
    [
        pytest.param(False, id="connector", marks=pytest.mark.nightly),
        pytest.param(True, id="directories"),
    ],
)
def test_time_range_is_transformed_once(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, *, by_path: bool
) -> None:
    records.create_topic(broker.bootstrap, topic, partitions=2)
    records.write(broker.bootstrap, topic, range(1_000), partitions=2)
    # Without retention, which would delete old records.
    records.create_topic(broker.bootstrap, f"{topic}-to", partitions=3)
    (tmp_path / "mine.py").write_text(FUNCTION, encoding="utf-8")
    path = job_kit.write_job(
        tmp_path,
        broker.bootstrap,
        {},
        name=f"job-{topic}",
        source=topic,
        topic=f"{topic}-to",
        start=moment(100),
        end=moment(900),
        function="mine.py:halve",
        records_per_batch=300,
        path=str(broker.data_dir) if by_path else "",
    )
    summary = job_kit.run("replay", path, spark)
    assert (summary["records"], summary["dead_letters"]) == (800, 80)
    assert summary["batches"] > 1
    job_kit.forget_last_commit(tmp_path)
    again = job_kit.run("replay", path, spark)
    assert (again["records"], again["slices_sent_before"]) == (0, 3)
    messages = job_kit.read_all(broker.bootstrap, f"{topic}-to", 800, partitions=3)
    evens = range(100, 900, 2)
    assert sorted(int(message.value()) for message in messages) == sorted(
        [*evens, *(-number for number in evens)]
    )
    unchanged = next(message for message in messages if message.value() == b"100")
    assert unchanged.timestamp()[1] == records.START_MS + 100
    assert (unchanged.key(), unchanged.headers()) == (b"k0", [("codec", b"none")])
    dead = job_kit.read_all(broker.bootstrap, f"{topic}-to.dead-letters", 80, partitions=1)
    reasons = {dict(message.headers())["reason"] for message in dead}
    assert b"ValueError('107 is no good')" in reasons
    for message in dead:
        assert message.timestamp()[1] > records.START_MS + 1_000  # now
        time = records.START_MS + int(message.value())
        assert dict(message.headers())["timestamp"] == b"%d" % time


def test_function_error_stops_job_if_configured(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    from wirebroker.pipelines.job.errors import PipelineError

    records.create_topic(broker.bootstrap, topic, partitions=1)
    records.write(broker.bootstrap, topic, range(10), partitions=1)
    (tmp_path / "mine.py").write_text(FUNCTION, encoding="utf-8")
    path = job_kit.write_job(
        tmp_path,
        broker.bootstrap,
        {},
        name=f"job-{topic}",
        source=topic,
        topic=f"{topic}-to",
        function="mine.py:halve",
        on_error="stop",
    )
    with pytest.raises(PipelineError, match=f"the function fails for {topic}-0@7: ValueError"):
        job_kit.run("replay", path, spark)
    assert job_kit.read_all(broker.bootstrap, f"{topic}-to", 0, partitions=1) == []
