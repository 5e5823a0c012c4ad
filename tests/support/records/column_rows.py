"""Columns of records as rows, for comparison."""

from __future__ import annotations

from array import array
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wirebroker.codecs.records.columns import BytesColumn, ColumnBuffers


def rows_of(found: ColumnBuffers) -> list[tuple[Any, ...]]:
    """Return (offset, timestamp, key, value, headers) of each row; check the columns."""
    assert found.keys is not None
    assert found.values is not None
    assert found.headers is not None
    names, values = fields_of(found.headers.keys), fields_of(found.headers.values)
    ends = array("i", found.headers.ends)
    presence = [
        bool(found.headers.validity[row >> 3] >> (row & 7) & 1) for row in range(len(ends) - 1)
    ]
    assert presence == [a < b for a, b in pairwise(ends)]
    assert presence.count(False) == found.headers.null_count
    headers = [list(zip(names[a:b], values[a:b], strict=True)) for a, b in pairwise(ends)]
    return list(
        zip(
            array("q", found.offsets),
            array("q", found.timestamps),
            fields_of(found.keys),
            fields_of(found.values),
            headers,
            strict=True,
        )
    )


def fields_of(column: BytesColumn) -> list[bytes | None]:
    ends = array("i", column.ends)
    assert len(ends) == column.row_count + 1
    presence = [column.validity[row >> 3] >> (row & 7) & 1 for row in range(column.row_count)]
    assert presence.count(0) == column.null_count
    assert ends[-1] == len(column.data)
    return [
        bytes(column.data[a:b]) if is_there else None
        for (a, b), is_there in zip(pairwise(ends), presence, strict=True)
    ]
