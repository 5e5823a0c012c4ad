"""A rate over the samples of a sliding window, and the delay that reduces it to a limit.

    samples 11, each of 1 s:   |--|--|--| … |--|-   the newest is still filling

Amounts are summed in samples; the first amount after a full sample begins the next. A sample
expires when its last amount is as old as the window. As in Kafka at least the time of all full
samples counts, so that a quiet client may use a window's worth immediately:

    rate = sum / max(now - begin of the oldest, (samples - 1) * sample)
    delay = (rate - limit) / limit * the same time

Source: Kafka's Rate, SampledStat, QuotaUtils.throttleTime.
"""

from __future__ import annotations

from collections import deque
from typing import Final

# The range of int32 in responses: 24 days.
LONGEST_DELAY_MS: Final = 2**31 - 1


class _Sample:
    __slots__ = ("begin_ms", "last_ms", "total")

    def __init__(self, now_ms: float) -> None:
        self.begin_ms = now_ms
        self.last_ms = now_ms
        self.total = 0.0


class SampledRate:
    """A rate. Times are milliseconds on a monotonic clock."""

    __slots__ = ("_sample_ms", "_samples", "_window", "last_ms")

    def __init__(self, *, samples: int, sample_ms: int) -> None:
        self._samples = samples
        self._sample_ms = sample_ms
        self._window: deque[_Sample] = deque()
        self.last_ms = 0.0

    @property
    def window_ms(self) -> int:
        """The longest time that an amount counts."""
        return self._samples * self._sample_ms

    def count(self, amount: float, now_ms: float) -> None:
        """Add an amount; a negative one takes an amount of the same time back."""
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
        """Return the time until the rate falls to the limit, at most LONGEST_DELAY_MS.

        Stored records may have a limit of 0 or less, which admits nothing.
        """
        rate = self.per_second(now_ms)
        if not rate > limit:
            return 0
        if limit <= 0:
            return LONGEST_DELAY_MS
        # A tiny limit gives more than a float holds.
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
    """A rate since its oldest sample began, over at least one sample, without bursts.

    Source: Kafka's SimpleRate.
    """

    __slots__ = ()

    def _elapsed_ms(self, now_ms: float) -> float:
        self._forget(now_ms)
        elapsed_ms = now_ms - self._window[0].begin_ms if self._window else 0.0
        return max(elapsed_ms, float(self._sample_ms))
