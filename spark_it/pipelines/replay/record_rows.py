"""Conversion of records to placed rows by the user's function, or to dead letters.

A dead letter has the record's key, value and headers, and the headers `reason`, `job`, `place`
(TOPIC-PARTITION@OFFSET) and `timestamp`, because its own timestamp is the time of sending.
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
        topic: For the function's results.
        dead_letters: The topic for records that it rejects.
        keeps_partition: Whether to keep the source's partition.
        stops: Whether an error of the function ends the job.
    """

    topic: str
    dead_letters: str
    job: str
    keeps_partition: bool
    stops: bool


class RecordPlacer:
    """Placer for the records of one batch."""

    def __init__(
        self, wish: RecordWish, plan: BatchPlan, function: Callable[[InputRecord], Any]
    ) -> None:
        self._wish = wish
        self._plan = plan
        self._function = function

    def rows(self, batch: pyarrow.RecordBatch) -> Iterator[PlacedRow]:
        """Return the rows of an Arrow batch with InputRecord's columns."""
        columns = [batch.column(name).to_pylist() for name in InputRecord._fields]
        for values in zip(*columns, strict=True):
            key, value, headers, *rest = values
            pairs = [(each["key"], each["value"]) for each in headers or ()]
            yield from self.place(InputRecord(key, value, pairs, *rest))

    def place(self, record: InputRecord) -> list[PlacedRow]:
        """Return a record's rows or dead letter; raise JobFileError if the job must stop."""
        try:
            # Copied, because a dead letter needs the original headers.
            returned = self._function(record._replace(headers=list(record.headers)))
            found = _records_in(returned)
            return [self._placed(each, record, index) for index, each in enumerate(found)]
        # User code may raise anything.
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
            # No timestamp: retention would soon delete an old one.
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
