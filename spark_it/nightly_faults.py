"""Jobs under many faults, `python -m tests.nightly spark-faults`: counted to the record.

Each job runs in a process of its own while its broker, its driver and its workers are killed, and
its driver is told to end: ten times in all, in an order that the seed gives. Then it runs to its
end, and the topic must hold what the model says.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from compat_tests.clients import confluent
from compat_tests.clients.message import WAIT_S as CLIENT_S
from spark_it import faulty_runs, job_kit, records
from spark_it.faulty_runs import WAIT_S, FaultyRun

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.conftest import StartBroker

pytestmark = [pytest.mark.long, pytest.mark.java, pytest.mark.timeout(3_600)]

PARTITIONS = 3
FILES, ROWS = 150, 1_000
RECORDS = 150_000
# Of windows: so far apart by event time, so many in a window of a minute.
APART_MS, IN_A_WINDOW = 100, 600
EVENTS = 60_000
START_MS = records.START_MS // 60_000 * 60_000
FUNCTION = """
def double(record):
    return [record, record._replace(value=b"-" + record.value)]
"""


def test_an_ingest_under_faults_has_each_row_once(
    start_broker: StartBroker, topic: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    broker = start_broker()
    job_kit.write_files(tmp_path / "in", FILES, ROWS)
    schema = {"id": "long", "who": "string"}
    job = job_kit.write_job(
        *(tmp_path, broker.bootstrap),
        {"schema": schema, "spark": faulty_runs.spark_table(tmp_path)},
        name=f"job-{topic}",
        topic=topic,
        source="in",
        key="who",
        partitions=PARTITIONS,
        files_per_batch=2,
        patience=WAIT_S,
    )
    FaultyRun("ingest", job, broker, pytestconfig.option.seed).run()
    job_kit.check_files(broker.bootstrap, topic, FILES, ROWS, partitions=PARTITIONS)


def test_a_replay_under_faults_has_each_record_once(
    start_broker: StartBroker, topic: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    broker = start_broker()
    # Both keep records however old: by the timestamps, which a replay keeps, they are.
    for name in (topic, f"{topic}-to"):
        records.create_topic(broker.bootstrap, name, partitions=PARTITIONS)
    for start in range(0, RECORDS, 50_000):  # a client's queue has room for 100,000
        numbers = range(start, start + 50_000)
        records.write(broker.bootstrap, topic, numbers, partitions=PARTITIONS)
    (tmp_path / "mine.py").write_text(FUNCTION, encoding="utf-8")
    job = job_kit.write_job(
        *(tmp_path, broker.bootstrap),
        {"spark": faulty_runs.spark_table(tmp_path)},
        name=f"job-{topic}",
        source=topic,
        topic=f"{topic}-to",
        function="mine.py:double",
        partitions=PARTITIONS,
        records_per_batch=2_000,
        patience=WAIT_S,
    )
    FaultyRun("replay", job, broker, pytestconfig.option.seed).run()
    found = job_kit.read_all(broker.bootstrap, f"{topic}-to", 2 * RECORDS, partitions=PARTITIONS)
    values = sorted(each.value() for each in found)
    model = [b"%d" % each for each in range(RECORDS)]
    assert values == sorted([*model, *(b"-" + each for each in model)])


def write_events(bootstrap: str, topic: str) -> None:
    """Write a record for each event, with its time, and one far behind them that closes all."""
    producer = confluent.make_producer(bootstrap, {"enable.idempotence": True})
    numbers = [*range(EVENTS), EVENTS * 2]
    for number in numbers:
        value = json.dumps({"who": f"k{number % 7}", "cents": number % 100}).encode()
        at_ms, partition = START_MS + number * APART_MS, number % PARTITIONS
        producer.produce(topic, value, partition=partition, timestamp=at_ms)
        producer.poll(0)
    assert producer.flush(CLIENT_S) == 0


def check_windows(bootstrap: str, topic: str) -> int:
    """Assert that a topic has each window of the events once, as a model; return their count."""
    model: dict[tuple[int, str], list[int]] = defaultdict(list)
    for number in range(EVENTS):
        model[number // IN_A_WINDOW, f"k{number % 7}"].append(number % 100)
    count = len(model)
    for record in job_kit.read_all(bootstrap, topic, count, partitions=PARTITIONS):
        row = json.loads(record.value())
        place = (record.timestamp()[1] - START_MS) // 60_000 - 1, row["who"]
        cents = model.pop(place)
        assert (row["events"], row["cents"]) == (len(cents), sum(cents))
    assert not model
    return count


def test_windows_under_faults_are_told_once_and_are_a_models(
    start_broker: StartBroker, topic: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    broker = start_broker()
    for name in (topic, f"{topic}-to"):
        records.create_topic(broker.bootstrap, name, partitions=PARTITIONS)
    write_events(broker.bootstrap, topic)
    tables = {
        "schema": {"who": "string", "cents": "long"},
        "columns": {"events": "count(*)", "cents": "sum(cents)"},
        "spark": faulty_runs.spark_table(tmp_path),
    }
    job = job_kit.write_job(
        *(tmp_path, broker.bootstrap, tables),
        name=f"job-{topic}",
        source=topic,
        topic=f"{topic}-to",
        key="who",
        parquet="parquet",
        records_per_batch=4_000,
        patience=WAIT_S,
    )
    FaultyRun("windows", job, broker, request.config.option.seed).run()
    told = check_windows(broker.bootstrap, f"{topic}-to")
    assert not sum(each.get("late_rows", 0) for each in faulty_runs.told(tmp_path, "summary"))
    # Started behind the job's own Spark: one at a time.
    table = request.getfixturevalue("spark").read.parquet(str(tmp_path / "parquet"))
    assert table.selectExpr("count(*)", "sum(events)").collect() == [(told, EVENTS)]
