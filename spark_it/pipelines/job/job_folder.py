"""A job's state beside Spark's checkpoint, in a folder kept between runs.

    CHECKPOINT/spark/         Spark's checkpoint: the input of each batch
    CHECKPOINT/job.json       the job's name, its topic, and the folder's identity
    CHECKPOINT/batches/N      the plan of batch N, written before its first record is sent
    CHECKPOINT/source.json    the id of the source topic; after a restart with a recreated topic
                              also the new folder of Spark's checkpoint and its first batch's number

An interrupted batch is repeated with the same plan, even if the topic has more partitions by then.
"""

from __future__ import annotations

import json
import os
import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.codecs.json_text import parse_json
from wirebroker.pipelines.job.errors import PositionError

if TYPE_CHECKING:
    from pathlib import Path

# The previous plan is kept for inspection.
_KEPT: Final = 2


class BatchPlan(NamedTuple):
    """How a batch is divided.

    `partitions` are those of the topic, with a slice each; `dead_partitions` those of the dead
    letters' topic, or 0. `more` has other values that the job reuses.
    """

    batch: int
    partitions: int
    dead_partitions: int
    more: dict[str, Any]


class JobFolder:
    """A job's folder, with a unique `identity`.

    `spark` is the folder of Spark's checkpoint, whose batch 0 has the number `first_batch`.
    `source_id` is the id of the source topic, or "".

    Raises:
        PositionError: It belongs to another job.
    """

    def __init__(self, folder: Path, job: str, topic: str) -> None:
        self._folder = folder
        self._batches = folder / "batches"
        self._batches.mkdir(parents=True, exist_ok=True)
        path = folder / "job.json"
        expected = {"job": job, "topic": topic}
        if not path.exists():
            _write(path, {**expected, "identity": str(uuid.uuid4())})
        saved = parse_json(path.read_text(encoding="utf-8"))
        self.identity = str(saved.pop("identity"))
        if saved != expected:
            raise PositionError(f"{folder} is the checkpoint of {saved}, not of {expected}")

        self._source = folder / "source.json"
        self._read_source()

    def take_source(self, topic_id: str) -> None:
        """Store the id of the source topic."""
        _write(self._source, self._source_fields() | {"topic_id": topic_id})
        self._read_source()

    def restart(self, topic_id: str) -> None:
        """Restart with a recreated topic and a new Spark checkpoint; batch numbers continue."""
        fields = {"spark": f"spark-{topic_id}", "first_batch": self.last_begun() + 1}
        _write(self._source, {"topic_id": topic_id, **fields})
        self._read_source()

    def last_begun(self) -> int:
        """Return the number of the last begun batch, or -1."""
        return max((int(path.name) for path in self._batches.glob("[0-9]*")), default=-1)

    def _source_fields(self) -> dict[str, Any]:
        fields = {"topic_id": "", "spark": "spark", "first_batch": 0}
        if self._source.exists():
            fields |= parse_json(self._source.read_text(encoding="utf-8"))
        return fields

    def _read_source(self) -> None:
        fields = self._source_fields()
        self.source_id = str(fields["topic_id"])
        self.spark = str(self._folder / str(fields["spark"]))
        self.first_batch = int(fields["first_batch"])

    def find(self, batch: int) -> BatchPlan | None:
        """Return the plan of a begun batch, or None."""
        path = self._batches / str(batch)
        if not path.exists():
            return None
        return BatchPlan(**parse_json(path.read_text(encoding="utf-8")))

    def keep(self, plan: BatchPlan) -> None:
        """Write a batch's plan and sync it to disk."""
        _write(self._batches / str(plan.batch), plan._asdict())
        (self._batches / str(plan.batch - _KEPT)).unlink(missing_ok=True)


def _write(path: Path, content: dict[str, Any]) -> None:
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
