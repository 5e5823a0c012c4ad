"""The rate of all clients under one quota: bytes produced, bytes fetched, or request time.

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
    """The measured rates of clients, and their throttle times.

    Attributes:
        throttled_ms: The sum of throttle times.
        throttled_count: The number of throttled requests.
    """

    __slots__ = ("_longest_ms", "_meters", "_window_s", "throttled_count", "throttled_ms")

    def __init__(self, key: str, *, samples: int, sample_s: int, is_bounded: bool = False) -> None:
        """Create rates without quotas.

        Args:
            key: The quota's name, such as producer_byte_rate.
            samples: Per window (quota.window.num).
            sample_s: The length of a sample.
            is_bounded: Whether the throttle time is at most one sample.
        """
        make = partial(SampledRate, samples=samples, sample_ms=sample_s * 1000)
        self._meters: SharedMeters[SampledRate] = SharedMeters(key, make)
        self._window_s = max(1, samples - 1) * sample_s
        self._longest_ms = sample_s * 1000 if is_bounded else None
        self.throttled_ms = 0
        self.throttled_count = 0

    def follow(self, quotas: ClientQuotas) -> None:
        """Apply new quotas."""
        self._meters.follow(quotas)

    def count(self, owner: Owner, amount: float, now_ms: float) -> int:
        """Count a client's usage; return its throttle time in milliseconds."""
        meter = self._meters.find(*owner, now_ms)
        if meter is None:
            return 0
        rate, limit = meter
        rate.count(amount, now_ms)
        return self._bounded(rate.delay_ms(limit, now_ms))

    def take_back(self, owner: Owner, amount: float, now_ms: float) -> None:
        """Undo a count of the same time."""
        meter = self._meters.find(*owner, now_ms)
        if meter is not None:
            meter[0].count(-amount, now_ms)

    def delay_ms(self, owner: Owner, now_ms: float) -> int:
        """Return a client's current throttle time in milliseconds."""
        meter = self._meters.find(*owner, now_ms)
        return 0 if meter is None else self._bounded(meter[0].delay_ms(meter[1], now_ms))

    def max_burst(self, owner: Owner, now_ms: float) -> float:
        """Return the amount that an idle client may use immediately."""
        meter = self._meters.find(*owner, now_ms)
        # NaN, which Kafka accepts as a limit, never throttles.
        if meter is None or isnan(meter[1]):
            return float("inf")
        return max(0.0, meter[1]) * self._window_s

    def held_up(self, throttle_ms: int) -> None:
        """Record that a client is throttled."""
        self.throttled_ms += throttle_ms
        self.throttled_count += 1

    def _bounded(self, delay_ms: int) -> int:
        return delay_ms if self._longest_ms is None else min(delay_ms, self._longest_ms)
