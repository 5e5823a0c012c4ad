"""Jobs and a user's query whose output is compared with a model after faults."""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from collections import defaultdict
from typing import TYPE_CHECKING, Any, ClassVar

from compat_tests.clients import confluent
from compat_tests.clients.message import WAIT_S as CLIENT_S
from spark_it.kit import faulty_runs, job_kit, records
from spark_it.kit.faulty_runs import WAIT_S
from spark_it.tools import spark_tools

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_FUNCTION = """
def double(record):
    return [record, record._replace(value=b"-" + record.value)]
"""
_QUERY = """
import json, signal, sys, time
from pathlib import Path
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from wirebroker.pipelines import exactly_once

job = json.loads(Path(__file__).with_name("query.json").read_text())
builder = SparkSession.builder
for name, value in job["spark"].items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
send = exactly_once(
    job["to"], job["to"], kafka={"bootstrap.servers": job["servers"]}, checkpoint=job["checkpoint"]
)


def handle(table, batch):
    twice = table.selectExpr("key", "value").union(
        table.selectExpr("key", "CAST(concat('-', CAST(value AS STRING)) AS BINARY) AS value")
    )
    sent = send(twice, batch)
    with Path(job["metrics"]).open("a") as metrics:
        metrics.write(json.dumps({"kind": "batch", **sent._asdict()}) + "\\n")


while True:
    try:
        reader = spark.readStream.format("kafka").option("subscribe", job["source"])
        reader = reader.option("kafka.bootstrap.servers", job["servers"])
        reader = reader.option("startingOffsets", "earliest")
        table = reader.option("maxOffsetsPerTrigger", job["rows"]).load()
        writer = table.writeStream.foreachBatch(handle).trigger(availableNow=True)
        query = writer.option("checkpointLocation", send.checkpoint).start()
        while not query.awaitTermination(0.25):
            if asked:
                query.stop()
                sys.exit()
        sys.exit()
    except PySparkException as error:
        print(error, flush=True)
        time.sleep(1)
"""
_WRITTEN = 50_000  # a client's queue holds 100,000
_WINDOW_MS, _APART_MS = 60_000, 100
_IN_A_WINDOW = _WINDOW_MS // _APART_MS
_START_MS = records.START_MS // _WINDOW_MS * _WINDOW_MS
_KEYS, _PRICES = 7, 100


class CountedJob(ABC):
    """A job over `rows` rows in each of about this many batches."""

    kind: ClassVar[str]

    def __init__(self, batches: int, rows: int, partitions: int) -> None:
        self.batches = batches
        self._rows = rows
        self._partitions = partitions

    @property
    def _all(self) -> int:
        return self.batches * self._rows

    @abstractmethod
    def write(self, folder: Path, bootstrap: str, topic: str, spark: Mapping[str, str]) -> Path:
        """Write the input and the job, with checkpoint in `folder / "disk"`; return the job's path.

        The names of all topics of the job begin with `topic`.
        """

    @abstractmethod
    def check(self, folder: Path, bootstrap: str, topic: str) -> None:
        """Assert that the job's results match the model, once each."""

    def _write_job(
        self, folder: Path, bootstrap: str, tables: dict[str, Any], **settings: Any
    ) -> Path:
        return job_kit.write_job(
            *(folder, bootstrap, tables),
            partitions=self._partitions,
            patience=WAIT_S,
            checkpoint="disk/checkpoint",
            **settings,
        )

    def _write_records(self, bootstrap: str, topic: str) -> None:
        self._create_topics(bootstrap, topic)
        for start in range(0, self._all, _WRITTEN):
            numbers = range(start, min(start + _WRITTEN, self._all))
            records.write(bootstrap, topic, numbers, partitions=self._partitions)

    def _create_topics(self, bootstrap: str, topic: str) -> None:
        # Jobs keep timestamps, so retention would delete records from both.
        for name in (topic, f"{topic}-to"):
            records.create_topic(bootstrap, name, partitions=self._partitions)

    def _read_all(self, bootstrap: str, topic: str, count: int) -> list[Any]:
        return job_kit.read_all(bootstrap, f"{topic}-to", count, partitions=self._partitions)


