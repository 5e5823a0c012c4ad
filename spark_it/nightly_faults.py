"""Jobs under many faults, `python -m tests.nightly spark-faults`: counted to the record.

Each job runs in a process of its own while its broker, its driver and its workers are killed, and
its driver is told to end: ten times in all, in an order that the seed gives. Then it runs to its
end, and the topic must hold what the model says.
"""

from __future__ import annotations

import json
import random
import sys
from typing import TYPE_CHECKING

import pytest

from spark_it import faulty_runs, job_kit, records
from spark_it.faulty_runs import Driver
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.conftest import StartBroker
    from tests.support.brokers import Broker

pytestmark = [pytest.mark.long, pytest.mark.java, pytest.mark.timeout(3_600)]

TIMES = 10
PARTITIONS = 3
FILES, ROWS = 150, 1_000
RECORDS = 150_000
WAIT_S = 300.0
FAULTS = ("broker", "driver", "workers", "terminate")
FUNCTION = """
def double(record):
    return [record, record._replace(value=b"-" + record.value)]
"""


class Faults:
    """Runs a job's drivers and does to them, and to the broker, what the seed says."""

    def __init__(self, kind: str, job: Path, broker: Broker, seed: int) -> None:
        self._kind = kind
        self._job = job
        self._broker = broker
        self._plan = [FAULTS[number % len(FAULTS)] for number in range(TIMES)]
        random.Random(seed).shuffle(self._plan)
        self._driver = Driver(kind, job)

    def run(self) -> None:
        """Do all faults, each when the job has got on since the last, then let it end."""
        done = 0
        for fault in self._plan:
            self._get_on()
            if self._driver.status is not None:
                break
            self._do(fault)
            done += 1
        assert self._driver.wait(WAIT_S * 4) == 0
        sys.stdout.write(f"{self._kind}: {done} kills, {self._batches()} batches told\n")
        assert done == TIMES, f"the job was done behind {done} of {TIMES} faults: give it more"

    def _do(self, fault: str) -> None:
        if fault == "broker":
            self._broker.kill9()
            self._broker.start()
        elif fault == "workers":
            java = self._driver.java()
            assert java is not None
            faulty_runs.kill_workers(java)
        elif fault == "driver":
            self._driver.kill()
            self._driver = Driver(self._kind, self._job)
        else:
            assert fault == "terminate"
            assert self._driver.terminate() == 0
            self._driver = Driver(self._kind, self._job)

    def _batches(self) -> int:
        return len(faulty_runs.told(self._job.parent, "batch"))

    def _get_on(self) -> None:
        before = self._batches()
        eventually(
            lambda: self._batches() > before or self._driver.status is not None, timeout_s=WAIT_S
        )


def test_an_ingest_under_faults_has_each_row_once(
    start_broker: StartBroker, topic: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    broker = start_broker()
    (tmp_path / "in").mkdir()
    for number in range(FILES):
        rows = range(number * ROWS, number * ROWS + ROWS)
        text = "".join(f'{{"id": {each}, "who": "k{each % 500}"}}\n' for each in rows)
        (tmp_path / "in" / f"{number}.jsonl").write_text(f"{text}bad {number}\n", encoding="utf-8")
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
    Faults("ingest", job, broker, pytestconfig.option.seed).run()
    count = FILES * ROWS
    found = job_kit.read_all(broker.bootstrap, topic, count, partitions=PARTITIONS)
    assert sorted(json.loads(each.value())["id"] for each in found) == list(range(count))
    dead = job_kit.read_all(broker.bootstrap, f"{topic}.dead-letters", FILES, partitions=1)
    assert sorted(each.value() for each in dead) == sorted(b"bad %d" % n for n in range(FILES))


def test_a_replay_under_faults_has_each_record_once(
    start_broker: StartBroker, topic: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    broker = start_broker()
    records.create_topic(broker.bootstrap, topic, partitions=PARTITIONS)
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
    Faults("replay", job, broker, pytestconfig.option.seed).run()
    found = job_kit.read_all(broker.bootstrap, f"{topic}-to", 2 * RECORDS, partitions=PARTITIONS)
    values = sorted(each.value() for each in found)
    model = [b"%d" % each for each in range(RECORDS)]
    assert values == sorted([*model, *(b"-" + each for each in model)])
