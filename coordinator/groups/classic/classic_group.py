"""A classic consumer group: its state and transitions. `roster.py` has its members.

    Empty --join--> PreparingRebalance --all joined, or time is up--> CompletingRebalance
      ^                |    ^      ^                                     |          |
      '---no members---'    |      '----join, leave, expiry, timeout-----'    leader's SyncGroup
                            '---------------join, leave, expiry--- Stable <---------'

Only `recorded`, the value of the group's last record, is durable; only `adopt` changes it.

Source: Kafka's ClassicGroup and ClassicGroupMember; KIP-394, KIP-345.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.coordinator_records import (
    CoordinatorRecord,
    decode_group_metadata,
    group_tombstone,
)
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.classic.classic_timers import (
    SessionExpiry,
    expect_heartbeat,
    join_key,
    sync_key,
)
from wirebroker.coordinator.groups.classic.roster import Roster
from wirebroker.coordinator.groups.group import GroupType, OffsetExpiry
from wirebroker.coordinator.groups.subscriptions import CONSUMER_PROTOCOL, subscribed_topics_of

if TYPE_CHECKING:
    from wirebroker.coordinator.groups.classic.classic_member import Member, Protocols
    from wirebroker.coordinator.groups.group import CommitRequest
    from wirebroker.coordinator.outcome import Moment, Outcome, Timers, Token

NO_TIMESTAMP: Final = -1


class GroupState(StrEnum):
    """The states with their names in DescribeGroups."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


PREVIOUS_STATES: Final = {
    GroupState.EMPTY: {GroupState.PREPARING_REBALANCE},
    GroupState.PREPARING_REBALANCE: {
        GroupState.EMPTY,
        GroupState.COMPLETING_REBALANCE,
        GroupState.STABLE,
    },
    GroupState.COMPLETING_REBALANCE: {GroupState.PREPARING_REBALANCE},
    GroupState.STABLE: {GroupState.COMPLETING_REBALANCE},
    GroupState.DEAD: set(GroupState),
}


