"""What a run has moved: rates, latencies, and how they went over time."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import Final, NamedTuple

_MEGABYTE: Final = 1 << 20


class LoadFigures(NamedTuple):
    """Figures of a stretch of time; latencies are in ms, 0 if there was nothing."""

    records: int
    size: int
    seconds: float
    mean_ms: float
    most_ms: float

    @property
    def records_per_s(self) -> float:
        """Records a second."""
        return self.records / self.seconds if self.seconds else 0.0

    @property
    def megabytes_per_s(self) -> float:
        """MiB of values a second."""
        return self.size / _MEGABYTE / self.seconds if self.seconds else 0.0


class LoadMeter:
    """Counts batches, each as soon as it is done; time is handed in, in seconds."""

    __slots__ = ("_batches", "_start", "_window", "_window_start")

    def __init__(self, now: float) -> None:
        """Begin to measure."""
        self._start = now
        self._window_start = now
        # Records, bytes and seconds of each batch: of all, and where the window begins.
        self._batches: list[tuple[int, int, float]] = []
        self._window = 0

    @property
    def records(self) -> int:
        """How many there were."""
        return sum(each[0] for each in self._batches)

    def add(self, records: int, size: int, seconds: float) -> None:
        """Count a batch."""
        self._batches.append((records, size, seconds))

    def window(self, now: float) -> LoadFigures:
        """Return what came since the last window, and begin another."""
        figures = _figures(self._batches[self._window :], now - self._window_start)
        self._window_start = now
        self._window = len(self._batches)
        return figures

    def total(self, now: float) -> LoadFigures:
        """Return what came since the beginning."""
        return _figures(self._batches, now - self._start)

    def percentiles_ms(self, *shares: float) -> list[float]:
        """Return the latencies that these shares of records stayed below, each 0 to 1."""
        ordered = sorted((seconds, records) for records, _, seconds in self._batches)
        if not ordered:
            return [0.0] * len(shares)
        counts = list(accumulate(records for _, records in ordered))
        return [ordered[bisect_left(counts, each * counts[-1])][0] * 1000 for each in shares]


def _figures(batches: list[tuple[int, int, float]], seconds: float) -> LoadFigures:
    records = sum(each[0] for each in batches)
    waited = sum(each[0] * each[2] for each in batches)
    return LoadFigures(
        records,
        sum(each[1] for each in batches),
        seconds,
        waited / records * 1000 if records else 0.0,
        max((each[2] for each in batches), default=0.0) * 1000,
    )
