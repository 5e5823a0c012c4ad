"""What a task makes of a topic's records: placed rows by the user's function, or dead letters.

A dead letter has the record's key, value and headers, and the headers `reason`, `job`, `place`
(TOPIC-PARTITION@OFFSET) and `timestamp`: the record's, as the dead letter's is the time of sending.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.pipelines.job.errors import BadRowError, JobFileError
from wirebroker.pipelines.replay.user_function import InputRecord
from wirebroker.pipelines.rows.placed_rows import PlacedRow, check_time, partition_of
from wirebroker.pipelines.rows.typed_rows import is_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow

    from wirebroker.pipelines.job.job_folder import BatchPlan


class RecordWish(NamedTuple):
    """How records become rows.

    Attributes:
        topic: For what the function returns.
        dead_letters: For what it raises for.
        job: The job's name.
        keeps_partition: Whether the source's partitions are kept, instead of by key.
        stops: Whether an error of the function ends the job.
    """

    topic: str
    dead_letters: str
    job: str
    keeps_partition: bool
    stops: bool


class RecordPlacer:
    """Places the records of one batch."""

    def __init__(
        self, wish: RecordWish, plan: BatchPlan, function: Callable[[InputRecord], Any]
    ) -> None:
        self._wish = wish
        self._plan = plan
        self._function = function

    def rows(self, batch: pyarrow.RecordBatch) -> Iterator[PlacedRow]:
        """Return the rows of a batch with InputRecord's columns."""
        # In the order of its fields: key, value, headers, then the rest.
        columns = [batch.column(name).to_pylist() for name in InputRecord._fields]
        for values in zip(*columns, strict=True):
            key, value, headers, *rest = values
            pairs = [(each["key"], each["value"]) for each in headers or ()]
            yield from self.place(InputRecord(key, value, pairs, *rest))

    def place(self, record: InputRecord) -> list[PlacedRow]:
        """Return what becomes of a record.

        Raises:
            JobFileError: The function raised, and the job is to stop.
        """
        try:
            # Its own headers to change: a dead letter has those that there were.
            returned = self._function(record._replace(headers=list(record.headers)))
            found = _records_in(returned)
            return [self._placed(each, record, index) for index, each in enumerate(found)]
        # Whatever the user's code raises.
        except Exception as error:
            place = f"{record.topic}-{record.partition}@{record.offset}"
            reason = str(error) if isinstance(error, BadRowError) else repr(error)
            if self._wish.stops:
                raise JobFileError(f"the function fails for {place}: {reason}") from error
            return [self._dead(record, place, reason)]

    def _placed(self, row: InputRecord, record: InputRecord, index: int) -> PlacedRow:
        source = _source_of(record)
        count = self._plan.partitions
        partition = record.partition
        if not self._wish.keeps_partition:
            partition = partition_of(row.key, row.value, source, count)
        elif partition >= count:
            raise BadRowError(f"partition {partition} is not there: the topic has {count}")
        for name, content in (("key", row.key), ("value", row.value)):
            if not isinstance(content, bytes | None):
                raise BadRowError(f"the {name} returned is {type(content).__name__}, not bytes")
        headers = [{"key": name, "value": content} for name, content in row.headers]
        if not all(
            is_text(each["key"]) and isinstance(each["value"], bytes | None) for each in headers
        ):
            raise BadRowError("the headers returned are not pairs of str and bytes")
        time = row.timestamp
        if not isinstance(time, int) or (not 0 <= time < 1 << 63 and time != record.timestamp):
            raise BadRowError(f"the timestamp returned is {time!r}, not milliseconds since 1970")
        check_time(time)
        place = (source, record.offset, index)
        return PlacedRow(
            *(partition, *place, self._wish.topic, partition),
            *(row.key, row.value, row.timestamp, headers),
        )

    def _dead(self, record: InputRecord, place: str, reason: str) -> PlacedRow:
        wish, plan = self._wish, self._plan
        time = str(record.timestamp)
        told = (("reason", reason), ("job", wish.job), ("place", place), ("timestamp", time))
        headers = [{"key": name, "value": content} for name, content in record.headers]
        headers += [{"key": name, "value": text.encode(errors="replace")} for name, text in told]
        source = _source_of(record)
        return PlacedRow(
            partition_of(record.key, record.value, source, plan.partitions),
            *(source, record.offset, 0, wish.dead_letters),
            partition_of(record.key, record.value, source, plan.dead_partitions),
            # Sent with the present time: retention would take it soon if its record is old.
            *(record.key, record.value, None, headers),
            is_dead=True,
        )


def _source_of(record: InputRecord) -> str:
    return f"{record.topic}-{record.partition:05d}"


def _records_in(returned: Any) -> list[InputRecord]:
    if returned is None:
        return []
    found = [returned] if isinstance(returned, InputRecord) else returned
    if not isinstance(found, list | tuple) or not all(
        isinstance(each, InputRecord) for each in found
    ):
        raise BadRowError(
            f"the function returned {type(returned).__name__}: None, the record, or a list of them"
        )
    return list(found)
