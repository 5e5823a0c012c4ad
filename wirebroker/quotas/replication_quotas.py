"""The quotas for copying moved replicas (KIP-73): a rate for leaders, one for followers.

A rate applies to the partitions that the topic's `*.replication.throttled.replicas` lists with this
node's id, and throttles only replicas that are not in sync. The bytes of in-sync ones count as
well.

    leader      the response to a follower's Fetch omits the partition's records
    follower    the partition is not fetched until the rate allows it

A third rate is for moves between this node's directories (KIP-113). As in Kafka, a rate of one byte
per second allows one fetch per window.

Source: Kafka's ReplicationQuotaManager, ReplicaManager.shouldLeaderThrottle, RemoteLeaderEndPoint.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from wirebroker.coordinator.quotas.sampled_rate import SimpleRate

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock
    from wirebroker.config import Config

_ALL: Final = ("*",)
_UNLIMITED: Final = 2**63 - 1  # the configs' default


class ReplicationQuota:
    """One side's rate, if `is_set`."""

    __slots__ = ("_changed", "_clock", "_limit", "_node_id", "_rate", "is_set")

    def __init__(self, rate: SimpleRate, *, node_id: int, clock: Clock) -> None:
        self._rate = rate
        self._node_id = node_id
        self._clock = clock
        self._limit = 0.0
        self._changed: asyncio.Future[None] | None = None
        self.is_set = False

    def use_limit(self, bytes_per_s: int) -> None:
        """Apply another rate; waiting copies check it immediately."""
        self.is_set = bytes_per_s < _UNLIMITED
        # At a rate of 0 the delay would never end.
        self._limit = max(1.0, float(bytes_per_s))
        if self._changed is not None:
            self._changed.set_result(None)
            self._changed = None

    def concerns(self, throttled: tuple[str, ...], index: int) -> bool:
        """Return whether the rate applies to a partition of a topic with this config."""
        if not self.is_set or not throttled:
            return False
        return throttled == _ALL or f"{index}:{self._node_id}" in throttled

    def count(self, sent_bytes: int) -> None:
        """Count copied bytes of throttled partitions."""
        self._rate.count(sent_bytes, self._clock.monotonic() * 1000)

    def delay_s(self) -> float:
        """Return the time until more may be copied."""
        return self._rate.delay_ms(self._limit, self._clock.monotonic() * 1000) / 1000

    async def until_allowed(self) -> None:
        """Wait until more may be copied."""
        while self.is_set and (delay_s := self.delay_s()):
            if self._changed is None:
                self._changed = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._changed], timeout=min(delay_s, self._rate.window_ms / 1000))


class ReplicationQuotas:
    """The rates of one node."""

    __slots__ = ("follower", "leader", "moves")

    def __init__(self, config: Config, *, node_id: int, clock: Clock) -> None:
        between_brokers = (
            config.int("replication.quota.window.num"),
            config.int("replication.quota.window.size.seconds"),
        )
        between_directories = (
            config.int("alter.log.dirs.replication.quota.window.num"),
            config.int("alter.log.dirs.replication.quota.window.size.seconds"),
        )
        self.leader, self.follower, self.moves = (
            ReplicationQuota(
                SimpleRate(samples=samples, sample_ms=1000 * seconds), node_id=node_id, clock=clock
            )
            for samples, seconds in (between_brokers, between_brokers, between_directories)
        )
        self.use_config(config)

    def use_config(self, config: Config) -> None:
        """Apply the current configs."""
        self.leader.use_limit(config.int("leader.replication.throttled.rate"))
        self.follower.use_limit(config.int("follower.replication.throttled.rate"))
        self.moves.use_limit(config.int("replica.alter.log.dirs.io.max.bytes.per.second"))
