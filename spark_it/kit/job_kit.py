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
    """Write a job's file; return its path."""
    given = {"checkpoint": "checkpoint", "metrics": "metrics.jsonl", "patience": 20, **settings}
    lines = [f"{name} = {json.dumps(value)}" for name, value in given.items()]
    for name, table in {"kafka": {"bootstrap.servers": bootstrap}, **tables}.items():
        lines += [f"[{name}]", *(f'"{key}" = {json.dumps(one)}' for key, one in table.items())]
    path = folder / "job.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def run(kind: str, path: Path, spark: SparkSession) -> dict[str, Any]:
    from wirebroker.pipelines.commands.job_commands import run_job
    from wirebroker.pipelines.run.job_run import StopWish

    found = run_job(kind, path, stop=StopWish(), spark=spark)
    assert isinstance(found, dict)
    return found


def read_all(bootstrap: str, topic: str, count: int, *, partitions: int) -> list[Any]:
    """Return a topic's committed records by partition and offset; assert their number."""
    consumer = confluent.make_consumer(bootstrap)
    try:
        places = range(partitions)
        consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in places])
        found: list[Any] = []
        while len(found) < count:
            got = consumer.consume(count - len(found), timeout=WAIT_S)
            assert got, f"{len(found)} of {count}"
            found += got
        assert not consumer.consume(1, timeout=1.0), f"{topic} has more than {count} records"
    finally:
        consumer.close()
    return sorted(found, key=lambda each: (each.partition(), each.offset()))


def write_files(source: Path, files: int, rows: int) -> None:
    """Write files with the rows 0 to files * rows - 1, and an invalid line in each."""
    source.mkdir()
    for number in range(files):
        ids = range(number * rows, number * rows + rows)
        text = "".join(f'{{"id": {each}, "who": "k{each % 500}"}}\n' for each in ids)
        (source / f"{number}.jsonl").write_text(f"{text}bad {number}\n", encoding="utf-8")


def check_files(bootstrap: str, topic: str, files: int, rows: int, *, partitions: int) -> None:
    """Assert that topics contain the rows of `write_files` and their dead letters once."""
    found = read_all(bootstrap, topic, files * rows, partitions=partitions)
    assert sorted(json.loads(each.value())["id"] for each in found) == list(range(files * rows))
    dead = read_all(bootstrap, f"{topic}.dead-letters", files, partitions=1)
    assert sorted(each.value() for each in dead) == sorted(b"bad %d" % n for n in range(files))


def forget_last_commit(folder: Path) -> None:
    """Change a job's folder as if the run was killed before it stored its last batch's end."""
    commits = (folder / "checkpoint" / "spark" / "commits").glob("[0-9]*")
    last = max(commits, key=lambda each: int(each.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink()
