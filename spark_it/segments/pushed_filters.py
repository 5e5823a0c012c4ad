"""Filters of a query on offset, partition, topic and time, which limit what is read.

Spark applies each filter again, so a filter that is ignored here only costs speed.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql.datasource import Filter

    from wirebroker.segments.offset_ranges import RowRange

_MOST: Final = (1 << 63) - 1
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MILLISECOND: Final = datetime.timedelta(milliseconds=1)


class PushedFilters(NamedTuple):
    """Conditions on rows; None for any topic or partition.

    `earliest` is a timestamp in ms since 1970.
    """

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    from_offset: int = 0
    end_offset: int = _MOST
    earliest: int | None = None

    def narrowed(self, ranges: list[RowRange]) -> list[RowRange]:
        """Return the parts of ranges that may match."""
        parts = [
            row_range._replace(
                from_offset=max(row_range.from_offset, self.from_offset),
                end_offset=min(row_range.end_offset, self.end_offset),
            )
            for row_range in ranges
            if (self.topics is None or row_range.topic in self.topics)
            and (self.partitions is None or row_range.partition in self.partitions)
        ]
        return [row_range for row_range in parts if row_range.size > 0]


def pushed(filters: Iterable[Filter]) -> PushedFilters:
    """Return the conditions of all filters together."""
    conditions = PushedFilters()
    for spark_filter in filters:
        name: tuple[str, ...] = getattr(spark_filter, "attribute", ())
        if len(name) != 1:
            continue
        values = _values(spark_filter)
        match name[0]:
            case "offset":
                conditions = _by_offset(conditions, spark_filter)
            case "timestamp":
                conditions = _by_time(conditions, spark_filter)
            case "topic" if values is not None:
                conditions = conditions._replace(topics=_both(conditions.topics, values))
            case "partition" if values is not None:
                conditions = conditions._replace(partitions=_both(conditions.partitions, values))
            case _:
                pass
    return conditions


def _values(spark_filter: Filter) -> frozenset[Any] | None:
    if isinstance(spark_filter, EqualTo | EqualNullSafe):
        return frozenset((spark_filter.value,))
    return frozenset(spark_filter.value) if isinstance(spark_filter, In) else None


def _both(before: frozenset[Any] | None, values: frozenset[Any]) -> frozenset[Any]:
    return values if before is None else before & values


def _by_offset(conditions: PushedFilters, spark_filter: Filter) -> PushedFilters:
    start, end = conditions.from_offset, conditions.end_offset
    match spark_filter:
        case EqualTo(value=int(value)) | EqualNullSafe(value=int(value)):
            start, end = max(start, value), min(end, value + 1)
        case GreaterThan(value=int(value)):
            start = max(start, value + 1)
        case GreaterThanOrEqual(value=int(value)):
            start = max(start, value)
        case LessThan(value=int(value)):
            end = min(end, value)
        case LessThanOrEqual(value=int(value)):
            end = min(end, value + 1)
        case _:
            pass
    return conditions._replace(from_offset=start, end_offset=end)


def _by_time(conditions: PushedFilters, spark_filter: Filter) -> PushedFilters:
    if not isinstance(spark_filter, EqualTo | EqualNullSafe | GreaterThan | GreaterThanOrEqual):
        return conditions
    value = spark_filter.value
    if not isinstance(value, datetime.datetime):
        return conditions
    # Without a zone it has the session's, which is unknown: a day earlier is safe.
    if value.tzinfo is None:
        value = value.replace(tzinfo=datetime.UTC) - datetime.timedelta(days=1)
    earliest = (value - _EPOCH) // _MILLISECOND
    if conditions.earliest is not None:
        earliest = max(earliest, conditions.earliest)
    return conditions._replace(earliest=earliest)
