"""How fast replicas that are moved are copied (KIP-73): a rate for leaders, one for followers.

A rate concerns the partitions that their topic names (`*.replication.throttled.replicas`, with this
node's id), and of those only replicas that are not in sync: who is, stays so. What goes over is
counted all the same, in sync or not, so that both together keep to the rate.

    leader      a follower's Fetch is answered without the partition's records
    follower    the partition is not asked for until the rate allows it

Without a rate nothing is counted. A third one is for replicas that are moved between the
directories of this node (KIP-113). As in Kafka, bytes older than the window no longer count: a rate
of one byte per second lets one fetch through per window. A changed rate applies immediately.

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
    """One side's rate.

    Attributes:
        is_set: Whether there is a rate.
    """

    __slots__ = ("_changed", "_clock", "_limit", "_node_id", "_rate", "is_set")

    def __init__(self, rate: SimpleRate, *, node_id: int, clock: Clock) -> None:
        """Begin without a limit."""
        self._rate = rate
        self._node_id = node_id
        self._clock = clock
        self._limit = 0.0
        self._changed: asyncio.Future[None] | None = None
        self.is_set = False

    def use_limit(self, bytes_per_s: int) -> None:
        """Apply another rate; waiting copies check it immediately."""
        self.is_set = bytes_per_s < _UNLIMITED
        # A rate of 0 has no time after which it is kept to; of a byte it is long enough.
        self._limit = max(1.0, float(bytes_per_s))
        if self._changed is not None:
            self._changed.set_result(None)
            self._changed = None

    def concerns(self, throttled: tuple[str, ...], index: int) -> bool:
        """Tell whether a partition is one that the rate is for.

        Args:
            throttled: What its topic says: pairs partition:broker, or *.
            index: Its number.
        """
        if not self.is_set or not throttled:
            return False
        return throttled == _ALL or f"{index}:{self._node_id}" in throttled

    def count(self, sent_bytes: int) -> None:
        """Count what was copied of partitions that the rate is for."""
        self._rate.count(sent_bytes, self._clock.monotonic() * 1000)

    def delay_s(self) -> float:
        """Return after how long more may be copied; 0: at once."""
        return self._rate.delay_ms(self._limit, self._clock.monotonic() * 1000) / 1000

    async def until_allowed(self) -> None:
        """Wait until more may be copied."""
        while self.is_set and (delay_s := self.delay_s()):
            if self._changed is None:
                self._changed = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._changed], timeout=min(delay_s, self._rate.window_ms / 1000))


class ReplicationQuotas:
    """The rates of one node.

    Attributes:
        leader: Of what followers fetch here.
        follower: Of what is fetched from others.
        moves: Of what is copied from one of its directories to another.
    """

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
        """Go by what the configs say now."""
        self.leader.use_limit(config.int("leader.replication.throttled.rate"))
        self.follower.use_limit(config.int("follower.replication.throttled.rate"))
        self.moves.use_limit(config.int("replica.alter.log.dirs.io.max.bytes.per.second"))
