"""Rates and latencies of a run, over time."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import Final, NamedTuple

_MEGABYTE: Final = 1 << 20


class LoadFigures(NamedTuple):
    """Figures of a period; latencies in ms, 0 without records."""

    records: int
    size: int
    seconds: float
    mean_ms: float
    most_ms: float

    @property
    def records_per_s(self) -> float:
        """Records per second."""
        return self.records / self.seconds if self.seconds else 0.0

    @property
    def megabytes_per_s(self) -> float:
        """MiB of values per second."""
        return self.size / _MEGABYTE / self.seconds if self.seconds else 0.0


class LoadMeter:
    """A meter of completed batches; times are in seconds."""

    __slots__ = ("_batches", "_start", "_window", "_window_start")

    def __init__(self, now: float) -> None:
        self._start = now
        self._window_start = now
        # Records, bytes and seconds of each batch; index of the window's first batch.
        self._batches: list[tuple[int, int, float]] = []
        self._window = 0

    @property
    def records(self) -> int:
        """Number of records."""
        return sum(batch[0] for batch in self._batches)

    def add(self, records: int, size: int, seconds: float) -> None:
        """Count a batch."""
        self._batches.append((records, size, seconds))

    def window(self, now: float) -> LoadFigures:
        """Return the figures since the last window, and start another."""
        figures = _figures(self._batches[self._window :], now - self._window_start)
        self._window_start = now
        self._window = len(self._batches)
        return figures

    def total(self, now: float) -> LoadFigures:
        """Return the figures since the start."""
        return _figures(self._batches, now - self._start)

    def percentiles_ms(self, *shares: float) -> list[float]:
        """Return latency percentiles, weighted by records; shares are 0 to 1."""
        ordered = sorted((seconds, records) for records, _, seconds in self._batches)
        if not ordered:
            return [0.0] * len(shares)
        counts = list(accumulate(records for _, records in ordered))
        return [ordered[bisect_left(counts, share * counts[-1])][0] * 1000 for share in shares]


def _figures(batches: list[tuple[int, int, float]], seconds: float) -> LoadFigures:
    records = sum(batch[0] for batch in batches)
    waited = sum(batch[0] * batch[2] for batch in batches)
    return LoadFigures(
        records,
        sum(batch[1] for batch in batches),
        seconds,
        waited / records * 1000 if records else 0.0,
        max((batch[2] for batch in batches), default=0.0) * 1000,
    )
