"""Quotas on the partitions that a client creates and deletes per second (KIP-599).

Beyond the quota, clients that know THROTTLING_QUOTA_EXCEEDED get this error for each topic; older
ones get everything, with a throttle time.

Source: Kafka's ControllerMutationQuotaManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.quotas.quota_entity import CONTROLLER_MUTATION_RATE
from wirebroker.coordinator.quotas.sampled_rate import LONGEST_DELAY_MS
from wirebroker.coordinator.quotas.shared_meters import SharedMeters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.coordinator.quotas.quota_entity import ClientQuotas
    from wirebroker.coordinator.quotas.shared_meters import Owner

# First version that knows the error.
_STRICT_FROM: Final[Mapping[ApiKey, int]] = {
    ApiKey.CREATE_TOPICS: 6,
    ApiKey.CREATE_PARTITIONS: 3,
    ApiKey.DELETE_TOPICS: 5,
}


class MutationCharge:
    """The charge of one request to its client's quota."""

    __slots__ = ("_bucket", "_is_strict", "_now_ms", "_rate", "throttle_ms")

    def __init__(
        self, bucket: TokenBucket | None = None, rate: float = 0.0, *, now_ms: float, strict: bool
    ) -> None:
        self._bucket = bucket
        self._rate = rate
        self._now_ms = now_ms
        self._is_strict = strict
        self.throttle_ms = 0

    def take(self, partitions: int) -> None:
        """Charge partitions to create or delete.

        Raises:
            KafkaError: THROTTLING_QUOTA_EXCEEDED: no tokens are left.
        """
        bucket = self._bucket
        if bucket is None:
            return
        if self._is_strict:
            self.throttle_ms = bucket.delay_ms(self._rate, self._now_ms)
            if self.throttle_ms:
                raise KafkaError(
                    ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded."
                )
            bucket.take(partitions, self._rate, self._now_ms)
        else:
            bucket.take(partitions, self._rate, self._now_ms)
            self.throttle_ms = bucket.delay_ms(self._rate, self._now_ms)


def free_of_charge() -> MutationCharge:
    """Return a charge without a quota."""
    return MutationCharge(now_ms=0, strict=False)


class MutationQuotas:
    """The buckets of all clients; soft state."""

    __slots__ = ("_buckets",)

    def __init__(self, *, samples: int, sample_s: int) -> None:
        burst_s = float(samples * sample_s)
        self._buckets = SharedMeters(CONTROLLER_MUTATION_RATE, lambda: TokenBucket(burst_s=burst_s))

    def charge(
        self,
        key: ApiKey,
        version: int,
        owner: Owner | None,
        quotas: ClientQuotas,
        now_ms: float,
    ) -> MutationCharge:
        """Return the charge of a request to its owner; a broker has none."""
        strict_from = _STRICT_FROM.get(key)
        if strict_from is None or owner is None or not quotas:
            return free_of_charge()
        self._buckets.follow(quotas)
        bucket_and_limit = self._buckets.find(*owner, now_ms)
        if bucket_and_limit is None:
            return free_of_charge()
        return MutationCharge(*bucket_and_limit, now_ms=now_ms, strict=version >= strict_from)


class TokenBucket:
    """The tokens of one owner. Times are milliseconds on a monotonic clock."""

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
