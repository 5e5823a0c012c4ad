"""One partition's next state: who is in sync, who leads, who may lead next; as one record.

    election   who may be elected, in this order
    PREFERRED  the first replica, the present leader, any replica in sync
    ONLINE     the present leader, any replica in sync
    UNCLEAN    as ONLINE, then any replica at all: records may be lost

With eligible leader replicas (KIP-966) those that left the ISR while it held fewer than
min.insync.replicas may lead once the ISR is empty, and the last known leader when nobody else is
known. Without them an ISR never becomes empty: its last member stays in it without leading.

In every state the ISR and the eligible replicas are replicas, and no replica is in both.

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
    """Who may be elected."""

    PREFERRED = 0
    ONLINE = 1
    UNCLEAN = 2


class TopicRules(NamedTuple):
    """What elections of a topic's partitions go by.

    Attributes:
        election: Who may be elected.
        has_elr: Whether eligible leader replicas are finalized.
        min_isr: min.insync.replicas in force for the topic; counts with `has_elr` only.
        directories: By broker the log directories that it has online.
    """

    election: Election = Election.ONLINE
    has_elr: bool = False
    min_isr: int = 1
    directories: Mapping[int, tuple[bytes, ...]] = {}


class Assignment(NamedTuple):
    """Which brokers have a partition, and which of them are on the way in or out.

    Attributes:
        replicas: All of them; those that go are the last.
        removing: Those that go when the others are in sync.
        adding: Those that come.
        directories: Of those that come: the log directory if their broker has only one.
    """

    replicas: tuple[int, ...]
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    directories: Mapping[int, bytes] = {}

    def completed(self, isr: tuple[int, ...]) -> tuple[Assignment, tuple[int, ...]]:
        """Return what is assigned and in sync once those that come are in sync; till then, this.

        Where more go than come, all that stay have to be in sync.
        """
        replicas = tuple(each for each in self.replicas if each not in self.removing)
        in_sync = tuple(each for each in isr if each not in self.removing)
        awaited = replicas if len(self.adding) < len(self.removing) else self.adding
        if not replicas or not in_sync or not set(awaited) <= set(in_sync):
            return self, isr
        return self._replace(replicas=replicas, removing=(), adding=()), in_sync


class PartitionDraft:
    """What is wanted of a partition; `record` says what becomes of it."""

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
        """Begin with a partition as it is.

        Args:
            topic_id: Of its topic.
            partition: As it is.
            rules: Of its topic.
            may_lead: Whether a broker is there to lead.
            isr: Who shall be in sync; None leaves it.
            unclean_shutdown: A broker that has lost what it had not flushed; it is eligible no
                more.
            recovery_state: What the leader says of it; None leaves it.
            assignment: Who shall have it; None leaves it.
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
        """Return the change, or None if there is none."""
        before = self._partition
        assignment, isr = self._settled()
        replicas = before.replicas if assignment is None else assignment.replicas
        isr = tuple([each for each in isr if each in replicas])
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
                eligible = tuple(each for each in eligible if each != leader)
        if isr and not has_elr:
            eligible = ()  # of a time when the feature was finalized
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
        """Return who has the partition if that is moving or moves now, and who is in sync."""
        before, assignment = self._partition, self._assignment
        if assignment is None and (before.adding_replicas or before.removing_replicas):
            assignment = Assignment(
                before.replicas, before.removing_replicas, before.adding_replicas
            )
        if assignment is None or not (assignment.adding or assignment.removing):
            return assignment, self._isr
        return assignment.completed(self._isr)

    def _moved(self, assignment: Assignment, leader: int) -> dict[str, Any]:
        """Return what changes with who has the partition; who loses it is fenced by an epoch."""
        before = self._partition
        fields: dict[str, Any] = {}
        if assignment.replicas != before.replicas:
            placed = dict(zip(before.replicas, before.directories, strict=True))
            placed = {**assignment.directories, **placed}
            fields["replicas"] = list(assignment.replicas)
            fields["directories"] = [
                placed.get(each, UNASSIGNED_DIRECTORY) for each in assignment.replicas
            ]
            if not set(before.replicas) <= set(assignment.replicas):
                fields["leader"] = leader
        if assignment.removing != before.removing_replicas:
            fields["removing_replicas"] = list(assignment.removing)
        if assignment.adding != before.adding_replicas:
            fields["adding_replicas"] = list(assignment.adding)
        return fields

    def _eligible(self, isr: tuple[int, ...], replicas: tuple[int, ...]) -> tuple[int, ...]:
        """Return who may lead once the ISR is empty: those that left it when it was small already.

        Where the feature is not finalized those stay who were eligible while it was.
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
        """Return who leads, or NO_LEADER, and whether that may lose records."""
        before = self._partition
        election, may_lead = self._rules.election, self._can_lead
        complete = isr or eligible
        wishes = (before.leader, *replicas)
        if election is Election.PREFERRED:
            wishes = (replicas[0], *wishes)
        for each in wishes:
            if each in complete and may_lead(each):
                return each, False
        if self._rules.has_elr and not complete and len(before.last_known_elr) == 1:
            [last_known] = before.last_known_elr
            if last_known in replicas and may_lead(last_known):
                return last_known, True
        if election is Election.UNCLEAN:
            for each in replicas:
                if may_lead(each):
                    return each, True
        return NO_LEADER, False

    def _can_lead(self, replica: int) -> bool:
        """Tell whether a replica's broker is there to lead, and what it has of the partition."""
        if not self._may_lead(replica):
            return False
        partition = self._partition
        if replica not in partition.replicas:  # it comes just now
            return True
        online = self._rules.directories.get(replica)
        directory = directory_of(partition, replica)
        if not online or directory in {UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY}:
            return True
        return directory in online

    def _last_known(self, fields: dict[str, Any]) -> dict[str, list[int]]:
        """Keep the last leader's id while nobody leads."""
        before = self._partition
        if "leader" not in fields:
            return {}
        if fields["leader"] != NO_LEADER:
            return {"last_known_elr": []} if before.last_known_elr else {}
        if before.last_known_elr or before.leader == NO_LEADER:
            return {}
        return {"last_known_elr": [before.leader]}
