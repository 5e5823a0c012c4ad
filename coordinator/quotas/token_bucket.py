"""A bucket of tokens for changes of the cluster.

A client with any tokens may take any number and owes the rest, so that a change larger than the
burst is possible and costs waiting time.

    burst = samples * sample * rate            tokens <= burst

Source: KIP-599; Kafka's TokenBucket, StrictControllerMutationQuota.
"""

from __future__ import annotations

from wirebroker.coordinator.quotas.sampled_rate import LONGEST_DELAY_MS


class TokenBucket:
    """The tokens of one owner. Times are milliseconds on a monotonic clock.

    Attributes:
        last_ms: Time of the last use.
    """

    __slots__ = ("_burst_s", "_tokens", "last_ms")

    def __init__(self, *, burst_s: float) -> None:
        self._burst_s = burst_s
        self._tokens = float("inf")
        self.last_ms = 0.0

    def tokens(self, rate: float, now_ms: float) -> float:
        """Return the number of tokens at a rate per second; negative: owed."""
        capacity = self._burst_s * rate
        grown = self._tokens + rate * (now_ms - self.last_ms) / 1000
        self._tokens = min(capacity, grown)
        self.last_ms = now_ms
        return self._tokens

    def take(self, count: float, rate: float, now_ms: float) -> None:
        """Take tokens, even if too few are left."""
        self._tokens = self.tokens(rate, now_ms) - count

    def delay_ms(self, rate: float, now_ms: float) -> int:
        """Return the time until no tokens are owed, at most LONGEST_DELAY_MS."""
        tokens = self.tokens(rate, now_ms)
        if not tokens < 0:
            return 0
        if rate <= 0:  # from stored records; never paid back
            return LONGEST_DELAY_MS
        return round(min(-tokens / rate * 1000, LONGEST_DELAY_MS))
