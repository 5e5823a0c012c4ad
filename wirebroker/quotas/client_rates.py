"""One quota of all clients as a rate: bytes produced, bytes fetched, time that requests took.

Source: Kafka's ClientQuotaManager and ClientRequestQuotaManager.
"""

from __future__ import annotations

from functools import partial
from math import isnan
from typing import TYPE_CHECKING

from wirebroker.coordinator.quotas.sampled_rate import SampledRate
from wirebroker.coordinator.quotas.shared_meters import SharedMeters

if TYPE_CHECKING:
    from wirebroker.coordinator.quotas.quota_entity import ClientQuotas
    from wirebroker.coordinator.quotas.shared_meters import Owner


class ClientRates:
    """What clients do of one kind, and for how long that is too much.

    Attributes:
        throttled_ms: How long clients were held up for it, in sum.
        throttled_count: How often.
    """

    __slots__ = ("_longest_ms", "_meters", "_window_s", "throttled_count", "throttled_ms")

    def __init__(self, key: str, *, samples: int, sample_s: int, is_bounded: bool = False) -> None:
        """Begin without quotas.

        Args:
            key: Of the quota, as producer_byte_rate.
            samples: Of the window (quota.window.num).
            sample_s: How long each is.
            is_bounded: Whether nobody is held up for longer than a sample.
        """
        make = partial(SampledRate, samples=samples, sample_ms=sample_s * 1000)
        self._meters: SharedMeters[SampledRate] = SharedMeters(key, make)
        self._window_s = max(1, samples - 1) * sample_s
        self._longest_ms = sample_s * 1000 if is_bounded else None
        self.throttled_ms = 0
        self.throttled_count = 0

    def follow(self, quotas: ClientQuotas) -> None:
        """Go by other quotas."""
        self._meters.follow(quotas)

    def count(self, owner: Owner, amount: float, now_ms: float) -> int:
        """Count what a client did; return for how long it is held up, in milliseconds."""
        found = self._meters.find(*owner, now_ms)
        if found is None:
            return 0
        rate, limit = found
        rate.count(amount, now_ms)
        return self._bounded(rate.delay_ms(limit, now_ms))

    def take_back(self, owner: Owner, amount: float, now_ms: float) -> None:
        """Count no more what was counted at this time: it is not done after all."""
        found = self._meters.find(*owner, now_ms)
        if found is not None:
            found[0].count(-amount, now_ms)

    def delay_ms(self, owner: Owner, now_ms: float) -> int:
        """Return for how long a client is held up if it does no more."""
        found = self._meters.find(*owner, now_ms)
        return 0 if found is None else self._bounded(found[0].delay_ms(found[1], now_ms))

    def most_at_once(self, owner: Owner, now_ms: float) -> float:
        """Return how much a client may do at once that has done nothing lately."""
        found = self._meters.find(*owner, now_ms)
        # A limit that is no number, as Kafka takes, holds nobody up.
        if found is None or isnan(found[1]):
            return float("inf")
        return max(0.0, found[1]) * self._window_s

    def held_up(self, throttle_ms: int) -> None:
        """Note that a client is."""
        self.throttled_ms += throttle_ms
        self.throttled_count += 1

    def _bounded(self, delay_ms: int) -> int:
        return delay_ms if self._longest_ms is None else min(delay_ms, self._longest_ms)
