"""What the fields of the table of metrics are made of, and how they are read (metrics.py).

A leaf: imports nothing of ours.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, fields
from enum import Enum
from typing import Any, NamedTuple


class Kind(Enum):
    """What a metric's numbers mean."""

    COUNTER = "counter"  # only grows
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Row(NamedTuple):
    """One metric.

    Attributes:
        name: As it is shown; the unit is part of it.
        kind: What its numbers mean.
        doc: One sentence.
        label: What its numbers are told apart by; empty for a metric that is one number. Several
            have a comma between them, as their values have then.
    """

    name: str
    kind: Kind
    doc: str
    label: str


class Histogram:
    """Counts of values per range.

    Attributes:
        bounds: Upper ends of the ranges, ascending, each included; a last range has none.
        counts: Values per range, one more than bounds.
        total: Sum of all values.
        largest: The largest value since the last reset.
    """

    __slots__ = ("bounds", "counts", "largest", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        assert list(bounds) == sorted(set(bounds)), "bounds ascend"
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0
        self.largest = 0.0

    @property
    def count(self) -> int:
        """Number of values recorded."""
        return sum(self.counts)

    def record(self, value: float) -> None:
        """Count one value (about 0.25 us)."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value
        if value > self.largest:  # noqa: PLR1730 - max() would be half of this function
            self.largest = value

    def count_over(self, bound: float) -> int:
        """Return how many values exceeded one of `bounds`."""
        return sum(self.counts[self.bounds.index(bound) + 1 :])

    def reset(self) -> None:
        """Forget all values."""
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = self.largest = 0.0


Value = int | Histogram
# What is asked for a gauge's number, or for its numbers by the values of its label.
Gauge = Callable[[], int | Mapping[str, int]]


def counter(name: str, doc: str) -> Any:
    """Return the field of a count."""
    return field(default=0, metadata={"row": Row(name, Kind.COUNTER, doc, "")})


def counters(name: str, doc: str, label: str) -> Any:
    """Return the field of a count for each value of a label."""
    row = Row(name, Kind.COUNTER, doc, label)
    return field(default_factory=Counter[str], metadata={"row": row})


def histogram(name: str, doc: str, bounds: Sequence[float]) -> Any:
    """Return the field of counts by ranges."""
    row = Row(name, Kind.HISTOGRAM, doc, "")
    return field(default_factory=lambda: Histogram(bounds), metadata={"row": row})


def gauge(name: str, doc: str, label: str = "") -> Any:
    """Return the field of what is asked when it is read; until its owner sets it there is none."""
    return field(default=dict, metadata={"row": Row(name, Kind.GAUGE, doc, label)})


def counted(name: str, doc: str, label: str) -> Any:
    """Return the field of what somebody else counts, who is asked for it as for a gauge."""
    return field(default=dict, metadata={"row": Row(name, Kind.COUNTER, doc, label)})


def rows(of: Any) -> dict[str, Row]:
    """Return the rows of a class of metrics by the names of its fields."""
    return {each.name: each.metadata["row"] for each in fields(of) if "row" in each.metadata}


class Sample(NamedTuple):
    """One number of a metric, or one histogram.

    Attributes:
        row: Which metric.
        label: The label's value; empty if it has none.
        value: What it is now.
    """

    row: Row
    label: str
    value: Value


def samples(metrics: Any) -> Iterator[Sample]:
    """Yield what all metrics of an object are now, in the order of its fields."""
    for name, row in rows(metrics).items():
        found: Value | Mapping[str, int] | Gauge = getattr(metrics, name)
        value = found() if callable(found) else found
        if isinstance(value, int | Histogram):
            yield Sample(row, "", value)
        else:
            for label, each in sorted(value.items()):
                yield Sample(row, label, each)