class CountedIngest(CountedJob):
    """An ingest with a file for each batch, and an invalid line in each file."""

    kind = "ingest"

    def write(self, folder: Path, bootstrap: str, topic: str, spark: Mapping[str, str]) -> Path:
        job_kit.write_files(folder / "in", self.batches, self._rows)
        tables = {"schema": {"id": "long", "who": "string"}, "spark": spark}
        return self._write_job(
            *(folder, bootstrap, tables),
            name=f"job-{topic}",
            topic=topic,
            source="in",
            key="who",
            files_per_batch=1,
        )

    def check(self, folder: Path, bootstrap: str, topic: str) -> None:
        partitions = self._partitions
        job_kit.check_files(bootstrap, topic, self.batches, self._rows, partitions=partitions)


class CountedReplay(CountedJob):
    """A replay of each record unchanged and changed."""

    kind = "replay"

    def write(self, folder: Path, bootstrap: str, topic: str, spark: Mapping[str, str]) -> Path:
        self._write_records(bootstrap, topic)
        (folder / "mine.py").write_text(_FUNCTION, encoding="utf-8")
        return self._write_job(
            *(folder, bootstrap, {"spark": spark}),
            name=f"job-{topic}",
            source=topic,
            topic=f"{topic}-to",
            function="mine.py:double",
            records_per_batch=self._rows,
        )

    def check(self, folder: Path, bootstrap: str, topic: str) -> None:
        messages = self._read_all(bootstrap, topic, 2 * self._all)
        model = [b"%d" % number for number in range(self._all)]
        values = sorted(message.value() for message in messages)
        assert values == sorted([*model, *(b"-" + text for text in model)])


class CountedQuery(CountedReplay):
    """The same in a user's query, with `exactly_once`."""

    kind = faulty_runs.SCRIPT

    def write(self, folder: Path, bootstrap: str, topic: str, spark: Mapping[str, str]) -> Path:
        self._write_records(bootstrap, topic)
        job = {
            "servers": bootstrap,
            "source": topic,
            "to": f"{topic}-to",
            "rows": self._rows,
            "checkpoint": str(folder / "disk" / "checkpoint"),
            "metrics": str(folder / "metrics.jsonl"),
            "spark": dict(spark),
        }
        (folder / "query.json").write_text(json.dumps(job), encoding="utf-8")
        path = folder / "query.py"
        path.write_text(_QUERY, encoding="utf-8")
        return path


class CountedWindows(CountedJob):
    """Windows of a minute by key, to the topic and to Parquet."""

    kind = "windows"

    def write(self, folder: Path, bootstrap: str, topic: str, spark: Mapping[str, str]) -> Path:
        self._create_topics(bootstrap, topic)
        self._write_events(bootstrap, topic)
        tables = {
            "schema": {"who": "string", "cents": "long"},
            "columns": {"events": "count(*)", "cents": "sum(cents)"},
            "spark": spark,
        }
        return self._write_job(
            *(folder, bootstrap, tables),
            name=f"job-{topic}",
            source=topic,
            topic=f"{topic}-to",
            key="who",
            parquet="disk/parquet",
            records_per_batch=self._rows,
        )

    def check(self, folder: Path, bootstrap: str, topic: str) -> None:
        model: dict[tuple[int, str], list[int]] = defaultdict(list)
        for number in range(self._all):
            model[number // _IN_A_WINDOW, f"k{number % _KEYS}"].append(number % _PRICES)
        windows = len(model)
        for record in self._read_all(bootstrap, topic, windows):
            row = json.loads(record.value())
            window_and_key = (record.timestamp()[1] - _START_MS) // _WINDOW_MS - 1, row["who"]
            cents = model.pop(window_and_key)
            assert (row["events"], row["cents"]) == (len(cents), sum(cents))
        assert not model
        assert not sum(metric.get("late_rows", 0) for metric in faulty_runs.told(folder, "summary"))
        if str(spark_tools.arrow_folder()) not in sys.path:
            sys.path.append(str(spark_tools.arrow_folder()))
        import pyarrow.dataset

        table = pyarrow.dataset.dataset(folder / "disk" / "parquet").to_table(columns=["events"])
        assert (table.num_rows, sum(table["events"].to_pylist())) == (windows, self._all)

    def _write_events(self, bootstrap: str, topic: str) -> None:
        """Write a record for each event, and a far later one that closes all windows."""
        producer = confluent.make_producer(bootstrap, {"enable.idempotence": True})
        for number in [*range(self._all), self._all * 2]:
            row = {"who": f"k{number % _KEYS}", "cents": number % _PRICES}
            producer.produce(
                topic,
                json.dumps(row).encode(),
                partition=number % self._partitions,
                timestamp=_START_MS + number * _APART_MS,
            )
            producer.poll(0)
        assert producer.flush(CLIENT_S) == 0
