"""Clocks that tests advance."""

from tests.support.records.batches import TIMESTAMP_MS
from wirebroker.base.clock import SystemClock


class HandClock:
    """A clock that stands still until it is advanced.

    Attributes:
        passed_ms: Time passed on both of its clocks.
        jumped_ms: Additional jump of the wall clock.
    """

    def __init__(self, start_ms: int = TIMESTAMP_MS) -> None:
        self._start_ms = start_ms
        self.passed_ms = 0
        self.jumped_ms = 0

    def now_ms(self) -> int:
        return self._start_ms + self.passed_ms + self.jumped_ms

    def monotonic(self) -> float:
        return self.passed_ms / 1000


class MovedClock(SystemClock):
    """The machine's clock with an offset.

    Attributes:
        passed_ms: Offset of both of its clocks.
        jumped_ms: Additional offset of the wall clock.
    """

    __slots__ = ("jumped_ms", "passed_ms")

    def __init__(self) -> None:
        self.passed_ms = 0
        self.jumped_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.passed_ms + self.jumped_ms

    def monotonic(self) -> float:
        return super().monotonic() + self.passed_ms / 1000
