"""What a job keeps beside Spark's own checkpoint, in a folder that outlives its runs.

    CHECKPOINT/spark/         Spark's: which input makes which batch
    CHECKPOINT/job.json       the job's name, its topic, and an identity of this folder
    CHECKPOINT/batches/N      what batch N is cut by, written before anything of it is sent
    CHECKPOINT/source.json    the id of the topic that is read, and after a restart with a recreated
                              topic the folder of Spark's then, and the number of its first batch

A batch that was broken off is cut by the same plan when it is done again: the topic may have got
more partitions since.
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

# The batch before is kept, for who wants to look.
_KEPT: Final = 2


class BatchPlan(NamedTuple):
    """What a batch is cut by.

    Attributes:
        batch: Its number.
        partitions: How many the topic has, which are the slices.
        dead_partitions: How many the topic of dead letters has; 0: there is none.
        more: What else the job wants to be the same, by name.
    """

    batch: int
    partitions: int
    dead_partitions: int
    more: dict[str, Any]


class JobFolder:
    """A job's folder.

    Raises:
        PositionError: It is another job's.

    Attributes:
        identity: Of this folder; another, made anew, has another.
        spark: The folder for Spark's own.
        source_id: The id of the topic that is read; "" if it is unknown.
        first_batch: The number of Spark's batch 0.
    """

    def __init__(self, folder: Path, job: str, topic: str) -> None:
        self._folder = folder
        self._batches = folder / "batches"
        self._batches.mkdir(parents=True, exist_ok=True)
        path = folder / "job.json"
        mine = {"job": job, "topic": topic}
        if not path.exists():
            _write(path, {**mine, "identity": str(uuid.uuid4())})
        found = parse_json(path.read_text(encoding="utf-8"))
        self.identity = str(found.pop("identity"))
        if found != mine:
            raise PositionError(f"{folder} is the checkpoint of {found}, not of {mine}")

        self._source = folder / "source.json"
        self._read_source()

    def take_source(self, topic_id: str) -> None:
        """Keep the id of the topic that is read."""
        _write(self._source, self._source_fields() | {"topic_id": topic_id})
        self._read_source()

    def restart(self, topic_id: str) -> None:
        """Restart with a recreated topic: in a new Spark folder; batch numbers continue."""
        fields = {"spark": f"spark-{topic_id}", "first_batch": self.last_begun() + 1}
        _write(self._source, {"topic_id": topic_id, **fields})
        self._read_source()

    def last_begun(self) -> int:
        """Return the number of the last batch that was begun; -1: there is none."""
        return max((int(each.name) for each in self._batches.glob("[0-9]*")), default=-1)

    def _source_fields(self) -> dict[str, Any]:
        known = {"topic_id": "", "spark": "spark", "first_batch": 0}
        if self._source.exists():
            known |= parse_json(self._source.read_text(encoding="utf-8"))
        return known

    def _read_source(self) -> None:
        known = self._source_fields()
        self.source_id = str(known["topic_id"])
        self.spark = str(self._folder / str(known["spark"]))
        self.first_batch = int(known["first_batch"])

    def find(self, batch: int) -> BatchPlan | None:
        """Return the plan of a batch that was begun before; None: it wasn't."""
        path = self._batches / str(batch)
        if not path.exists():
            return None
        return BatchPlan(**parse_json(path.read_text(encoding="utf-8")))

    def keep(self, plan: BatchPlan) -> None:
        """Write a batch's plan; on return it is on the disk."""
        _write(self._batches / str(plan.batch), plan._asdict())
        (self._batches / str(plan.batch - _KEPT)).unlink(missing_ok=True)


def _write(path: Path, content: dict[str, Any]) -> None:
    beside = path.with_name(f".{path.name}.new")
    with beside.open("w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
