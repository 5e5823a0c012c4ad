"""One partition's next state: who is in sync, who leads, who may lead next; as one record.

    election   who may be elected, in this order
    PREFERRED  the first replica, the present leader, any replica in sync
    ONLINE     the present leader, any replica in sync
    UNCLEAN    as ONLINE, then any replica at all: records may be lost

With eligible leader replicas (KIP-966) those that were in sync when fewer than min.insync.replicas
were left may lead as well, and the last known leader when nobody else is known. Without them an
ISR never becomes empty: its last member stays in it without leading.

Source: Kafka's PartitionChangeBuilder.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.codecs.metadata_records import MetadataRecord, RecordType, metadata_record
from wirebroker.coordinator.controller.cluster_image import NO_LEADER, PartitionImage

if TYPE_CHECKING:
    from collections.abc import Callable

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
    """

    election: Election = Election.ONLINE
    has_elr: bool = False
    min_isr: int = 1


class PartitionDraft:
    """What is wanted of a partition; `record` says what becomes of it."""

    __slots__ = (
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
        """
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
        isr = self._isr
        has_elr = self._rules.has_elr
        eligible = self._eligible(isr) if has_elr else ()
        recovery_state = self._recovery_state
        leader, is_unclean = self._elect(isr, eligible)
        fields: dict[str, Any] = {}
        if leader != before.leader:
            fields["leader"] = leader
            if is_unclean:
                isr, recovery_state = (leader,), RECOVERING
                eligible = ()
            elif leader in eligible:
                isr = (leader,)
                eligible = tuple(each for each in eligible if each != leader)
        if isr != before.isr and (isr or has_elr):
            fields["isr"] = list(isr)
        if has_elr:
            fields |= self._last_known(fields, leader)
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

    def _eligible(self, isr: tuple[int, ...]) -> tuple[int, ...]:
        """Return who may lead besides the ISR: whoever left it when it was small already."""
        before = self._partition
        if len(isr) >= min(self._rules.min_isr, len(before.replicas)):
            return ()
        candidates = dict.fromkeys((*before.eligible_leader_replicas, *before.isr))
        return tuple(
            each for each in candidates if each not in isr and each != self._unclean_shutdown
        )

    def _elect(self, isr: tuple[int, ...], eligible: tuple[int, ...]) -> tuple[int, bool]:
        """Return who leads, or NO_LEADER, and whether that may lose records."""
        before = self._partition
        election, may_lead = self._rules.election, self._may_lead
        in_sync = isr + eligible
        wishes = (before.leader, *before.replicas)
        if election is Election.PREFERRED:
            wishes = (before.replicas[0], *wishes)
        for each in wishes:
            if each in in_sync and may_lead(each):
                return each, False
        last_known = before.last_known_elr
        if self._rules.has_elr and not in_sync and len(last_known) == 1 and may_lead(last_known[0]):
            return last_known[0], True
        if election is Election.UNCLEAN:
            for each in before.replicas:
                if may_lead(each):
                    return each, True
        return NO_LEADER, False

    def _last_known(self, fields: dict[str, Any], leader: int) -> dict[str, list[int]]:
        """Keep the last leader's id from the moment on when nobody is left who may lead."""
        before = self._partition
        if fields.get("isr") == [] and before.leader != NO_LEADER:
            return (
                {}
                if before.last_known_elr == (before.leader,)
                else {"last_known_elr": [before.leader]}
            )
        return {"last_known_elr": []} if before.last_known_elr and leader != NO_LEADER else {}
