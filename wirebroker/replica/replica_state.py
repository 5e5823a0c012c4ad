"""The role and the offsets of a replica.

    log_start_offset <= last_stable_offset <= high_watermark <= stored_offset <= log_end_offset

    stored_offset     this node's records below it are as safe as configured: in the page cache, or
                      on disk (group_commit.py); acks=1 waits only for it
    high_watermark    every replica of the maximal ISR has the records below it, at most up to
                      stored_offset (leader_role.py); acks=all and consumers wait for it

Every role change goes through `enter`, `retire` or `resign` (transitions.py).

Invariants:
- A role is entered while no thread is working on the log, so all appends of one epoch precede the
  next epoch.
- After `resign` this node leads again only in a later epoch.
- The high watermark never falls during a leadership; a follower's falls only by truncation.

Source: Kafka's Partition, KIP-101, KIP-320, KIP-966 (the high watermark under min.insync.replicas).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.config.rows.topic import LONG_MAX
from wirebroker.replica.leader_role import LeaderRole
from wirebroker.replica.replica_role import UNKNOWN_EPOCH, FollowerRole
from wirebroker.replica.response_queue import ResponseQueue
from wirebroker.replica.serving_replica import ServingReplica

if TYPE_CHECKING:
    from collections.abc import Collection

    from wirebroker.config.rows.topic import TopicSettings
    from wirebroker.coordinator.controller.image.cluster_image import PartitionImage
    from wirebroker.disks.data_directory import DataDirectory
    from wirebroker.replica.leader_role import IsrChange
    from wirebroker.replica.replica_context import ReplicaContext
    from wirebroker.storage.log.log import Log

# _most_unflushed if flush.messages cannot be reached.
_NEVER_FLUSHED = LONG_MAX - 1
ACKS_ALL = -1


class ReplicaState(ServingReplica):
    """A replica of this node in its current role.

    Attributes:
        stored_offset: Meaningless for a follower.
    """

    __slots__ = ("_commits", "_host", "_most_unflushed", "stored_offset")

    def __init__(self, log: Log, *, directory: DataDirectory, host: ReplicaContext) -> None:
        super().__init__(log, directory=directory)
        self._host = host
        self._commits = host.commits
        # Records that may count as stored without being on disk.
        self._most_unflushed = self._allowed_unflushed()
        self.stored_offset = 0

    def takes_at_once(self, acks: int) -> bool:
        """Return whether appends with these acks are allowed and stored immediately.

        acks=all may still wait for followers. Valid for the current serving epoch.
        """
        return (
            self._leading is not None
            and self._most_unflushed == _NEVER_FLUSHED
            and not (acks == ACKS_ALL and self.lacks_replicas)
        )

    def deferred_responses(self, acks: int) -> ResponseQueue:
        """Return the responses that wait for `acknowledged_offset(acks)`."""
        queue = self._until_committed if acks == ACKS_ALL else self._until_stored
        if queue is None:
            queue = ResponseQueue(self._commits.deadlines, self._host.due_answers)
            if acks == ACKS_ALL:
                self._until_committed = queue
            else:
                self._until_stored = queue
        return queue

    # -- roles -----------------------------------------------------------------------------------

    def enter(self, image: PartitionImage) -> bool:
        """Apply the metadata; for a new epoch no thread may be working on the log.

        Returns:
            Whether the leader or its epoch changed, so that waiters must be notified.
        """
        role = self.role
        if image.leader_epoch < role.leader_epoch:
            return False
        if self.is_retired or not self.directory.is_online:
            self._follow(image)
            return False
        if image.leader_epoch == role.leader_epoch:
            leading = self._leading
            if leading is None:
                role.partition_epoch = max(role.partition_epoch, image.partition_epoch)
            elif leading.follow(image, now_ms=self._host.monotonic_ms()):
                self.serving_epoch += 1
                self._advance()
                self._tell_watchers()  # DeleteRecords does not wait for a fenced replica
            self.is_leader = leading is not None
            return False
        assert not self.is_appending, f"{self} is being written to"
        self.serving_epoch += 1
        if image.leader == self._host.node_id:
            self._lead(image)
        else:
            self._follow(image)
        return True

    def _lead(self, image: PartitionImage) -> None:
        log = self.log
        # The new epoch separates new records from those that may have been lost after this offset.
        log.leader_epochs.begin(image.leader_epoch, log.log_end_offset)
        self.role = self._leading = LeaderRole(
            image, start_offset=log.log_end_offset, now_ms=self._host.monotonic_ms()
        )
        self.is_leader = True
        self.stored_offset = log.high_watermark
        self._advance()

    def _follow(self, image: PartitionImage) -> None:
        self.is_leader = False
        self._leading = None
        self.role = FollowerRole(
            leader=image.leader,
            leader_epoch=image.leader_epoch,
            partition_epoch=image.partition_epoch,
        )

    def use_settings(self, settings: TopicSettings) -> None:
        """Apply changed topic configs."""
        self.log.settings = settings
        self._most_unflushed = self._allowed_unflushed()
        self.serving_epoch += 1
        if self.is_leader:
            self._advance()  # min.insync.replicas or flush.messages may be lower

    # -- the ISR -------------------------------------------------------------------------------

    def update_follower(
        self,
        replica: int,
        *,
        fetch_offset: int,
        log_start_offset: int,
        broker_epoch: int,
        current_leader_epoch: int = UNKNOWN_EPOCH,
    ) -> bool:
        """Record the progress of a follower that has all records below `fetch_offset`.

        The other values are -1 if its Fetch does not contain them. Return whether it may join the
        ISR now (`ask_for_isr`).

        Raises:
            KafkaError: From check_replica; NOT_LEADER_OR_FOLLOWER if its broker epoch is old;
                OFFSET_OUT_OF_RANGE.
        """
        self.check_replica(replica, current_leader_epoch)
        leading = self._leading
        assert leading is not None
        follower = leading.followers[replica]
        log = self.log
        if not log.log_start_offset <= fetch_offset <= log.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if 0 <= broker_epoch < follower.broker_epoch:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        start_before = follower.log_start_offset
        follower.fetched(
            fetch_offset,
            log_start_offset=log_start_offset,
            leader_end_offset=log.log_end_offset,
            now_ms=self._host.monotonic_ms(),
            broker_epoch=broker_epoch,
        )
        self._advance()
        if log_start_offset != start_before and self._watchers:
            self._tell_watchers()  # DeleteRecords may wait for all replicas
        return leading.is_ready_to_join(replica, log.high_watermark) and self._host.may_join(
            replica, broker_epoch
        )

    def ask_for_isr(self, isr: Collection[int]) -> IsrChange:
        """Begin an ISR change; replicas to be added count immediately."""
        assert self.is_leader
        leading = self._leading
        assert leading is not None
        change = leading.begin_isr_change(isr)
        self.serving_epoch += 1
        return change

    def isr_accepted(self, isr: Collection[int], *, partition_epoch: int) -> None:
        """Apply the controller's response."""
        leading = self._leading
        if leading is not None and leading.accept(isr, partition_epoch=partition_epoch):
            self.serving_epoch += 1
            self._advance()

    def isr_refused(self, change: IsrChange) -> None:
        """Drop a refused change."""
        leading = self._leading
        if leading is not None and leading.withdraw(change):
            self.serving_epoch += 1
            self._advance()

    @property
    def low_watermark(self) -> int:
        """The lowest start offset among live replicas; this node leads."""
        leading = self._leading
        assert leading is not None
        host = self._host
        return leading.low_watermark(
            self.log.log_start_offset,
            is_alive=lambda replica: host.may_join(replica, UNKNOWN_EPOCH),
        )

    def lagging_followers(self) -> list[int]:
        """Advance the high watermark and return the lagging ISR members."""
        leading = self._leading
        if leading is None or leading.is_alone:
            return []
        self._advance()
        return leading.lagging(
            self.log.log_end_offset,
            now_ms=self._host.monotonic_ms(),
            most_lag_ms=self._host.most_lag_ms,
        )

    # -- offsets -----------------------------------------------------------------------------

    def acknowledged_offset(self, acks: int) -> int:
        """Return the offset below which a Produce with these acks is acknowledged."""
        return self.log.high_watermark if acks == ACKS_ALL else self.stored_offset

    def flushed(self, offset: int, *, cuts: int) -> None:
        """Record that everything below `offset` is on disk, synced after `cuts` truncations."""
        before = self.log.high_watermark
        self.log.mark_flushed(offset, cuts=cuts)
        if self._leading is not None:
            self._advance()
        if self.log.high_watermark == before:
            self._tell_watchers()  # flush waits only for the disk

    def _advance(self) -> None:
        log = self.log
        stored = log.log_end_offset
        if stored - log.recovery_point > self._most_unflushed:
            self._commits.add(self)
            stored = log.recovery_point
        has_more = stored > self.stored_offset
        if has_more:
            self.stored_offset = stored
            if self._until_stored is not None:
                self._until_stored.take_due(stored)
        leading = self._leading
        assert leading is not None
        if leading.followers:
            if leading.is_held_back(log.high_watermark):
                return
            stored = self._replicated(leading)
        if stored > log.high_watermark:
            log.set_high_watermark(stored)
            if self._watchers or self._growth is not None or self._until_committed is not None:
                self._tell_growth()

    def _allowed_unflushed(self) -> int:
        return 0 if self._commits.is_always else self.log.settings.flush_messages - 1

    def _replicated(self, leading: LeaderRole) -> int:
        log = self.log
        if self.lacks_replicas:
            return log.high_watermark  # as in Kafka since KIP-966
        host = self._host
        replicated = leading.replicated_offset(
            log.log_end_offset,
            now_ms=host.monotonic_ms(),
            most_lag_ms=host.most_lag_ms,
            may_join=host.may_join,
        )
        return min(self.stored_offset, replicated)

    def check(self) -> None:
        """Assert the invariants above."""
        log = self.log
        assert log.log_start_offset <= log.high_watermark <= log.log_end_offset
        assert not self.is_leader or (self._leading is not None and not self.is_retired)
        if self._leading is not None:
            assert self.role is self._leading
            assert log.high_watermark <= self.stored_offset <= log.log_end_offset
            self._leading.check()
