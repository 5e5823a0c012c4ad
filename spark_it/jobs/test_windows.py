"""Windows, joined with a compacted topic, match a model; each is written once."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.support import topics
from spark_it.kit import job_kit, records
from spark_it.kit.event_rows import START_MS, WINDOW_MS, event, write
from tests.support.brokers.brokers import make_broker

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.brokers.brokers import Broker

pytestmark = [pytest.mark.long, pytest.mark.java]


def job_with_table(
    broker: Broker,
    topic: str,
    folder: Path,
    names: Sequence[tuple[str, Any]],
    tables: dict[str, Any],
    *,
    partitions: int = 1,
    **settings: Any,
) -> Path:
    """Write a table of names by key, and a job that joins it; return the job's path."""
    table = f"{topic}-names"
    records.create_topic(broker.bootstrap, topic, partitions=1)
    # Without retention, which would delete old records.
    records.create_topic(broker.bootstrap, f"{topic}-sums", partitions=partitions)
    topics.create(broker.bootstrap, table, partitions=1, configs={"cleanup.policy": "compact"})
    write(broker.bootstrap, table, names)
    return job_kit.write_job(
        *(folder, broker.bootstrap, tables),
        name=f"job-{topic}",
        source=topic,
        topic=f"{topic}-sums",
        table=table,
        parquet="windows",
        **settings,
    )


def test_windows_match_model_and_are_sent_once(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    table_records = [("k0", {"city": "Old"}), ("k1", {"city": "Rome"}), ("k0", {"city": "Oslo"})]
    job = job_with_table(
        *(broker, topic, tmp_path, [*table_records, ("k1", None)]),
        {
            "schema": {"at": "timestamp", "who": "string", "price": "decimal(10,2)"},
            "columns": {"orders": "count(*)", "total": "sum(price)"},
            "table_schema": {"city": "string"},
        },
        key="who",
        time="at",
        window="1 minute",
        delay="30 seconds",
        partitions=2,
    )
    events = [(number * 500, f"k{number % 3}", number) for number in range(1_000)]
    write(broker.bootstrap, topic, [event(*fields) for fields in events])
    first = job_kit.run("windows", job, spark)
    write(broker.bootstrap, topic, [event(0, "k0", 1), (None, {"who": "k0"}), (None, "no row")])
    time_field = '"at": "2026-01-31T12:00:00Z"'
    bad = (
        '{"at": "12:00", "who": "k0", "price": "1.00"}',  # without a date
        '{"at": "2026-01-31T12:00:00.1234567Z", "who": "k0", "price": "1.00"}',
        '{"at": -1, "who": "k0", "price": "1.00"}',
        f'{{{time_field}, "who": "k0", "price": 1.005}}',
        f'{{{time_field}, "who": "k0", "price": "1.00"}} junk',
        f'{{{time_field}, "who": "k0", "who": "k1", "price": "1.00"}}',
    )
    write(broker.bootstrap, topic, [(None, text.encode()) for text in bad])
    end = (900_000, "k0", 7)
    write(broker.bootstrap, topic, [event(*end)])
    second = job_kit.run("windows", job, spark)
    job_kit.forget_last_commit(tmp_path)
    again = job_kit.run("windows", job, spark)
    assert (again["records"], again["slices_sent_before"]) == (0, 2)

    model: dict[tuple[int, str], list[int]] = defaultdict(list)
    for at_ms, user, cents in events:
        model[at_ms // WINDOW_MS, user].append(cents)
    assert first["records"] + second["records"] == len(model)
    assert (second["rows"], second["bad_rows"], second["late_rows"]) == (10, 8, 1)
    messages = job_kit.read_all(broker.bootstrap, f"{topic}-sums", len(model), partitions=2)
    cities = {"k0": "Oslo", "k1": None, "k2": None}
    for record in messages:
        row = json.loads(record.value())
        number = (record.timestamp()[1] - START_MS) // WINDOW_MS - 1
        prices = model.pop((number, row["who"]))
        assert (row["orders"], round(row["total"] * 100)) == (len(prices), sum(prices))
        assert (record.key().decode(), cities[row["who"]]) == (row["who"], row["city"])
    assert not model
    table = spark.read.parquet(str(tmp_path / "windows"))
    assert table.count() == len(messages)
    assert table.selectExpr("sum(orders)").collect() == [(1_000,)]


@pytest.mark.nightly
def test_columns_may_have_names_of_sql_keywords(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    job = job_with_table(
        *(broker, topic, tmp_path, [("k0", {"home.city": "Oslo"})]),
        {
            "schema": {"event_time": "timestamp", "who.name": "string", "window": "long"},
            "columns": {"sum.of `window`": "sum(window)", "row": "count(*)"},
            "table_schema": {"home.city": "string"},
        },
        key="who.name",
        time="event_time",
        delay="0 seconds",
    )
    rows: list[tuple[str | None, Any]] = [
        (None, {"event_time": START_MS + at_ms, "who.name": "k0", "window": 2})
        for at_ms in (0, 1, 2 * WINDOW_MS)
    ]
    write(broker.bootstrap, topic, rows)
    assert job_kit.run("windows", job, spark)["records"] == 1
    (message,) = job_kit.read_all(broker.bootstrap, f"{topic}-sums", 1, partitions=1)
    row = json.loads(message.value())
    expected = {"who.name": "k0", "sum.of `window`": 4, "row": 2, "home.city": "Oslo"}
    assert expected.items() <= row.items()
    assert message.key() == b"k0"
    table = spark.read.parquet(str(tmp_path / "windows"))
    assert table.select("`who.name`", "`home.city`").collect() == [("k0", "Oslo")]


@pytest.mark.nightly
def test_a_table_is_read_from_directories_of_another_cluster(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    with make_broker("wirebroker", tmp_path / "source") as source:
        job = job_with_table(
            *(source, topic, tmp_path, [("k0", {"city": "Oslo"})]),
            {
                "kafka": {"bootstrap.servers": broker.bootstrap},
                "schema": {"at": "timestamp", "who": "string", "price": "decimal(10,2)"},
                "columns": {"orders": "count(*)"},
                "table_schema": {"city": "string"},
            },
            key="who",
            time="at",
            delay="0 seconds",
            path=str(source.data_dir),
        )
        write(source.bootstrap, topic, [event(0, "k0", 1), event(2 * WINDOW_MS, "k0", 1)])
    records.create_topic(broker.bootstrap, f"{topic}-sums", partitions=1)
    assert job_kit.run("windows", job, spark)["records"] == 1
    (message,) = job_kit.read_all(broker.bootstrap, f"{topic}-sums", 1, partitions=1)
    row = json.loads(message.value())
    assert (row["who"], row["orders"], row["city"]) == ("k0", 1, "Oslo")