class ClassicGroup:
    """A classic group and its members; a `Group`."""

    __slots__ = (
        "_state",
        "generation",
        "group_id",
        "has_new_member",
        "is_unrecorded",
        "previous_state",
        "protocol",
        "protocol_type",
        "recorded",
        "roster",
        "state_timestamp_ms",
        "subscribed_topics",
    )

    def __init__(self, group_id: str, *, timestamp_ms: int) -> None:
        self.group_id = group_id
        # None for a simple group, which has only commits, and until a new group's record is
        # appended.
        self.recorded: bytes | None = None
        # Soft from here on. is_unrecorded: it became Empty, but the append failed.
        self.is_unrecorded = False
        self._state = GroupState.EMPTY
        self.previous_state = GroupState.DEAD
        # Time of the last transition; -1 in records from before Kafka 2.1.
        self.state_timestamp_ms = timestamp_ms
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.generation = 0
        self.roster = Roster()
        # The members' topics; None if unknown.
        self.subscribed_topics: frozenset[str] | None = None
        # A member joined during the initial delay.
        self.has_new_member = False

    # -- reading -----------------------------------------------------------------------------

    @property
    def state(self) -> GroupState:
        """The state."""
        return self._state

    @property
    def members(self) -> dict[str, Member]:
        """The members, by member id."""
        return self.roster.members

    @property
    def leader(self) -> str | None:
        """The leader's member id."""
        return self.roster.leader

    @property
    def is_consumer_group(self) -> bool:
        """Whether the members use the consumer protocol."""
        return self.protocol_type == CONSUMER_PROTOCOL

    @property
    def can_rebalance(self) -> bool:
        """Whether a rebalance may begin."""
        return self._state in PREVIOUS_STATES[GroupState.PREPARING_REBALANCE]

    def is_in(self, *states: GroupState) -> bool:
        """Return whether the state is one of these."""
        return self._state in states

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether members may read a topic."""
        if self.subscribed_topics is None:
            return self.is_consumer_group
        return topic in self.subscribed_topics

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return whether a member with these protocols may join."""
        if self._state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        if self.protocol_type != protocol_type:
            return False
        return self.roster.supports(protocols)

    # -- as any group ------------------------------------------------------------------------

    @property
    def group_type(self) -> GroupType:
        """See Group."""
        return GroupType.CLASSIC

    @property
    def listed_protocol_type(self) -> str:
        """See Group."""
        return self.protocol_type or ""

    @property
    def state_name(self) -> str:
        """See Group."""
        return self._state

    @property
    def metadata_bytes(self) -> int:
        """See Group."""
        return self.roster.metadata_bytes

    def member_bytes(self, member_id: str, instance_id: str | None) -> int:
        """See Group."""
        return self.roster.bytes_of(member_id, instance_id)

    @property
    def is_empty(self) -> bool:
        """See Group."""
        return self._state is GroupState.EMPTY

    @property
    def offset_expiry(self) -> OffsetExpiry | None:
        """See Group and expiry.py."""
        if self.protocol_type is None:
            return OffsetExpiry()
        if self.is_empty:
            has_time = self.state_timestamp_ms != NO_TIMESTAMP
            return OffsetExpiry(self.state_timestamp_ms if has_time else None)
        is_known = self.is_consumer_group and self.subscribed_topics is not None
        return OffsetExpiry() if is_known and self._state is GroupState.STABLE else None

    def admit_commit(self, request: CommitRequest, timers: Timers, now: Moment) -> None:
        """See Group.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION or
                REBALANCE_IN_PROGRESS.
        """
        body = request.body
        generation: int = body.generation_id_or_member_epoch
        state = self._state
        if generation < 0 and state is GroupState.EMPTY:
            # An administrator, or a consumer without a group's assignment.
            return
        if generation >= 0 or body.member_id or body.group_instance_id is not None:
            self.roster.validate(body.member_id, body.group_instance_id)
            if generation != self.generation:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        elif state is not GroupState.EMPTY:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if state is GroupState.COMPLETING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        if state is not GroupState.EMPTY:
            expect_heartbeat(timers, self.group_id, self.members[body.member_id], now)

    def check_transactional_commit(self, request: CommitRequest) -> None:
        """See Group.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID or ILLEGAL_GENERATION.
        """
        body = request.body
        generation: int = body.generation_id_or_member_epoch
        if generation < 0 and self.is_empty:
            return
        if generation >= 0 or body.member_id or body.group_instance_id is not None:
            self.roster.validate(body.member_id, body.group_instance_id)
            if generation != self.generation:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)

    def check_fetch(self, group: Any) -> None:
        """See Group: allowed, because only consumer groups have member epochs."""

    def check_offset_delete(self) -> None:
        """Refuse while the members' topics are unknown.

        Raises:
            KafkaError: NON_EMPTY_GROUP.
        """
        if not self.is_empty and not self.is_consumer_group:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        """Refuse while there are members.

        Raises:
            KafkaError: NON_EMPTY_GROUP.
        """
        if not self.is_empty:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def tombstones(self) -> list[CoordinatorRecord]:
        """See Group."""
        return [group_tombstone(self.group_id)]

    def cancel_timers(self, timers: Timers) -> None:
        """See Group."""
        timers.cancel(sync_key(self.group_id))
        timers.cancel(join_key(self.group_id))
        for member_id in (*self.members, *self.roster.pending_joins):
            timers.cancel(SessionExpiry(self.group_id, member_id))

    def answer_unloaded(self, outcome: Outcome) -> None:
        """See Group."""
        self.answer_waiters(outcome, ErrorCode.NOT_COORDINATOR)

    def answer_waiters(self, outcome: Outcome, error: ErrorCode) -> None:
        """Add error responses for all waiters."""
        response = {"error_code": error}
        for member in self.members.values():
            if member.awaiting_join is not None:
                outcome.answer(member.awaiting_join, {"member_id": member.member_id, **response})
                self.roster.await_join(member, None)
            if member.awaiting_sync is not None:
                outcome.answer(member.awaiting_sync, response)
                member.awaiting_sync = None

    # -- state -------------------------------------------------------------------------------

    def add(self, member: Member, *, protocol_type: str, awaiting_join: Token | None) -> None:
        """Add a member; the first one determines the protocol type."""
        if not self.members:
            self.protocol_type = protocol_type
        assert self.supports(protocol_type, member.protocols), "the caller has checked"
        self.roster.add(member, awaiting_join=awaiting_join)

    def transition(self, state: GroupState, *, timestamp_ms: int) -> None:
        """Change the state."""
        assert self._state in PREVIOUS_STATES[state], f"{self._state} to {state}"
        self.previous_state = self._state
        self._state = state
        self.state_timestamp_ms = timestamp_ms
        if state is not GroupState.EMPTY:
            # The transition in progress ends with a separate record.
            self.is_unrecorded = False

    def begin_generation(self, *, timestamp_ms: int) -> None:
        """End the join phase with the joined members (soft until the leader syncs)."""
        assert self.members, "an empty group's generation begins with its record"
        self.generation = next_generation(self.generation)
        self.protocol = self.roster.select_protocol()
        self.subscribed_topics = self._subscribed_topics()
        self.transition(GroupState.COMPLETING_REBALANCE, timestamp_ms=timestamp_ms)
        self.roster.pending_syncs.clear()

    def become_empty_unrecorded(self, *, timestamp_ms: int) -> None:
        """Become Empty although the record's append failed.

        The log keeps the previous generation, whose members expire after loading.
        """
        assert not self.members
        self.generation = next_generation(self.generation)
        self.protocol = None
        self.transition(GroupState.EMPTY, timestamp_ms=timestamp_ms)
        self.subscribed_topics = self._subscribed_topics()
        self.is_unrecorded = True

    def adopt(self, recorded: bytes) -> None:
        """Make a record's value the durable state, and derive the soft state from it.

        Known members keep their waiters. A new group's first record may arrive while members
        already join.

        Raises:
            KafkaError: UNSUPPORTED_VERSION. MalformedFrameError: Malformed record.
        """
        value: Any = decode_group_metadata(recorded)
        self.recorded = recorded
        self.is_unrecorded = False
        is_creation = value.generation == self.generation and not value.members
        if is_creation and self._state is GroupState.PREPARING_REBALANCE:
            return
        self.generation = value.generation
        self.protocol_type = value.protocol_type or None
        self.protocol = value.protocol
        self.roster = self.roster.recorded(value)
        state = GroupState.STABLE if self.members else GroupState.EMPTY
        if state is not self._state:
            self.previous_state = self._state
            self._state = state
        self.state_timestamp_ms = value.current_state_timestamp
        self.subscribed_topics = self._subscribed_topics()

    def _subscribed_topics(self) -> frozenset[str] | None:
        if not self.is_consumer_group:
            return None
        if not self.members:
            return frozenset()
        if self.protocol is None:
            return None
        protocol = self.protocol
        return subscribed_topics_of(member.metadata(protocol) for member in self.members.values())

    def check(self) -> None:
        """Assert the invariants."""
        self.roster.check()
        assert bool(self.members) <= (self._state is not GroupState.EMPTY), (
            "an Empty group has no members"
        )
        if self.is_in(GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            assert self.protocol is not None, "a protocol is chosen"
            assert self.members, "a generation has members"
            self.roster.check_support(self.protocol)
        if self.is_unrecorded:
            assert self._state is GroupState.EMPTY, "only an Empty group may be unrecorded"
        elif self.is_in(GroupState.EMPTY, GroupState.STABLE) and self.recorded is not None:
            self._check_record(decode_group_metadata(self.recorded))

    def _check_record(self, value: Any) -> None:
        assert (value.generation, value.protocol_type or None, value.protocol) == (
            self.generation,
            self.protocol_type,
            self.protocol,
        )
        assert self.state_timestamp_ms == value.current_state_timestamp
        self.roster.check_record(value)


def next_generation(generation: int) -> int:
    """Return the next generation, which wraps as an int32."""
    return generation + 1 if generation < 2**31 - 1 else -(2**31)
