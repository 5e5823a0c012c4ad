"""Reads of a follower's Fetch: up to the log end.

Source: Kafka's ReplicaManager.readFromLog, Partition.fetchRecords and updateFollowerFetchState.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.api.data.partition_reads import PartitionReads
from wirebroker.request.fetch_session import records_length

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.api.broker import Broker
    from wirebroker.codecs.hot.fetch import FetchRequest
    from wirebroker.codecs.hot.fetch_response import FetchPartitionResult
    from wirebroker.replica.partition import Partition
    from wirebroker.request.fetch_session import SessionPartition
    from wirebroker.storage.log.log import Log


class FollowerReads(PartitionReads):
    """The reads of one follower's Fetch; records its progress."""

    __slots__ = ("_broker_epoch", "_ends", "_quota", "_replica_id")

    def __init__(self, broker: Broker, request: FetchRequest, version: int) -> None:
        super().__init__(broker, request, version)
        self._replica_id = request.replica_id
        self._broker_epoch = request.replica_epoch
        self._quota = broker.replication_quotas.leader
        # Log end offsets at the first read.
        self._ends: dict[Partition, int] = {}
        self._client_rack = ""  # no redirection to a nearer replica

    def note_sent(self) -> None:
        """Count the bytes for throttled replicas; only consumers count as traffic."""
        if self._quota.is_set:
            sent_bytes = sum(
                records_length(result)
                for (_, partition), (_, result) in zip(self.found, self.results)  # noqa: B905 - absent ones come last
                if self._is_throttled(partition)
            )
            if sent_bytes:
                self._quota.count(sent_bytes)

    def appended_bytes(self) -> Sequence[int]:
        """Return the partitions that have grown since the first read.

        Recorded progress may commit records, and the waiting requests then append in turn
        (transaction markers), also to partitions that were read before.
        """
        ends = self._ends
        return [
            number
            for number, (_, partition) in enumerate(self.found)
            if partition in ends and partition.log.log_end_offset > ends[partition]
        ]

    @property
    def wakes_on_any_change(self) -> bool:
        """Return whether one byte is enough: only appends call back."""
        return self.min_bytes <= 1 and not self._quota.is_set

    @property
    def notifies_once(self) -> bool:
        """Return True: it has to fetch before more is news."""
        return True

    def watch(self, partition: Partition, on_growth: Callable[[], None]) -> None:
        """Watch appends only; the next response contains the high watermark."""
        partition.watch_append(on_growth)

    def leaders(self) -> set[int]:
        """Return nothing: followers know leaders from the metadata."""
        return set()

    def sees_all(self, log: Log) -> bool:
        """Return False: uncommitted records call back, too."""
        return False

    def _end(self, log: Log) -> int:
        return log.log_end_offset

    def _admit(self, partition: Partition, current_leader_epoch: int) -> None:
        partition.check_replica(self._replica_id, current_leader_epoch)

    def _read(
        self,
        requested: SessionPartition,
        partition: Partition,
        max_bytes: int,
        *,
        min_one: bool,
        may_block: bool,
    ) -> FetchPartitionResult:
        result = super()._read(
            requested, partition, max_bytes, min_one=min_one, may_block=may_block
        )
        if self._quota.is_set and self._has_to_wait(partition):
            result.records = b""
        # Only the first read records progress: later ones know no more.
        if not self.results and result.diverging_epoch is None:
            self._note(partition, requested)
        return result

    def _is_throttled(self, partition: Partition) -> bool:
        named = partition.log.settings.leader_replication_throttled_replicas
        return self._quota.concerns(named, partition.index)

    def _has_to_wait(self, partition: Partition) -> bool:
        leading = partition.leading
        is_in_sync = leading is not None and self._replica_id in leading.isr
        return not is_in_sync and self._is_throttled(partition) and self._quota.delay_s() > 0

    def _note(self, partition: Partition, requested: SessionPartition) -> None:
        fetch_partition = requested.wanted
        self._ends[partition] = partition.log.log_end_offset
        may_join = partition.update_follower(
            self._replica_id,
            fetch_offset=fetch_partition.fetch_offset,
            log_start_offset=fetch_partition.log_start_offset,
            broker_epoch=self._broker_epoch,
            current_leader_epoch=max(fetch_partition.current_leader_epoch, -1),
        )
        if may_join:
            self._broker.isr_changes.add(partition, self._replica_id)
