"""A share partition on the leader of its partition, with the fetches that wait for it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from wirebroker.coordinator.share_partitions.share_partition import SharePartition, SharePhase

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.codecs.errors import KafkaError
    from wirebroker.coordinator.share_partitions.state_change import DeadRecords
    from wirebroker.coordinator.share_state.state import SharePartitionKey
    from wirebroker.replica.partition import Partition


class LeaderShare:
    """One share partition.

    Attributes:
        state: Its delivery state.
        partition: The partition that this node leads.
        failure: Why its state could not be loaded.
        dead: Records that wait to become dead letters.
        is_burying: Whether those are being written.
        is_wanted: Whether a fetch did not read it, because another one was reading it.
    """

    __slots__ = ("_waiters", "dead", "failure", "is_burying", "is_wanted", "partition", "state")

    def __init__(self, key: SharePartitionKey, partition: Partition) -> None:
        self.state = SharePartition(key, partition.leader_epoch)
        self.state.phase = SharePhase.INITIALIZING
        self.partition = partition
        self.failure: KafkaError | None = None
        self.dead: deque[DeadRecords] = deque()
        self.is_burying = False
        self.is_wanted = False
        self._waiters: dict[Callable[[], None], None] = {}

    @property
    def key(self) -> SharePartitionKey:
        """The group and the partition."""
        return self.state.key

    @property
    def is_active(self) -> bool:
        """Whether the state is loaded and valid."""
        return self.state.phase is SharePhase.ACTIVE

    def watch(self, on_change: Callable[[], None]) -> None:
        """Call `on_change` when records may have become available, until `unwatch`."""
        self._waiters[on_change] = None

    def unwatch(self, on_change: Callable[[], None]) -> None:
        """Remove a callback."""
        self._waiters.pop(on_change, None)

    def wake(self, *, but: Callable[[], None] | None = None) -> None:
        """Notify the waiting fetches, except the one with the callback `but`."""
        for on_change in tuple(self._waiters):
            if on_change != but:
                on_change()
