"""What a task makes of lines: placed rows, or dead letters with their reasons.

A dead letter has the line as its value, cut to 64 KiB, and headers: `reason`, `file`, `job`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.pipelines.job.errors import BadRowError
from wirebroker.pipelines.rows.placed_rows import PlacedRow, check_time, partition_of
from wirebroker.pipelines.rows.typed_rows import RowReader, json_of, milliseconds_of, text_of

if TYPE_CHECKING:
    from wirebroker.pipelines.job.job_folder import BatchPlan
    from wirebroker.pipelines.rows.typed_rows import Column

_MOST_DEAD_BYTES: Final = 64 << 10


class PlacingWish(NamedTuple):
    """How lines become rows.

    Attributes:
        format: json, csv or avro.
        columns: The schema.
        drops_unknown: Whether fields beyond it are left out.
        delimiter: Of CSV.
        key: The column that is the key; "": none.
        timestamp: The column that is the time; "": none.
        is_raw: Whether a value is the line as it was.
        most_bytes: Of key and value.
        stops_at_damage: Whether a damaged file ends the job.
        job: The job's name.
        topic: For rows.
        dead_letters: The topic for bad ones.
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
    """A line, and where it stands: by it a slice is put in order."""

    content: bytes
    source: str
    block: int
    number: int


class LinePlacer:
    """Places the lines of one batch."""

    def __init__(self, wish: PlacingWish, plan: BatchPlan) -> None:
        self._wish = wish
        self._plan = plan
        self._reader = RowReader(
            wish.columns, drops_unknown=wish.drops_unknown, delimiter=wish.delimiter
        )

    def place(self, line: Line, fault: str | None = None) -> PlacedRow | None:
        """Return a line's row or its dead letter; None for an empty line or a header.

        Args:
            line: A line, or a record of CSV.
            fault: Why it cannot be a row, if that is known already.
        """
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

    def place_record(self, found: Any, line: Line) -> PlacedRow:
        """Return the row of an Avro record, or its dead letter."""
        try:
            if not isinstance(found, dict):
                raise BadRowError(f"is no record but {type(found).__name__}")
            return self._placed(self._reader.from_fields(found), line)
        except BadRowError as error:
            return self.dead(line._replace(content=repr(found).encode()), str(error))

    def _placed(self, row: dict[str, Any], line: Line) -> PlacedRow:
        wish = self._wish
        key = None
        if wish.key and row[wish.key] is not None:
            key = text_of(row[wish.key]).encode()
        value = line.content if wish.is_raw else json_of(row)
        size = len(value) + len(key or b"")
        if size > wish.most_bytes:
            raise BadRowError(f"is too large: {size} bytes, most_record_bytes is {wish.most_bytes}")
        moment = row[wish.timestamp] if wish.timestamp else None
        timestamp = None if moment is None else milliseconds_of(moment)
        if timestamp is not None and timestamp < 0:
            raise BadRowError(f"field {wish.timestamp} is before 1970, which no record can be")
        if timestamp is not None:
            check_time(timestamp)
        partition = partition_of(key, value, line.source, self._plan.partitions)
        return PlacedRow(
            partition, *line[1:], wish.topic, partition, key, value, timestamp, headers=[]
        )

    def dead(self, line: Line, reason: str, *, is_damage: bool = False) -> PlacedRow:
        """Return a line's dead letter; with `is_damage`, that of its damaged file."""
        wish, plan = self._wish, self._plan
        headers = [
            {"key": key, "value": value.encode(errors="replace")}
            for key, value in (("reason", reason), ("file", line.source), ("job", wish.job))
        ]
        content = line.content[:_MOST_DEAD_BYTES]
        return PlacedRow(
            partition_of(None, content, line.source, plan.partitions),
            *line[1:],
            wish.dead_letters,
            partition_of(None, content, line.source, plan.dead_partitions),
            None,
            content,
            None,
            headers,
            is_dead=True,
            is_damage=is_damage,
        )
