"""How many partitions one may have created and deleted in a second (KIP-599).

A client of a version that knows THROTTLING_QUOTA_EXCEEDED is refused what comes when nothing is
left, topic by topic; an older one has it all, and is told to wait.

Source: Kafka's ControllerMutationQuotaManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.quotas.quota_entity import CONTROLLER_MUTATION_RATE
from wirebroker.coordinator.quotas.shared_meters import SharedMeters
from wirebroker.coordinator.quotas.token_bucket import TokenBucket

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.coordinator.quotas.quota_entity import ClientQuotas
    from wirebroker.coordinator.quotas.shared_meters import Owner

# From which version on a request is refused what is beyond the quota.
_STRICT_FROM: Final[Mapping[ApiKey, int]] = {
    ApiKey.CREATE_TOPICS: 6,
    ApiKey.CREATE_PARTITIONS: 3,
    ApiKey.DELETE_TOPICS: 5,
}


class MutationCharge:
    """What one request takes of its client's quota.

    Attributes:
        throttle_ms: How long the client is to wait; told in the answer.
    """

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
        """Take as many as are to be created or deleted.

        Raises:
            KafkaError: THROTTLING_QUOTA_EXCEEDED if there is nothing left.
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
    """Return what takes nothing of anybody."""
    return MutationCharge(now_ms=0, strict=False)


class MutationQuotas:
    """The buckets of all clients; soft state."""

    __slots__ = ("_buckets",)

    def __init__(self, *, samples: int, sample_s: int) -> None:
        """Begin with full buckets, each of `samples` times `sample_s` seconds."""
        burst_s = float(samples * sample_s)
        self._buckets = SharedMeters(CONTROLLER_MUTATION_RATE, lambda: TokenBucket(burst_s=burst_s))

    def charge(
        self,
        key: ApiKey,
        version: int,
        asker: Owner | None,
        quotas: ClientQuotas,
        now_ms: float,
    ) -> MutationCharge:
        """Return what a request is charged by.

        Args:
            key: Of the request.
            version: Likewise.
            asker: The principal's name and the client id; None: a broker asks, for itself.
            quotas: All that there are now.
            now_ms: The monotonic time.
        """
        strict_from = _STRICT_FROM.get(key)
        if strict_from is None or asker is None or not quotas:
            return free_of_charge()
        self._buckets.follow(quotas)
        found = self._buckets.find(*asker, now_ms)
        if found is None:
            return free_of_charge()
        return MutationCharge(*found, now_ms=now_ms, strict=version >= strict_from)
