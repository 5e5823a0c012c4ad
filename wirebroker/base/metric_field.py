"""Field types of the table of metrics (metrics.py)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, fields
from enum import Enum
from typing import Any, NamedTuple


class Kind(Enum):
    """Type of a metric."""

    COUNTER = "counter"  # never decreases
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Row(NamedTuple):
    """Description of one metric.

    Attributes:
        name: Displayed name, including the unit.
        doc: One sentence.
        label: Label names, comma-separated like their values; empty for a single number.
    """

    name: str
    kind: Kind
    doc: str
    label: str


class Histogram:
    """Counts of values per range.

    Attributes:
        bounds: Upper ends of the ranges, ascending and inclusive; the last range has none.
        total: Sum of all values.
        largest: Since the last reset.
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
        """Number of recorded values."""
        return sum(self.counts)

    def record(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value
        if value > self.largest:  # noqa: PLR1730 - max() is slower
            self.largest = value

    def count_over(self, bound: float) -> int:
        """Return how many values exceeded one of `bounds`."""
        return sum(self.counts[self.bounds.index(bound) + 1 :])

    def reset(self) -> None:
        """Remove all values."""
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = self.largest = 0.0


Value = int | Histogram
# Returns a gauge's number, or its numbers by label value.
Gauge = Callable[[], int | Mapping[str, int]]


def counter(name: str, doc: str) -> Any:
    """Return a field for a counter."""
    return field(default=0, metadata={"row": Row(name, Kind.COUNTER, doc, "")})


def counters(name: str, doc: str, label: str) -> Any:
    """Return a field for counters by label value."""
    row = Row(name, Kind.COUNTER, doc, label)
    return field(default_factory=Counter[str], metadata={"row": row})


def histogram(name: str, doc: str, bounds: Sequence[float]) -> Any:
    """Return a field for a histogram."""
    row = Row(name, Kind.HISTOGRAM, doc, "")
    return field(default_factory=lambda: Histogram(bounds), metadata={"row": row})


def gauge(name: str, doc: str, label: str = "") -> Any:
    """Return a field for a function that returns the current value."""
    return field(default=dict, metadata={"row": Row(name, Kind.GAUGE, doc, label)})


def counted(name: str, doc: str, label: str) -> Any:
    """Return a field for a function that returns counters."""
    return field(default=dict, metadata={"row": Row(name, Kind.COUNTER, doc, label)})


def rows(of: Any) -> dict[str, Row]:
    """Return the rows of a class of metrics by field name."""
    return {
        metric.name: metric.metadata["row"] for metric in fields(of) if "row" in metric.metadata
    }


class Sample(NamedTuple):
    """One number or histogram of a metric; `label` is the label's value, or empty."""

    row: Row
    label: str
    value: Value


def samples(metrics: Any) -> Iterator[Sample]:
    """Yield the current values of all metrics."""
    for name, row in rows(metrics).items():
        reading: Value | Mapping[str, int] | Gauge = getattr(metrics, name)
        value = reading() if callable(reading) else reading
        if isinstance(value, int | Histogram):
            yield Sample(row, "", value)
        else:
            for label, count in sorted(value.items()):
                yield Sample(row, label, count)
