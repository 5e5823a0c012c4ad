"""A classic consumer group: its state, members and transitions.

    Empty --join--> PreparingRebalance --all joined, or time is up--> CompletingRebalance
      ^                |    ^      ^                                     |          |
      '---no members---'    |      '----join, leave, expiry, timeout-----'    leader's SyncGroup
                            '---------------join, leave, expiry--- Stable <---------'

Only `recorded`, the value of the group's last record, is durable; only `adopt` changes it.

Source: Kafka's ClassicGroup and ClassicGroupMember; KIP-394, KIP-345.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.coordinator_records import (
    CoordinatorRecord,
    decode_group_metadata,
    group_tombstone,
)
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.classic.classic_member import Member
from wirebroker.coordinator.groups.classic.classic_timers import (
    SessionExpiry,
    expect_heartbeat,
    join_key,
    sync_key,
)
from wirebroker.coordinator.groups.group import GroupType, OffsetExpiry
from wirebroker.coordinator.groups.subscriptions import CONSUMER_PROTOCOL, subscribed_topics_of

if TYPE_CHECKING:
    from wirebroker.coordinator.groups.classic.classic_member import Protocols
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
        "_awaiting_join_count",
        "_state",
        "generation",
        "group_id",
        "has_new_member",
        "is_unrecorded",
        "leader",
        "members",
        "metadata_bytes",
        "pending_joins",
        "pending_syncs",
        "previous_state",
        "protocol",
        "protocol_counts",
        "protocol_type",
        "recorded",
        "state_timestamp_ms",
        "static_members",
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
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}  # group instance id -> member id
        # The members' topics; None if unknown.
        self.subscribed_topics: frozenset[str] | None = None
        # Number of members that support each protocol.
        self.protocol_counts: Counter[str] = Counter()
        # Size of all protocols of all members.
        self.metadata_bytes = 0
        # Assigned ids (KIP-394) that have not joined yet.
        self.pending_joins: set[str] = set()
        # Members that have sent no SyncGroup yet.
        self.pending_syncs: set[str] = set()
        # A member joined during the initial delay.
        self.has_new_member = False
        self._awaiting_join_count = 0

    # -- reading -----------------------------------------------------------------------------

    @property
    def state(self) -> GroupState:
        """The state."""
        return self._state

    @property
    def awaiting_join_count(self) -> int:
        """Number of members that wait for the end of the join phase."""
        return self._awaiting_join_count

    @property
    def is_consumer_group(self) -> bool:
        """Whether the members use the consumer protocol."""
        return self.protocol_type == CONSUMER_PROTOCOL

    @property
    def have_all_joined(self) -> bool:
        """Whether the next generation is complete."""
        return len(self.members) == self._awaiting_join_count and not self.pending_joins

    @property
    def can_rebalance(self) -> bool:
        """Whether a rebalance may begin."""
        return self._state in PREVIOUS_STATES[GroupState.PREPARING_REBALANCE]

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def is_in(self, *states: GroupState) -> bool:
        """Return whether the state is one of these."""
        return self._state in states

    def member_bytes(self, member_id: str, instance_id: str | None) -> int:
        """See Group."""
        member = self.members.get(member_id or self.static_members.get(instance_id or "", ""))
        return (
            0 if member is None else sum(len(name) + len(data) for name, data in member.protocols)
        )

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
        count = len(self.members)
        return any(self.protocol_counts[name] == count for name, _ in protocols)

    def select_protocol(self) -> str:
        """Return the protocol with most votes among those that all members support."""
        count = len(self.members)
        candidates = {
            name
            for name, supporter_count in self.protocol_counts.items()
            if supporter_count == count
        }
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return max(votes, key=lambda name: votes[name])

    def validate_member(self, member_id: str, group_instance_id: str | None) -> None:
        """Refuse a client that is not a member.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID; FENCED_INSTANCE_ID if the instance has a new member id.
        """
        if group_instance_id is not None:
            existing = self.static_members.get(group_instance_id)
            if existing is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if existing != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

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
            self.validate_member(body.member_id, body.group_instance_id)
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
            self.validate_member(body.member_id, body.group_instance_id)
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
        for member_id in (*self.members, *self.pending_joins):
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
                self.await_join(member, None)
            if member.awaiting_sync is not None:
                outcome.answer(member.awaiting_sync, response)
                member.awaiting_sync = None

    # -- members -----------------------------------------------------------------------------

    def add(self, member: Member, *, protocol_type: str, awaiting_join: Token | None) -> None:
        """Add a member; the first one leads."""
        instance = member.group_instance_id
        if instance is not None:
            assert instance not in self.static_members, f"{instance} has a member already"
            self.static_members[instance] = member.member_id
        if not self.members:
            self.protocol_type = protocol_type
        assert self.supports(protocol_type, member.protocols), "the caller has checked"
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._count_protocols(member.protocols, 1)
        self.await_join(member, awaiting_join)
        self.pending_joins.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending one."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count_protocols(member.protocols, -1)
            self.await_join(member, None)
            if member.group_instance_id is not None:
                del self.static_members[member.group_instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_joins.discard(member_id)
        self.pending_syncs.discard(member_id)

    def replace_static_member(self, group_instance_id: str, new_member_id: str) -> Member:
        """Replace a static member by a new incarnation."""
        old = self.members.pop(self.static_members[group_instance_id])
        self.await_join(old, None)
        new = Member(
            new_member_id,
            group_instance_id=group_instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            session_timeout_ms=old.session_timeout_ms,
            protocols=old.protocols,
            assignment=old.assignment,
        )
        self.members[new_member_id] = new
        if self.leader == old.member_id:
            self.leader = new_member_id
        self.static_members[group_instance_id] = new_member_id
        self.pending_syncs.discard(old.member_id)
        return new

    def update(
        self,
        member: Member,
        *,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        awaiting_join: Token | None,
    ) -> None:
        """Apply a member's new JoinGroup request."""
        self._count_protocols(member.protocols, -1)
        member.protocols = protocols
        self._count_protocols(protocols, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        self.await_join(member, awaiting_join)

    def await_join(self, member: Member, token: Token | None) -> None:
        """Set or remove a member's waiter for the end of the join phase."""
        self._awaiting_join_count += (token is not None) - (member.awaiting_join is not None)
        member.awaiting_join = token

    def elect_joined_leader(self) -> bool:
        """Make a joined member the leader; return False if there is none."""
        if self.leader is None:
            return False
        if self.members[self.leader].awaiting_join is not None:
            return True
        joined = (member for member in self.members.values() if member.awaiting_join is not None)
        candidate = next(joined, None)
        if candidate is not None:
            self.leader = candidate.member_id
        return candidate is not None

    def _count_protocols(self, protocols: Protocols, by: int) -> None:
        for name, metadata in protocols:
            self.metadata_bytes += by * (len(name) + len(metadata))
        for name in {name for name, _ in protocols}:
            self.protocol_counts[name] += by
            if not self.protocol_counts[name]:
                del self.protocol_counts[name]

    # -- state -------------------------------------------------------------------------------

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
        self.protocol = self.select_protocol()
        self.subscribed_topics = self._subscribed_topics()
        self.transition(GroupState.COMPLETING_REBALANCE, timestamp_ms=timestamp_ms)
        self.pending_syncs.clear()

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
        previous_members = self.members
        self.members = {}
        self.static_members = {}
        self.protocol_counts.clear()
        self.metadata_bytes = 0
        self._awaiting_join_count = 0
        self.generation = value.generation
        self.protocol_type = value.protocol_type or None
        self.protocol = value.protocol
        self.leader = value.leader
        for recorded_member in value.members:
            self._adopt_member(recorded_member, previous_members.get(recorded_member.member_id))
        state = GroupState.STABLE if self.members else GroupState.EMPTY
        if state is not self._state:
            self.previous_state = self._state
            self._state = state
        self.state_timestamp_ms = value.current_state_timestamp
        self.subscribed_topics = self._subscribed_topics()

    def _adopt_member(self, recorded: Any, previous: Member | None) -> None:
        protocols: Protocols = ((self.protocol or "", recorded.subscription),)
        if previous is not None and protocols[0] in previous.protocols:
            protocols = previous.protocols
        member = Member(
            recorded.member_id,
            group_instance_id=recorded.group_instance_id,
            client_id=recorded.client_id,
            client_host=recorded.client_host,
            rebalance_timeout_ms=_rebalance_timeout_ms(recorded),
            session_timeout_ms=recorded.session_timeout,
            protocols=protocols,
            assignment=recorded.assignment,
        )
        if previous is not None:
            member.is_new = previous.is_new
            member.awaiting_sync = previous.awaiting_sync
            self.await_join(member, previous.awaiting_join)
        self.members[member.member_id] = member
        self._count_protocols(protocols, 1)
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id

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
        waiting = [member for member in self.members.values() if member.awaiting_join is not None]
        assert self._awaiting_join_count == len(waiting), "waiting members are counted"
        assert self.leader is None or self.leader in self.members, "the leader is a member"
        static = {
            member.group_instance_id: member.member_id
            for member in self.members.values()
            if member.group_instance_id is not None
        }
        assert self.static_members == static, "a static instance has one member"
        assert not self.pending_joins & self.members.keys(), "pending members are not members"
        assert self.pending_syncs <= self.members.keys(), "only members have pending syncs"
        assert bool(self.members) <= (self._state is not GroupState.EMPTY), (
            "an Empty group has no members"
        )
        if self.is_in(GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            assert self.protocol is not None, "a protocol is chosen"
            assert self.members, "a generation has members"
            assert self.protocol_counts[self.protocol] == len(self.members), (
                "all members support it"
            )
        if self.is_unrecorded:
            assert self._state is GroupState.EMPTY, "only an Empty group may be unrecorded"
        elif self.is_in(GroupState.EMPTY, GroupState.STABLE) and self.recorded is not None:
            self._check_record(decode_group_metadata(self.recorded))

    def _check_record(self, value: Any) -> None:
        recorded_state = (
            value.generation,
            value.protocol_type or None,
            value.protocol,
            value.leader,
        )
        assert recorded_state == (self.generation, self.protocol_type, self.protocol, self.leader)
        assert self.state_timestamp_ms == value.current_state_timestamp
        members = {member.member_id: member for member in value.members}
        assert members.keys() == self.members.keys(), "all members are recorded"
        for member in self.members.values():
            recorded = members[member.member_id]
            assert member.assignment == recorded.assignment
            assert member.group_instance_id == recorded.group_instance_id
            assert member.metadata(self.protocol or "") == recorded.subscription
            assert member.session_timeout_ms == recorded.session_timeout
            assert member.rebalance_timeout_ms == _rebalance_timeout_ms(recorded)


def _rebalance_timeout_ms(recorded: Any) -> int:
    """Return a recorded member's timeout; old versions have no such field (-1)."""
    timeout_ms: int = recorded.rebalance_timeout
    if timeout_ms == -1:
        timeout_ms = recorded.session_timeout
    return timeout_ms


def next_generation(generation: int) -> int:
    """Return the next generation, which wraps as an int32."""
    return generation + 1 if generation < 2**31 - 1 else -(2**31)
