"""Jobs in tests: their files, runs and results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from compat_tests.clients import confluent
from compat_tests.clients.message import WAIT_S

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def write_job(folder: Path, bootstrap: str, tables: dict[str, Any], **settings: Any) -> Path:
    all_settings = {
        "checkpoint": "checkpoint",
        "metrics": "metrics.jsonl",
        "patience": 20,
        **settings,
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in all_settings.items()]
    for name, table in {"kafka": {"bootstrap.servers": bootstrap}, **tables}.items():
        lines += [f"[{name}]", *(f'"{key}" = {json.dumps(value)}' for key, value in table.items())]
    path = folder / "job.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def run(kind: str, path: Path, spark: SparkSession) -> dict[str, Any]:
    from wirebroker.pipelines.commands.job_commands import run_job
    from wirebroker.pipelines.run.job_run import StopRequest

    summary = run_job(kind, path, stop=StopRequest(), spark=spark)
    assert isinstance(summary, dict)
    return summary


def read_all(bootstrap: str, topic: str, count: int, *, partitions: int) -> list[Any]:
    """Return a topic's committed records by partition and offset."""
    consumer = confluent.make_consumer(bootstrap)
    try:
        numbers = range(partitions)
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in numbers])
        messages: list[Any] = []
        while len(messages) < count:
            polled = consumer.consume(count - len(messages), timeout=WAIT_S)
            assert polled, f"{len(messages)} of {count}"
            messages += polled
        assert not consumer.consume(1, timeout=1.0), f"{topic} has more than {count} records"
    finally:
        consumer.close()
    return sorted(messages, key=lambda message: (message.partition(), message.offset()))


def write_files(source: Path, files: int, rows: int) -> None:
    """Write files with the rows 0 to files * rows - 1, and an invalid line in each."""
    source.mkdir()
    for number in range(files):
        ids = range(number * rows, number * rows + rows)
        text = "".join(f'{{"id": {number}, "who": "k{number % 500}"}}\n' for number in ids)
        (source / f"{number}.jsonl").write_text(f"{text}bad {number}\n", encoding="utf-8")


def check_files(bootstrap: str, topic: str, files: int, rows: int, *, partitions: int) -> None:
    """Assert that topics contain the rows of `write_files` and their dead letters once."""
    messages = read_all(bootstrap, topic, files * rows, partitions=partitions)
    assert sorted(json.loads(message.value())["id"] for message in messages) == list(
        range(files * rows)
    )
    dead = read_all(bootstrap, f"{topic}.dead-letters", files, partitions=1)
    assert sorted(message.value() for message in dead) == sorted(
        b"bad %d" % n for n in range(files)
    )


def forget_last_commit(folder: Path) -> None:
    """Change a job's folder as if it had not stored its last batch's end."""
    commits = (folder / "checkpoint" / "spark" / "commits").glob("[0-9]*")
    last = max(commits, key=lambda path: int(path.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink()
