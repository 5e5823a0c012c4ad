"""What a replica serves in its current role, and the errors for everything else.

What a request has found out about a partition is valid for one `serving_epoch`.

Source: Kafka's Partition (checkCurrentLeaderEpoch, localLogOrException).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.controller.image.cluster_image import NO_LEADER
from wirebroker.replica.local_replica import LocalReplica
from wirebroker.replica.replica_role import UNKNOWN_EPOCH, unassigned

if TYPE_CHECKING:
    from wirebroker.disks.data_directory import DataDirectory
    from wirebroker.replica.leader_role import LeaderRole
    from wirebroker.replica.replica_role import Role
    from wirebroker.storage.log.log import Log


class ServingReplica(LocalReplica):
    """A replica of this node that serves requests as its role permits.

    Attributes:
        is_leader: Whether it accepts appends.
        is_retired: Whether the partition was deleted; earlier requests may still use it.
        serving_epoch: Rises with everything that affects how requests are served.
    """

    __slots__ = ("_leading", "is_leader", "is_retired", "role", "serving_epoch")

    # is_leader => role is _leading, the directory is online, not is_retired.

    def __init__(self, log: Log, *, directory: DataDirectory) -> None:
        super().__init__(log, directory=directory)
        self.is_retired = False
        self.is_leader = False
        self.role: Role = unassigned()
        self._leading: LeaderRole | None = None
        self.serving_epoch: int = 0

    @property
    def leader(self) -> int:
        """The leader's node id, or NO_LEADER."""
        return self.role.leader

    @property
    def leader_epoch(self) -> int:
        """The epoch of the role."""
        return self.role.leader_epoch

    @property
    def leading(self) -> LeaderRole | None:
        """The leader's role, if this node leads."""
        return self._leading

    @property
    def is_catching_up(self) -> bool:
        """Whether records from before this leader epoch are not committed yet (KIP-207)."""
        leading = self._leading
        return leading is not None and leading.start_offset > self.log.high_watermark

    # -- the end of a role ------------------------------------------------------------------------

    def move_to(self, directory: DataDirectory) -> None:
        """Switch to another directory, which already has the log."""
        self.directory = directory
        self.serving_epoch += 1

    def suspend(self) -> None:
        """Serve nothing until a role is entered; work in progress may finish."""
        self.is_leader = False
        self.serving_epoch += 1

    def resign(self) -> None:
        """Stop leading: the disk has failed, or the log is about to close."""
        self.is_leader = False
        self._leading = None
        self.serving_epoch += 1
        # No new role: 10,000 partitions of a failed disk must cost little.
        self.role.leader = NO_LEADER

    def retire(self) -> None:
        """Mark the partition as deleted."""
        self.is_retired = True
        self.resign()

    # -- checks ----------------------------------------------------------------------------------

    def check_leader(self, current_leader_epoch: int = UNKNOWN_EPOCH) -> None:
        """Check that this node leads, in the peer's epoch if it sends one.

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
        """Check that this replica may serve reads up to its own high watermark (KIP-392).

        Raises:
            KafkaError: From check_leader; NOT_LEADER_OR_FOLLOWER if there is no leader.
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
        """Check that this node leads and that `replica` is a follower.

        Raises:
            KafkaError: From check_leader; NOT_LEADER_OR_FOLLOWER or UNKNOWN_LEADER_EPOCH if
                `replica` is no replica of this partition.
        """
        self.check_leader(current_leader_epoch)
        leading = self._leading
        assert leading is not None
        if replica not in leading.followers:
            # The replica may know a newer assignment.
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
        """Check that enough replicas are in sync for acks=all.

        Raises:
            KafkaError: NOT_ENOUGH_REPLICAS.
        """
        if self.lacks_replicas:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)

    @property
    def lacks_replicas(self) -> bool:
        """Whether acks=all requires more in-sync replicas (Kafka's Partition.effectiveMinIsr)."""
        leading = self._leading
        if leading is None or leading.is_alone:
            return False
        settings = self.log.settings
        return len(leading.isr) < leading.least_in_sync(settings.min_insync_replicas)

    def check_follower(self, leader_epoch: int) -> None:
        """Check that this replica follows in the given epoch.

        Raises:
            KafkaError: As from check_leader; NOT_LEADER_OR_FOLLOWER if this node or none leads.
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
