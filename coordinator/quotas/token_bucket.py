"""Tokens that come at a rate, up to a burst: how many changes of the cluster one may ask for.

Whoever has tokens, be it a part of one, may take any number, and owes what is missing: so a change
that is larger than the burst can be made at all, and is paid for by waiting.

    burst = samples * sample * rate            tokens <= burst

Source: KIP-599; Kafka's TokenBucket, StrictControllerMutationQuota.
"""

from __future__ import annotations

from wirebroker.coordinator.quotas.sampled_rate import LONGEST_DELAY_MS


class TokenBucket:
    """Tokens of one owner. Times are milliseconds on a clock that never goes back.

    Attributes:
        last_ms: When it was used last.
    """

    __slots__ = ("_burst_s", "_tokens", "last_ms")

    def __init__(self, *, burst_s: float) -> None:
        """Begin full; `burst_s` are the seconds whose tokens it holds."""
        self._burst_s = burst_s
        self._tokens = float("inf")
        self.last_ms = 0.0

    def tokens(self, rate: float, now_ms: float) -> float:
        """Return how many there are, given so many a second; below 0: they are owed."""
        most = self._burst_s * rate
        grown = self._tokens + rate * (now_ms - self.last_ms) / 1000
        self._tokens = min(most, grown)
        self.last_ms = now_ms
        return self._tokens

    def take(self, count: float, rate: float, now_ms: float) -> None:
        """Take some, whether or not there are as many."""
        self._tokens = self.tokens(rate, now_ms) - count

    def delay_ms(self, rate: float, now_ms: float) -> int:
        """Return how long until none are owed, at most LONGEST_DELAY_MS; 0: none are."""
        tokens = self.tokens(rate, now_ms)
        if not tokens < 0:
            return 0
        if rate <= 0:  # read of a directory's records: none are ever paid back
            return LONGEST_DELAY_MS
        return round(min(-tokens / rate * 1000, LONGEST_DELAY_MS))
