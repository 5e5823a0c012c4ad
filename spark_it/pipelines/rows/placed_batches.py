"""Placed rows as Arrow batches, their form between Spark and Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow

from wirebroker.pipelines.rows.placed_rows import PlacedRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_SCHEMA: Final = pyarrow.schema(
    [
        ("slice", pyarrow.int32()),
        ("source", pyarrow.string()),
        ("block", pyarrow.int64()),
        ("line", pyarrow.int64()),
        ("topic", pyarrow.string()),
        ("partition", pyarrow.int32()),
        ("key", pyarrow.binary()),
        ("value", pyarrow.binary()),
        ("timestamp", pyarrow.int64()),
        (
            "headers",
            pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())])),
        ),
        ("is_dead", pyarrow.bool_()),
        ("is_damage", pyarrow.bool_()),
    ]
)
_ROWS_A_BATCH: Final = 5_000


class PlacingTask:
    """A Spark task that converts Arrow batches to placed rows."""

    def __init__(self, place_rows: Callable[[pyarrow.RecordBatch], Iterator[PlacedRow]]) -> None:
        self._place = place_rows

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        return _to_batches(row for batch in batches for row in self._place(batch))


def _to_batches(rows: Iterable[PlacedRow]) -> Iterator[pyarrow.RecordBatch]:
    some: list[PlacedRow] = []
    for row in rows:
        some.append(row)
        if len(some) >= _ROWS_A_BATCH:
            yield _to_batch(some)
            some = []
    if some:
        yield _to_batch(some)


def _to_batch(rows: list[PlacedRow]) -> pyarrow.RecordBatch:
    arrays = [
        pyarrow.array(column, field.type)
        for column, field in zip(zip(*rows, strict=True), _SCHEMA, strict=True)
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def from_batches(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[PlacedRow]:
    """Return the rows in Arrow batches."""
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in _SCHEMA.names]
        yield from map(PlacedRow._make, zip(*columns, strict=True))
