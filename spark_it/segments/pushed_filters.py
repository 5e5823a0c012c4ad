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
    """Conditions on rows.

    Attributes:
        topics: The accepted topics; None for any.
        partitions: The accepted partitions; None for any.
        earliest: The smallest timestamp, ms since 1970.
    """

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    from_offset: int = 0
    end_offset: int = _MOST
    earliest: int | None = None

    def narrowed(self, ranges: list[RowRange]) -> list[RowRange]:
        """Return the parts of ranges that may match."""
        found = [
            each._replace(
                from_offset=max(each.from_offset, self.from_offset),
                end_offset=min(each.end_offset, self.end_offset),
            )
            for each in ranges
            if (self.topics is None or each.topic in self.topics)
            and (self.partitions is None or each.partition in self.partitions)
        ]
        return [each for each in found if each.size > 0]


def pushed(filters: Iterable[Filter]) -> PushedFilters:
    """Return the conditions of all filters together."""
    found = PushedFilters()
    for each in filters:
        name: tuple[str, ...] = getattr(each, "attribute", ())
        if len(name) != 1:
            continue
        values = _values(each)
        match name[0]:
            case "offset":
                found = _by_offset(found, each)
            case "timestamp":
                found = _by_time(found, each)
            case "topic" if values is not None:
                found = found._replace(topics=_both(found.topics, values))
            case "partition" if values is not None:
                found = found._replace(partitions=_both(found.partitions, values))
            case _:
                pass
    return found


def _values(each: Filter) -> frozenset[Any] | None:
    if isinstance(each, EqualTo | EqualNullSafe):
        return frozenset((each.value,))
    return frozenset(each.value) if isinstance(each, In) else None


def _both(before: frozenset[Any] | None, values: frozenset[Any]) -> frozenset[Any]:
    return values if before is None else before & values


def _by_offset(found: PushedFilters, each: Filter) -> PushedFilters:
    start, end = found.from_offset, found.end_offset
    match each:
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
    return found._replace(from_offset=start, end_offset=end)


def _by_time(found: PushedFilters, each: Filter) -> PushedFilters:
    if not isinstance(each, EqualTo | EqualNullSafe | GreaterThan | GreaterThanOrEqual):
        return found
    value = each.value
    if not isinstance(value, datetime.datetime):
        return found
    # Without a zone it has the session's, which is unknown: a day earlier is safe.
    if value.tzinfo is None:
        value = value.replace(tzinfo=datetime.UTC) - datetime.timedelta(days=1)
    earliest = (value - _EPOCH) // _MILLISECOND
    if found.earliest is not None:
        earliest = max(earliest, found.earliest)
    return found._replace(earliest=earliest)
