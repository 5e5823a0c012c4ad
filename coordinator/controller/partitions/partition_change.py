"""A partition's next state (ISR, leader, eligible replicas), as one record.

    election   candidates, in this order
    PREFERRED  the first replica, the current leader, any replica in sync
    ONLINE     the current leader, any replica in sync
    UNCLEAN    as ONLINE, then any replica at all: records may be lost

The controller's README.md has the rules of eligible leader replicas (KIP-966). Without them the
last member of an ISR stays in it without leading.

Source: Kafka's PartitionChangeBuilder.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.codecs.metadata_records import MetadataRecord, RecordType, metadata_record
from wirebroker.coordinator.controller.image.cluster_image import (
    MIGRATING_DIRECTORY,
    NO_LEADER,
    UNASSIGNED_DIRECTORY,
    PartitionImage,
    directory_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

RECOVERED = 0
RECOVERING = 1


class Election(Enum):
    """The kind of election."""

    PREFERRED = 0
    ONLINE = 1
    UNCLEAN = 2


class TopicRules(NamedTuple):
    """Election rules of a topic.

    Attributes:
        has_elr: Whether eligible leader replicas are enabled.
        min_isr: min.insync.replicas; used only with `has_elr`.
        directories: Online log directories by broker.
    """

    election: Election = Election.ONLINE
    has_elr: bool = False
    min_isr: int = 1
    directories: Mapping[int, tuple[bytes, ...]] = {}


class Assignment(NamedTuple):
    """The replicas of a partition, including a reassignment in progress.

    Attributes:
        replicas: All of them, `removing` last.
        removing: Removed once the others are in sync.
        directories: Log directories of new replicas whose broker has only one.
    """

    replicas: tuple[int, ...]
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    directories: Mapping[int, bytes] = {}

    def completed(self, isr: tuple[int, ...]) -> tuple[Assignment, tuple[int, ...]]:
        """Return the final assignment and ISR, or the current ones if it is not complete.

        If more are removed than added, all that stay must be in sync.
        """
        replicas = tuple(replica for replica in self.replicas if replica not in self.removing)
        in_sync = tuple(replica for replica in isr if replica not in self.removing)
        awaited = replicas if len(self.adding) < len(self.removing) else self.adding
        if not replicas or not in_sync or not set(awaited) <= set(in_sync):
            return self, isr
        return self._replace(replicas=replicas, removing=(), adding=()), in_sync


class PartitionDraft:
    """A requested change of a partition."""

    __slots__ = (
        "_assignment",
        "_isr",
        "_may_lead",
        "_partition",
        "_recovery_state",
        "_rules",
        "_topic_id",
        "_unclean_shutdown",
    )

    def __init__(  # noqa: PLR0917 - 20,000 of them when a broker starts: keywords cost 10 ms
        self,
        topic_id: bytes,
        partition: PartitionImage,
        rules: TopicRules,
        may_lead: Callable[[int], bool],
        isr: tuple[int, ...] | None = None,
        unclean_shutdown: int = NO_LEADER,
        recovery_state: int | None = None,
        assignment: Assignment | None = None,
    ) -> None:
        """Draft a change; None leaves a part as it is.

        `unclean_shutdown` is a broker that lost unflushed records; `recovery_state` is the
        leader's.
        """
        self._assignment = assignment
        self._topic_id = topic_id
        self._partition = partition
        self._rules = rules
        self._may_lead = may_lead
        self._isr = partition.isr if isr is None else isr
        self._unclean_shutdown = unclean_shutdown
        self._recovery_state = recovery_state

    def record(self) -> MetadataRecord | None:
        """Return the record of the change, if anything changes."""
        before = self._partition
        assignment, isr = self._settled()
        replicas = before.replicas if assignment is None else assignment.replicas
        isr = tuple([replica for replica in isr if replica in replicas])
        has_elr = self._rules.has_elr
        eligible = self._eligible(isr, replicas)
        recovery_state = self._recovery_state
        leader, is_unclean = self._elect(isr, eligible, replicas)
        fields: dict[str, Any] = {}
        if leader != before.leader:
            fields["leader"] = leader
            if is_unclean:
                isr, recovery_state = (leader,), RECOVERING
                eligible = ()
            elif leader in eligible:
                isr = (leader,)
                eligible = tuple(replica for replica in eligible if replica != leader)
        if isr and not has_elr:
            eligible = ()  # left from when the feature was enabled
        if assignment is not None:
            fields |= self._moved(assignment, leader)
        if isr != before.isr and (isr or has_elr):
            fields["isr"] = list(isr)
        if has_elr:
            fields |= self._last_known(fields)
        if eligible != before.eligible_leader_replicas:
            fields["eligible_leader_replicas"] = list(eligible)
        if recovery_state is not None and recovery_state != before.leader_recovery_state:
            fields["leader_recovery_state"] = recovery_state
        if not fields:
            return None
        return metadata_record(
            RecordType.PARTITION_CHANGE,
            partition_id=before.index,
            topic_id=self._topic_id,
            **fields,
        )

    def _settled(self) -> tuple[Assignment | None, tuple[int, ...]]:
        before, assignment = self._partition, self._assignment
        if assignment is None and (before.adding_replicas or before.removing_replicas):
            assignment = Assignment(
                before.replicas, before.removing_replicas, before.adding_replicas
            )
        if assignment is None or not (assignment.adding or assignment.removing):
            return assignment, self._isr
        return assignment.completed(self._isr)

    def _moved(self, assignment: Assignment, leader: int) -> dict[str, Any]:
        """Return the changed assignment fields; a new leader epoch fences removed replicas."""
        before = self._partition
        fields: dict[str, Any] = {}
        if assignment.replicas != before.replicas:
            placed = dict(zip(before.replicas, before.directories, strict=True))
            placed = {**assignment.directories, **placed}
            fields["replicas"] = list(assignment.replicas)
            fields["directories"] = [
                placed.get(replica, UNASSIGNED_DIRECTORY) for replica in assignment.replicas
            ]
            if not set(before.replicas) <= set(assignment.replicas):
                fields["leader"] = leader
        if assignment.removing != before.removing_replicas:
            fields["removing_replicas"] = list(assignment.removing)
        if assignment.adding != before.adding_replicas:
            fields["adding_replicas"] = list(assignment.adding)
        return fields

    def _eligible(self, isr: tuple[int, ...], replicas: tuple[int, ...]) -> tuple[int, ...]:
        """Return the eligible replicas: those that left an ISR below the minimum.

        Without the feature, earlier eligible replicas stay.
        """
        before = self._partition
        if not self._rules.has_elr:
            candidates = set(before.eligible_leader_replicas)
        elif len(isr) >= min(self._rules.min_isr, len(replicas)):
            return ()
        else:
            candidates = {*before.eligible_leader_replicas, *before.isr}
        if not candidates:
            return ()
        return tuple(
            sorted((candidates & set(replicas)).difference(isr, (self._unclean_shutdown,)))
        )

    def _elect(
        self, isr: tuple[int, ...], eligible: tuple[int, ...], replicas: tuple[int, ...]
    ) -> tuple[int, bool]:
        before = self._partition
        election, may_lead = self._rules.election, self._can_lead
        complete = isr or eligible
        candidates = (before.leader, *replicas)
        if election is Election.PREFERRED:
            candidates = (replicas[0], *candidates)
        for candidate in candidates:
            if candidate in complete and may_lead(candidate):
                return candidate, False
        if self._rules.has_elr and not complete and len(before.last_known_elr) == 1:
            [last_known] = before.last_known_elr
            if last_known in replicas and may_lead(last_known):
                return last_known, True
        if election is Election.UNCLEAN:
            for candidate in replicas:
                if may_lead(candidate):
                    return candidate, True
        return NO_LEADER, False

    def _can_lead(self, replica: int) -> bool:
        if not self._may_lead(replica):
            return False
        partition = self._partition
        if replica not in partition.replicas:  # a new replica
            return True
        online = self._rules.directories.get(replica)
        directory = directory_of(partition, replica)
        if not online or directory in {UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY}:
            return True
        return directory in online

    def _last_known(self, fields: dict[str, Any]) -> dict[str, list[int]]:
        """Store the last leader's id while there is no leader."""
        before = self._partition
        if "leader" not in fields:
            return {}
        if fields["leader"] != NO_LEADER:
            return {"last_known_elr": []} if before.last_known_elr else {}
        if before.last_known_elr or before.leader == NO_LEADER:
            return {}
        return {"last_known_elr": [before.leader]}
