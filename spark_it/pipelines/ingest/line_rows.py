"""Conversion of lines to placed rows, or to dead letters with reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.pipelines.job.errors import BadRowError
from wirebroker.pipelines.rows.placed_rows import PlacedRow, check_time, partition_of
from wirebroker.pipelines.rows.typed_rows import RowReader, json_of, milliseconds_of, text_of

if TYPE_CHECKING:
    from wirebroker.pipelines.job.job_folder import BatchPlan
    from wirebroker.pipelines.rows.typed_rows import Column

_MOST_DEAD_BYTES: Final = 64 << 10


class PlacingOptions(NamedTuple):
    """How lines become rows.

    `key` and `timestamp` are columns or "". With `is_raw`, the value is the unchanged line.
    `most_bytes` limits key and value. `stops_at_damage` ends the job at a damaged file.
    """

    format: str
    columns: tuple[Column, ...]
    drops_unknown: bool
    delimiter: str
    key: str
    timestamp: str
    is_raw: bool
    most_bytes: int
    stops_at_damage: bool
    job: str
    topic: str
    dead_letters: str


class Line(NamedTuple):
    """A line and its place, by which a slice is ordered."""

    content: bytes
    source: str
    block: int
    number: int


class LinePlacer:
    """Placer for the lines of one batch."""

    def __init__(self, settings: PlacingOptions, plan: BatchPlan) -> None:
        self._wish = settings
        self._plan = plan
        self._reader = RowReader(
            settings.columns, drops_unknown=settings.drops_unknown, delimiter=settings.delimiter
        )

    def place(self, line: Line, fault: str | None = None) -> PlacedRow | None:
        """Return a line's row, or its dead letter with `fault`; None if empty or a header."""
        if fault is not None:
            return self.dead(line, fault)
        is_csv = self._wish.format == "csv"
        # A line of white-space delimiters is a row of empty cells.
        has_cells = is_csv and self._wish.delimiter.encode() in line.content
        if not has_cells and (not line.content or line.content.isspace()):
            return None
        try:
            row = (self._reader.from_csv if is_csv else self._reader.from_json)(line.content)
            return None if row is None else self._placed(row, line)
        except BadRowError as error:
            return self.dead(line, str(error))

    def place_record(self, record: Any, line: Line) -> PlacedRow:
        """Return the row of an Avro record, or its dead letter."""
        try:
            if not isinstance(record, dict):
                raise BadRowError(f"is not a record but {type(record).__name__}")
            return self._placed(self._reader.from_fields(record), line)
        except BadRowError as error:
            return self.dead(line._replace(content=repr(record).encode()), str(error))

    def _placed(self, row: dict[str, Any], line: Line) -> PlacedRow:
        settings = self._wish
        key = None
        if settings.key and row[settings.key] is not None:
            key = text_of(row[settings.key]).encode()
        value = line.content if settings.is_raw else json_of(row)
        size = len(value) + len(key or b"")
        if size > settings.most_bytes:
            raise BadRowError(
                f"is too large: {size} bytes, most_record_bytes is {settings.most_bytes}"
            )
        time_value = row[settings.timestamp] if settings.timestamp else None
        timestamp = None if time_value is None else milliseconds_of(time_value)
        if timestamp is not None and timestamp < 0:
            raise BadRowError(f"field {settings.timestamp} is before 1970, which Kafka refuses")
        if timestamp is not None:
            check_time(timestamp)
        partition = partition_of(key, value, line.source, self._plan.partitions)
        return PlacedRow(
            partition, *line[1:], settings.topic, partition, key, value, timestamp, headers=[]
        )

    def dead(self, line: Line, reason: str, *, is_damage: bool = False) -> PlacedRow:
        """Return the dead letter of a line, or of a damaged file."""
        settings, plan = self._wish, self._plan
        headers = [
            {"key": key, "value": value.encode(errors="replace")}
            for key, value in (("reason", reason), ("file", line.source), ("job", settings.job))
        ]
        content = line.content[:_MOST_DEAD_BYTES]
        return PlacedRow(
            partition_of(None, content, line.source, plan.partitions),
            *line[1:],
            settings.dead_letters,
            partition_of(None, content, line.source, plan.dead_partitions),
            None,
            content,
            None,
            headers,
            is_dead=True,
            is_damage=is_damage,
        )
