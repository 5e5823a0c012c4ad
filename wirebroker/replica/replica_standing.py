"""What a replica is in its partition now, and what counts in it.

    log_start_offset <= last_stable_offset <= high_watermark <= stored_offset <= log_end_offset

    stored_offset     what this node has as safe as is asked of it alone: in its page cache, or with
                      wirebroker.durability=fsync or a reached flush.messages on its disk
                      (group_commit.py). acks=1 waits for it, and for nothing else
    high_watermark    as far as every replica of the maximal ISR has the log, at most stored_offset
                      (leader_role.py). acks=all and consumers wait for it

With a single replica the two are the same. Only here the high watermark is moved.

Every change of what a replica is goes through `enter` (the metadata says who leads), `retire`
(deleted) or `resign` (its disk has failed, the node stops); transitions.py has them told. Each
raises `serving_epoch`, and so do a changed ISR and changed settings: what was found out about a
partition under one serving epoch is true as long as that is the same.

Laws:
- A role is entered while nobody is at work on the log: what was written under an epoch is in the
  log before another begins.
- There is one role for each leader epoch: who has resigned leads again in a later one only.
- Within a leadership the high watermark never falls; a follower's falls by truncation alone.

Source: Kafka's Partition, KIP-101 and KIP-320 for the epochs, KIP-966 for the high watermark under
min.insync.replicas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.config.rows.topic import LONG_MAX
from wirebroker.coordinator.controller.image.cluster_image import NO_LEADER
from wirebroker.replica.commit_queue import CommitQueue
from wirebroker.replica.leader_role import LeaderRole
from wirebroker.replica.local_replica import LocalReplica
from wirebroker.replica.replica_role import UNKNOWN_EPOCH, FollowerRole, unassigned

if TYPE_CHECKING:
    from collections.abc import Collection

    from wirebroker.config.rows.topic import TopicSettings
    from wirebroker.coordinator.controller.image.cluster_image import PartitionImage
    from wirebroker.disks.data_directory import DataDirectory
    from wirebroker.replica.leader_role import IsrChange
    from wirebroker.replica.replica_host import ReplicaHost
    from wirebroker.replica.replica_role import Role
    from wirebroker.storage.log.log import Log

# Of records that may count without being on the disk: flush.messages is out of reach.
_NEVER_FLUSHED = LONG_MAX - 1
# Of a Produce: what waits for all in-sync replicas.
ACKS_ALL = -1


class ReplicaStanding(LocalReplica):
    """A replica that this node holds, in its present role.

    Attributes:
        role: What it is now.
        is_leader: Whether it takes appends: it leads, and neither disk nor partition has gone.
        is_retired: Whether the partition was deleted; it is not found any more, but requests that
            have found it before may still hold it.
        stored_offset: See above; of a follower it says nothing.
        serving_epoch: Rises whenever anything changes by which requests are served.
    """

    __slots__ = (
        "_commits",
        "_host",
        "_leading",
        "_most_unflushed",
        "is_leader",
        "is_retired",
        "role",
        "serving_epoch",
        "stored_offset",
    )

    # is_leader => role is _leading, the directory is online, not is_retired

    def __init__(self, log: Log, *, directory: DataDirectory, host: ReplicaHost) -> None:
        super().__init__(log, directory=directory)
        self._host = host
        self._commits = host.commits
        # Records that may count although they are on no disk yet.
        self._most_unflushed = self._allowed_unflushed()
        self.is_retired = False
        self.is_leader = False
        self.role: Role = unassigned()
        # The role if it is a leader's.
        self._leading: LeaderRole | None = None
        self.stored_offset = 0
        self.serving_epoch = 0

    @property
    def leader(self) -> int:
        """The node that leads, as far as is known here; NO_LEADER if nobody does."""
        return self.role.leader

    @property
    def leader_epoch(self) -> int:
        """Under which epoch it does."""
        return self.role.leader_epoch

    @property
    def leading(self) -> LeaderRole | None:
        """The leader's role, if this is one."""
        return self._leading

    def takes_at_once(self, acks: int) -> bool:
        """Tell whether what is appended with these acks is stored then and there, and admitted.

        Who asks for all may have to wait for followers. It is so while the serving epoch stays.
        """
        return (
            self._leading is not None
            and self._most_unflushed == _NEVER_FLUSHED
            and not (acks == ACKS_ALL and self.lacks_replicas)
        )

    @property
    def owed(self) -> CommitQueue:
        """The answers that wait until records are committed."""
        if self._owed is None:
            self._owed = CommitQueue(self._commits.deadlines, self._host.due_answers)
        return self._owed

    # -- roles -----------------------------------------------------------------------------------

    def move_to(self, directory: DataDirectory) -> None:
        """Lie in another directory from now on; the log is there already."""
        self.directory = directory
        self.serving_epoch += 1

    def suspend(self) -> None:
        """Serve nothing until a role is entered; what is under way may end (`until_settled`)."""
        self.is_leader = False
        self.serving_epoch += 1

    def enter(self, image: PartitionImage) -> bool:
        """Become what the metadata says; for another epoch nobody is at work on the log.

        News of an epoch or of a change that is older than what is known here is passed over.

        Returns:
            Whether the leader or its epoch changed, so that who waits has to look again.
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
        # What comes from now on is told from what may have been lost behind this offset.
        log.leader_epochs.begin(image.leader_epoch, log.log_end_offset)
        self.role = self._leading = LeaderRole(
            image, start_offset=log.log_end_offset, now_ms=self._host.monotonic_ms()
        )
        self.is_leader = True
        # All that was committed is stored somewhere; what else there is counts by `_advance`.
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

    def resign(self) -> None:
        """Lead no more, whoever does: the disk has failed, or the log is about to close."""
        self.is_leader = False
        self._leading = None
        self.serving_epoch += 1
        self.role.leader = NO_LEADER  # no other role: it costs 10,000 of a disk that fails nothing

    def retire(self) -> None:
        """Note that the partition is deleted."""
        self.is_retired = True
        self.resign()

    def use_settings(self, settings: TopicSettings) -> None:
        """Take over what the topic's configs say now."""
        self.log.settings = settings
        self._most_unflushed = self._allowed_unflushed()
        self.serving_epoch += 1
        if self.is_leader:
            self._advance()  # of a smaller min.insync.replicas, or flush.messages

    # -- checks ----------------------------------------------------------------------------------

    def check_leader(self, current_leader_epoch: int = UNKNOWN_EPOCH) -> None:
        """Refuse a request that cannot be served here, or takes another epoch for the present one.

        Args:
            current_leader_epoch: What the peer believes; -1 if it doesn't say.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR, UNKNOWN_TOPIC_OR_PARTITION, FENCED_LEADER_EPOCH,
                UNKNOWN_LEADER_EPOCH or NOT_LEADER_OR_FOLLOWER.
        """
        if not self.is_leader or current_leader_epoch not in (
            UNKNOWN_EPOCH,
            self.role.leader_epoch,
        ):
            self._refuse(current_leader_epoch)
        if not self.log.producer_state.is_read:
            self.read_producers()

    def check_readable(self, current_leader_epoch: int = UNKNOWN_EPOCH) -> None:
        """Refuse a read that any replica may serve, up to its own high watermark (KIP-392).

        Args:
            current_leader_epoch: What the peer believes; -1 if it doesn't say.

        Raises:
            KafkaError: What check_leader raises; NOT_LEADER_OR_FOLLOWER if no role is in force.
        """
        if self.is_leader:
            self.check_leader(current_leader_epoch)
            return
        role = self.role
        if (
            not self.directory.is_online
            or self.is_retired
            or self._leading is not None
            or role.leader == NO_LEADER
            or current_leader_epoch not in {UNKNOWN_EPOCH, role.leader_epoch}
        ):
            self._refuse(current_leader_epoch)
        if not self.log.producer_state.is_read:
            self.read_producers()

    def check_replica(self, replica: int, current_leader_epoch: int = UNKNOWN_EPOCH) -> None:
        """Refuse a follower's Fetch that cannot be served here, or is no replica's.

        Raises:
            KafkaError: What check_leader raises; NOT_LEADER_OR_FOLLOWER or UNKNOWN_LEADER_EPOCH if
                it is no replica of this partition (yet).
        """
        self.check_leader(current_leader_epoch)
        leading = self._leading
        assert leading is not None
        if replica not in leading.followers:
            # It has perhaps heard of an assignment that has not come here.
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER
                if current_leader_epoch == UNKNOWN_EPOCH
                else ErrorCode.UNKNOWN_LEADER_EPOCH
            )

    def _refuse(self, current_leader_epoch: int) -> None:
        self.directory.check_online()
        leader_epoch = self.role.leader_epoch
        if current_leader_epoch not in (UNKNOWN_EPOCH, leader_epoch):
            if current_leader_epoch < leader_epoch:
                raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)
        if self.is_retired:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def check_in_sync(self) -> None:
        """Refuse acks=all while too few replicas are in sync.

        Raises:
            KafkaError: NOT_ENOUGH_REPLICAS.
        """
        if self.lacks_replicas:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)

    @property
    def lacks_replicas(self) -> bool:
        """Tell whether fewer replicas are in sync than acks=all demands.

        More than the partition has are never demanded (Kafka's Partition.effectiveMinIsr).
        """
        leading = self._leading
        if leading is None or leading.is_alone:
            return False
        settings = self.log.settings
        return len(leading.isr) < leading.least_in_sync(settings.min_insync_replicas)

    def acknowledged_offset(self, acks: int) -> int:
        """Return below which offset a Produce with these acks may be answered."""
        return self.log.high_watermark if acks == ACKS_ALL else self.stored_offset

    def check_follower(self, leader_epoch: int) -> None:
        """Refuse what was fetched for another epoch than the present one.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR, UNKNOWN_TOPIC_OR_PARTITION, FENCED_LEADER_EPOCH,
                UNKNOWN_LEADER_EPOCH; NOT_LEADER_OR_FOLLOWER if this node leads, or nobody does.
        """
        role = self.role
        if (
            not self.directory.is_online
            or self.is_retired
            or role.leader_epoch != leader_epoch
            or self._leading is not None
            or role.leader == NO_LEADER
        ):
            self._refuse(leader_epoch)

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
        """Note by a follower's Fetch how far it has come.

        Args:
            replica: Its node id.
            fetch_offset: It has everything below.
            log_start_offset: Where its log begins; -1 if it doesn't say.
            broker_epoch: Of its incarnation; -1 if it doesn't say.
            current_leader_epoch: Which it follows; -1 if it doesn't say.

        Returns:
            Whether it may be asked into the ISR now (`ask_for_isr`).

        Raises:
            KafkaError: What check_replica raises; NOT_LEADER_OR_FOLLOWER if it comes from an
                incarnation that is over; OFFSET_OUT_OF_RANGE.
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
            self._tell_watchers()  # somebody may wait until records are deleted everywhere
        return leading.is_ready_to_join(replica, log.high_watermark) and self._host.may_join(
            replica, broker_epoch
        )

    def ask_for_isr(self, isr: Collection[int]) -> IsrChange:
        """Begin a change of the ISR: from now on those count who would be added, too."""
        assert self.is_leader
        leading = self._leading
        assert leading is not None
        change = leading.ask_for(isr)
        self.serving_epoch += 1
        return change

    def isr_accepted(self, isr: Collection[int], *, partition_epoch: int) -> None:
        """Take over an ISR that the controller has answered."""
        leading = self._leading
        if leading is not None and leading.accept(isr, partition_epoch=partition_epoch):
            self.serving_epoch += 1
            self._advance()

    def isr_refused(self, change: IsrChange) -> None:
        """Go on as before a change that the controller has refused."""
        leading = self._leading
        if leading is not None and leading.withdraw(change):
            self.serving_epoch += 1
            self._advance()

    @property
    def low_watermark(self) -> int:
        """From where on any replica that is alive still has records; this node leads."""
        leading = self._leading
        assert leading is not None
        host = self._host
        return leading.low_watermark(
            self.log.log_start_offset,
            is_alive=lambda replica: host.may_join(replica, UNKNOWN_EPOCH),
        )

    def lagging_followers(self) -> list[int]:
        """Return who has to leave the ISR; the high watermark no longer waits for who lags."""
        leading = self._leading
        if leading is None or leading.is_alone:
            return []
        self._advance()
        return leading.lagging(
            self.log.log_end_offset,
            now_ms=self._host.monotonic_ms(),
            most_lag_ms=self._host.most_lag_ms,
        )

    @property
    def is_catching_up(self) -> bool:
        """Whether what was there when this epoch began does not count yet (KIP-207)."""
        leading = self._leading
        return leading is not None and leading.start_offset > self.log.high_watermark

    # -- what counts -------------------------------------------------------------------------

    def flushed(self, offset: int, *, cuts: int) -> None:
        """Note that everything below `offset` is on the disk (called by the group commit).

        It is of the log as it was after so many `cuts`.
        """
        before = self.log.high_watermark
        self.log.mark_flushed(offset, cuts=cuts)
        if self._leading is not None:
            self._advance()
        if self.log.high_watermark == before:
            self._tell_watchers()  # somebody may wait for the disk alone

    def _advance(self) -> None:
        """Move what is stored, and the high watermark to what is committed; this node leads."""
        log = self.log
        stored = log.log_end_offset
        if stored - log.recovery_point > self._most_unflushed:
            self._commits.add(self)
            stored = log.recovery_point
        has_more = stored > self.stored_offset
        if has_more:
            self.stored_offset = stored
        leading = self._leading
        assert leading is not None
        if leading.followers:
            if has_more and self._watchers:
                self._tell_watchers()  # acks=1 waits for no follower
            if leading.is_held_back(log.high_watermark):
                return
            stored = self._replicated(leading)
        if stored > log.high_watermark:
            log.set_high_watermark(stored)
            if (
                self._watchers
                or self._growth is not None
                or self._commit_watch is not None
                or self._owed is not None
            ):
                self._tell_growth()

    def _allowed_unflushed(self) -> int:
        """Return how many records of the leader may be stored without being on its disk."""
        return 0 if self._commits.is_always else self.log.settings.flush_messages - 1

    def _replicated(self, leading: LeaderRole) -> int:
        """Return what is committed where there are followers: no more than is stored here."""
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
        """Assert the laws at the top of this file."""
        log = self.log
        assert log.log_start_offset <= log.high_watermark <= log.log_end_offset
        assert not self.is_leader or (self._leading is not None and not self.is_retired)
        if self._leading is not None:
            assert self.role is self._leading
            assert log.high_watermark <= self.stored_offset <= log.log_end_offset
            self._leading.check()
