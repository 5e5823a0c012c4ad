"""One classic consumer group: its state, its members, what may follow what.

    Empty --join--> PreparingRebalance --all joined, or time is up--> CompletingRebalance
      ^                |    ^      ^                                     |          |
      '---nobody left--'    |      '----join, leave, expiry, timeout-----'    leader's SyncGroup
                            '---------------join, leave, expiry--- Stable <---------'

Durable is what the group's last record says: protocol type, generation, protocol, leader, members
with subscription and assignment; it is taken over in `adopt`, at run time and at load alike. All
else is soft: a rebalance under way (its members, the generation after the recorded one), who
waits for an answer, members that were given an id and have not come back with it. A load forgets
it, and shows the recorded generation.

Laws (`check`): members that wait are counted; the leader is a member; a static instance has one
member; pending members are no members; in CompletingRebalance and Stable a protocol is chosen that
all members know.

Source: Kafka's ClassicGroup and ClassicGroupMember; KIP-394, KIP-345.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.subscriptions import CONSUMER_PROTOCOL, subscribed_topics_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.coordinator.runtime import Token

# Name and metadata of each protocol that a member knows, in its order of preference.
Protocols = tuple[tuple[str, bytes], ...]

NO_GENERATION: Final = -1
NO_TIMESTAMP: Final = -1


class GroupState(StrEnum):
    """The states under their names in DescribeGroups."""

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


class Member:
    """One member of a group."""

    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        *,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        # Of these the record keeps the chosen one: after a load the others are not known.
        self.protocols = protocols
        self.assignment = assignment
        # Soft: who waits for an answer on the member's behalf.
        self.awaiting_join: Token | None = None
        self.awaiting_sync: Token | None = None
        # Soft: it has not been through a rebalance yet, so it expires even while it waits.
        self.is_new = False

    def metadata(self, protocol: str) -> bytes:
        """Return what the member said for a protocol that it knows."""
        return next(metadata for name, metadata in self.protocols if name == protocol)

    def vote(self, candidates: set[str]) -> str:
        """Return the candidate that the member likes best."""
        return next(name for name, _ in self.protocols if name in candidates)

    @property
    def is_excused(self) -> bool:
        """Tell whether the member need not send heartbeats: it waits for us."""
        waits = self.awaiting_join is not None or self.awaiting_sync is not None
        return waits and not self.is_new


class ClassicGroup:
    """A group and its members."""

    __slots__ = (
        "_awaiting_join_count",
        "_state",
        "generation",
        "group_id",
        "has_new_member",
        "leader",
        "members",
        "pending_joins",
        "pending_syncs",
        "previous_state",
        "protocol",
        "protocol_counts",
        "protocol_type",
        "state_timestamp_ms",
        "static_members",
        "subscribed_topics",
    )

    def __init__(self, group_id: str, *, timestamp_ms: int) -> None:
        self.group_id = group_id
        self._state = GroupState.EMPTY
        self.previous_state = GroupState.DEAD
        # When the state last changed; -1 in records from before Kafka 2.1.
        self.state_timestamp_ms = timestamp_ms
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.generation = 0
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}  # group instance id -> member id
        # Topics that the members read; None if nobody could say (or no consumers).
        self.subscribed_topics: frozenset[str] | None = None
        # How many members know each protocol.
        self.protocol_counts: Counter[str] = Counter()
        # Soft: ids that were given out (KIP-394) and have not joined yet.
        self.pending_joins: set[str] = set()
        # Soft: members of this generation that have not sent SyncGroup yet.
        self.pending_syncs: set[str] = set()
        # Soft: somebody came during the initial delay, which may be extended therefore.
        self.has_new_member = False
        self._awaiting_join_count = 0

    # -- reading -----------------------------------------------------------------------------

    @property
    def state(self) -> GroupState:
        """The state; changed by `transition`."""
        return self._state

    @property
    def awaiting_join_count(self) -> int:
        """How many members wait for the join phase to end."""
        return self._awaiting_join_count

    @property
    def is_consumer_group(self) -> bool:
        """Tell whether the members speak the consumer protocol."""
        return self.protocol_type == CONSUMER_PROTOCOL

    @property
    def have_all_joined(self) -> bool:
        """Tell whether nobody is missing for the next generation."""
        return len(self.members) == self._awaiting_join_count and not self.pending_joins

    @property
    def can_rebalance(self) -> bool:
        """Tell whether a rebalance may begin (in particular: none is being prepared)."""
        return self._state in PREVIOUS_STATES[GroupState.PREPARING_REBALANCE]

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest that any member takes to rejoin."""
        return max((each.rebalance_timeout_ms for each in self.members.values()), default=0)

    def is_in(self, *states: GroupState) -> bool:
        """Tell whether the group is in one of the states."""
        return self._state in states

    def is_subscribed_to(self, topic: str) -> bool:
        """Tell whether members read a topic, as far as that is known."""
        if self.subscribed_topics is None:
            return self.is_consumer_group
        return topic in self.subscribed_topics

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Tell whether a member with these protocols could be one of the group."""
        if self._state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        if self.protocol_type != protocol_type:
            return False
        count = len(self.members)
        return any(self.protocol_counts[name] == count for name, _ in protocols)

    def select_protocol(self) -> str:
        """Return the protocol that most members like best among those that all know."""
        count = len(self.members)
        candidates = {name for name, known in self.protocol_counts.items() if known == count}
        votes = Counter(each.vote(candidates) for each in self.members.values())
        return max(votes, key=lambda name: votes[name])

    def validate_member(self, member_id: str, group_instance_id: str | None) -> None:
        """Refuse who is not a member.

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

    # -- members -----------------------------------------------------------------------------

    def add(self, member: Member, *, protocol_type: str, awaiting_join: Token | None) -> None:
        """Take a member in; the first one leads."""
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
        """Let a member, or a pending one, go."""
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
        """Give a static member's place to a new incarnation, which waits for nothing yet."""
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
        """Take over what a member says when it joins again."""
        self._count_protocols(member.protocols, -1)
        member.protocols = protocols
        self._count_protocols(protocols, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        self.await_join(member, awaiting_join)

    def await_join(self, member: Member, token: Token | None) -> None:
        """Let a member wait for the end of the join phase; None: it waits no longer."""
        self._awaiting_join_count += (token is not None) - (member.awaiting_join is not None)
        member.awaiting_join = token

    def elect_leader_who_joined(self) -> bool:
        """Make sure that the leader has rejoined; return False if nobody did."""
        if self.leader is None:
            return False
        if self.members[self.leader].awaiting_join is not None:
            return True
        joined = (each for each in self.members.values() if each.awaiting_join is not None)
        candidate = next(joined, None)
        if candidate is not None:
            self.leader = candidate.member_id
        return candidate is not None

    def _count_protocols(self, protocols: Protocols, by: int) -> None:
        for name in {name for name, _ in protocols}:
            self.protocol_counts[name] += by

    # -- state -------------------------------------------------------------------------------

    def transition(self, state: GroupState, *, timestamp_ms: int) -> None:
        """Go to another state."""
        assert self._state in PREVIOUS_STATES[state], f"{self._state} to {state}"
        self.previous_state = self._state
        self._state = state
        self.state_timestamp_ms = timestamp_ms

    def begin_generation(self, *, timestamp_ms: int) -> None:
        """End the join phase with the members that have joined (soft until the leader syncs)."""
        assert self.members, "an empty group's generation begins with its record"
        self.generation = next_generation(self.generation)
        self.protocol = self.select_protocol()
        self.subscribed_topics = self._subscribed_topics()
        self.transition(GroupState.COMPLETING_REBALANCE, timestamp_ms=timestamp_ms)
        self.pending_syncs.clear()

    def adopt(self, value: Any) -> None:
        """Make a GroupMetadataValue the group's durable state.

        At run time its members are the group's own, so whoever waits goes on waiting. The record
        of a group's creation comes when its first members may be joining already.
        """
        is_creation = value.generation == self.generation and not value.members
        if is_creation and self._state is GroupState.PREPARING_REBALANCE:
            return
        known = self.members
        self.members = {}
        self.static_members = {}
        self.protocol_counts.clear()
        self._awaiting_join_count = 0
        self.generation = value.generation
        self.protocol_type = value.protocol_type or None
        self.protocol = value.protocol
        self.leader = value.leader
        for recorded in value.members:
            self._adopt_member(recorded, known.get(recorded.member_id))
        state = GroupState.STABLE if self.members else GroupState.EMPTY
        if state is not self._state:
            self.previous_state = self._state
            self._state = state
        self.state_timestamp_ms = value.current_state_timestamp
        self.subscribed_topics = self._subscribed_topics()

    def _adopt_member(self, recorded: Any, known: Member | None) -> None:
        protocols: Protocols = ((self.protocol or "", recorded.subscription),)
        if known is not None and protocols[0] in known.protocols:
            protocols = known.protocols
        rebalance_timeout_ms: int = recorded.rebalance_timeout
        if rebalance_timeout_ms == -1:
            rebalance_timeout_ms = recorded.session_timeout
        member = Member(
            recorded.member_id,
            group_instance_id=recorded.group_instance_id,
            client_id=recorded.client_id,
            client_host=recorded.client_host,
            rebalance_timeout_ms=rebalance_timeout_ms,
            session_timeout_ms=recorded.session_timeout,
            protocols=protocols,
            assignment=recorded.assignment,
        )
        if known is not None:
            member.is_new = known.is_new
            member.awaiting_sync = known.awaiting_sync
            self.await_join(member, known.awaiting_join)
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
        return subscribed_topics_of(each.metadata(protocol) for each in self.members.values())

    def check(self) -> None:
        """Assert the laws."""
        waiting = [each for each in self.members.values() if each.awaiting_join is not None]
        assert self._awaiting_join_count == len(waiting), "members that wait are counted"
        assert self.leader is None or self.leader in self.members, "the leader is a member"
        static = {
            each.group_instance_id: each.member_id
            for each in self.members.values()
            if each.group_instance_id is not None
        }
        assert self.static_members == static, "a static instance has one member"
        assert not self.pending_joins & self.members.keys(), "a pending member is no member"
        assert self.pending_syncs <= self.members.keys(), "only members are waited for"
        assert bool(self.members) <= (self._state is not GroupState.EMPTY), "Empty is empty"
        if self.is_in(GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            assert self.protocol is not None, "a protocol is chosen"
            assert self.members, "a generation has members"
            assert self.protocol_counts[self.protocol] == len(self.members), "all know it"


def next_generation(generation: int) -> int:
    """Return the number of the generation after one; it wraps as an int32."""
    return generation + 1 if generation < 2**31 - 1 else -(2**31)


def protocols_of(requested: Iterable[Any]) -> Protocols:
    """Return the protocols of a JoinGroup request; the last metadata of a name counts."""
    return tuple({each.name: each.metadata for each in requested}.items())


def assigned(assignments: Sequence[Any]) -> dict[str, bytes]:
    """Return what a leader's SyncGroup assigns to whom."""
    return {each.member_id: each.assignment for each in assignments}
