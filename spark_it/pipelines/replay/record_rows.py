"""Conversion of records to placed rows by the user's function, or to dead letters.

A dead letter's header `place` is TOPIC-PARTITION@OFFSET.
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


class RecordOptions(NamedTuple):
    """How records become rows.

    `keeps_partition` keeps the source's partition; `stops` ends the job if the function raises.
    """

    topic: str
    dead_letters: str
    job: str
    keeps_partition: bool
    stops: bool


class RecordPlacer:
    """Placer for the records of one batch."""

    def __init__(
        self, settings: RecordOptions, plan: BatchPlan, function: Callable[[InputRecord], Any]
    ) -> None:
        self._wish = settings
        self._plan = plan
        self._function = function

    def rows(self, batch: pyarrow.RecordBatch) -> Iterator[PlacedRow]:
        """Return the rows of an Arrow batch with InputRecord's columns."""
        columns = [batch.column(name).to_pylist() for name in InputRecord._fields]
        for values in zip(*columns, strict=True):
            key, value, headers, *rest = values
            pairs = [(header["key"], header["value"]) for header in headers or ()]
            yield from self.place(InputRecord(key, value, pairs, *rest))

    def place(self, record: InputRecord) -> list[PlacedRow]:
        """Return a record's rows or dead letter; raise JobFileError if the job must stop."""
        try:
            # Copied, because a dead letter needs the original headers.
            returned = self._function(record._replace(headers=list(record.headers)))
            rows = _records_in(returned)
            return [self._placed(row, record, index) for index, row in enumerate(rows)]
        except Exception as error:  # user code may raise anything
            location = f"{record.topic}-{record.partition}@{record.offset}"
            reason = str(error) if isinstance(error, BadRowError) else repr(error)
            if self._wish.stops:
                raise JobFileError(f"the function fails for {location}: {reason}") from error
            return [self._dead(record, location, reason)]

    def _placed(self, row: InputRecord, record: InputRecord, index: int) -> PlacedRow:
        source = _source_of(record)
        count = self._plan.partitions
        partition = record.partition
        if not self._wish.keeps_partition:
            partition = partition_of(row.key, row.value, source, count)
        elif partition >= count:
            raise BadRowError(f"there is no partition {partition}: the topic has {count}")
        for name, content in (("key", row.key), ("value", row.value)):
            if not isinstance(content, bytes | None):
                raise BadRowError(f"the {name} returned is {type(content).__name__}, not bytes")
        headers = [{"key": name, "value": content} for name, content in row.headers]
        if not all(
            is_text(header["key"]) and isinstance(header["value"], bytes | None)
            for header in headers
        ):
            raise BadRowError("the headers returned are not pairs of str and bytes")
        time = row.timestamp
        if not isinstance(time, int) or (not 0 <= time < 1 << 63 and time != record.timestamp):
            raise BadRowError(f"the timestamp returned is {time!r}, not milliseconds since 1970")
        check_time(time)
        order = (source, record.offset, index)
        return PlacedRow(
            *(partition, *order, self._wish.topic, partition),
            *(row.key, row.value, row.timestamp, headers),
        )

    def _dead(self, record: InputRecord, location: str, reason: str) -> PlacedRow:
        settings, plan = self._wish, self._plan
        time = str(record.timestamp)
        texts = (
            ("reason", reason),
            ("job", settings.job),
            ("place", location),
            ("timestamp", time),
        )
        headers = [{"key": name, "value": content} for name, content in record.headers]
        headers += [{"key": name, "value": text.encode(errors="replace")} for name, text in texts]
        source = _source_of(record)
        return PlacedRow(
            partition_of(record.key, record.value, source, plan.partitions),
            *(source, record.offset, 0, settings.dead_letters),
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
    records = [returned] if isinstance(returned, InputRecord) else returned
    if not isinstance(records, list | tuple) or not all(
        isinstance(record, InputRecord) for record in records
    ):
        raise BadRowError(
            f"the function returned {type(returned).__name__}, not None, a record or a list of them"
        )
    return list(records)
