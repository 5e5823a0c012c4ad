"""Jobs under many faults, `python -m tests.nightly spark-faults`: counted to the record.

Each job runs in a process of its own while its broker, its driver and its workers are killed, and
its driver is told to end: ten times in all, in an order that the seed gives. Then it runs to its
end, and the topic must hold what the model says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_it import faulty_runs, job_kit, records
from spark_it.faulty_runs import WAIT_S, FaultyRun

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.conftest import StartBroker

pytestmark = [pytest.mark.long, pytest.mark.java, pytest.mark.timeout(3_600)]

PARTITIONS = 3
FILES, ROWS = 150, 1_000
RECORDS = 150_000
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
