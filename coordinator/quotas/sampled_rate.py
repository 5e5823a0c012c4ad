"""How much came in a second, over the samples of a sliding window; how long to wait for less.

    samples 11, each of 1 s:   |--|--|--| … |--|-   the newest is still filling

Events are summed in samples, each begun by the first event after the last one was full. A sample
counts until its last event is as old as the window. As in Kafka at least all full samples' time
counts, so that who was quiet may have a window's worth at once:

    rate = sum / max(now - begin of the oldest, (samples - 1) * sample)
    delay = (rate - limit) / limit * the same time        until which the rate is the limit

Laws: a sum of what is counted and taken back is what it was; who waits for the delay and then
brings no more than limit * waited stays at the limit.

Source: Kafka's Rate, SampledStat, QuotaUtils.throttleTime.
"""

from __future__ import annotations

from collections import deque
from typing import Final

# As answers tell it, in 32 bits: 24 days.
LONGEST_DELAY_MS: Final = 2**31 - 1


class _Sample:
    __slots__ = ("begin_ms", "last_ms", "total")

    def __init__(self, now_ms: float) -> None:
        self.begin_ms = now_ms
        self.last_ms = now_ms
        self.total = 0.0


class SampledRate:
    """A rate. Times are milliseconds on a clock that never goes back.

    Attributes:
        last_ms: When something was counted last.
    """

    __slots__ = ("_sample_ms", "_samples", "_window", "last_ms")

    def __init__(self, *, samples: int, sample_ms: int) -> None:
        """Begin with nothing.

        Args:
            samples: How many the window has, at least 1.
            sample_ms: How long each is.
        """
        self._samples = samples
        self._sample_ms = sample_ms
        self._window: deque[_Sample] = deque()
        self.last_ms = 0.0

    @property
    def window_ms(self) -> int:
        """How long something counts at most."""
        return self._samples * self._sample_ms

    def count(self, amount: float, now_ms: float) -> None:
        """Count something, or take it back (a negative amount, at the time it was counted)."""
        window = self._window
        self._forget(now_ms)
        if not window or window[-1].begin_ms + self._sample_ms <= now_ms:
            window.append(_Sample(now_ms))
        newest = window[-1]
        newest.total += amount
        newest.last_ms = self.last_ms = now_ms

    def per_second(self, now_ms: float) -> float:
        """Return the rate."""
        elapsed_ms = self._elapsed_ms(now_ms)
        return sum(sample.total for sample in self._window) * 1000 / elapsed_ms

    def delay_ms(self, limit: float, now_ms: float) -> int:
        """Return how long nothing may come until the rate is the limit; 0: it is no more.

        At most LONGEST_DELAY_MS.

        Args:
            limit: A second. Requests can only set one above 0; of a directory's records any
                number can be read, and what is 0 or less lets nothing through.
            now_ms: The time.
        """
        rate = self.per_second(now_ms)
        if not rate > limit:
            return 0
        if limit <= 0:
            return LONGEST_DELAY_MS
        # Beyond what a float holds for a tiny limit.
        return round(min((rate - limit) / limit * self._elapsed_ms(now_ms), LONGEST_DELAY_MS))

    def _elapsed_ms(self, now_ms: float) -> float:
        self._forget(now_ms)
        elapsed_ms = now_ms - self._window[0].begin_ms if self._window else 0.0
        missing = self._samples - 1 - int(elapsed_ms / self._sample_ms)
        return max(elapsed_ms + max(0, missing) * self._sample_ms, 1.0)

    def _forget(self, now_ms: float) -> None:
        oldest_ms = now_ms - self._samples * self._sample_ms
        while self._window and self._window[0].last_ms <= oldest_ms:
            self._window.popleft()


class SimpleRate(SampledRate):
    """A rate over the time since its oldest sample began, of which a sample's counts at least.

    So that who was quiet has no more at once than others.

    Source: Kafka's SimpleRate.
    """

    __slots__ = ()

    def _elapsed_ms(self, now_ms: float) -> float:
        self._forget(now_ms)
        elapsed_ms = now_ms - self._window[0].begin_ms if self._window else 0.0
        return max(elapsed_ms, float(self._sample_ms))
