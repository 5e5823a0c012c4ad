"""The members of a classic group: leader, pending responses, protocols that all support.

A roster knows neither the group's state nor its generation.

Source: Kafka's ClassicGroup; KIP-394, KIP-345.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.classic.classic_member import Member

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.coordinator.groups.classic.classic_member import Protocols
    from wirebroker.coordinator.outcome import Token


class Roster:
    """The members of a group, and the ids that may become members.

    Attributes:
        members: By member id.
        static_members: Member ids by group instance id.
        leader: A member's id; None without members.
        pending_joins: Assigned ids (KIP-394) that have not joined yet.
        pending_syncs: Members that have sent no SyncGroup yet.
        metadata_bytes: Size of all protocols of all members.
        awaiting_join_count: Number of members that wait for the end of the join phase.
    """

    __slots__ = (
        "_supporter_counts",
        "awaiting_join_count",
        "leader",
        "members",
        "metadata_bytes",
        "pending_joins",
        "pending_syncs",
        "static_members",
    )

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        self.leader: str | None = None
        self.pending_joins: set[str] = set()
        self.pending_syncs: set[str] = set()
        self.metadata_bytes = 0
        self.awaiting_join_count = 0
        # Number of members that support each protocol.
        self._supporter_counts: Counter[str] = Counter()

    # -- reading -----------------------------------------------------------------------------

    @property
    def have_all_joined(self) -> bool:
        """Whether all members wait for the end of the join phase, and no id is pending."""
        return len(self.members) == self.awaiting_join_count and not self.pending_joins

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def bytes_of(self, member_id: str, instance_id: str | None) -> int:
        """Return the size of a member's protocols; 0 without such a member."""
        member = self.members.get(member_id or self.static_members.get(instance_id or "", ""))
        return (
            0 if member is None else sum(len(name) + len(data) for name, data in member.protocols)
        )

    def supports(self, protocols: Protocols) -> bool:
        """Return whether all members support one of these."""
        count = len(self.members)
        return any(self._supporter_counts[name] == count for name, _ in protocols)

    def select_protocol(self) -> str:
        """Return the protocol with most votes among those that all members support."""
        count = len(self.members)
        candidates = {
            name
            for name, supporter_count in self._supporter_counts.items()
            if supporter_count == count
        }
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return max(votes, key=lambda name: votes[name])

    def validate(self, member_id: str, group_instance_id: str | None) -> None:
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

    # -- changes -----------------------------------------------------------------------------

    def add(self, member: Member, *, awaiting_join: Token | None) -> None:
        """Add a member; the first one leads."""
        instance = member.group_instance_id
        if instance is not None:
            assert instance not in self.static_members, f"{instance} has a member already"
            self.static_members[instance] = member.member_id
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
        self._set_protocols(member, protocols)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        self.await_join(member, awaiting_join)

    def await_join(self, member: Member, token: Token | None) -> None:
        """Set or remove a member's waiter for the end of the join phase."""
        self.awaiting_join_count += (token is not None) - (member.awaiting_join is not None)
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

    def _set_protocols(self, member: Member, protocols: Protocols) -> None:
        self._count_protocols(member.protocols, -1)
        member.protocols = protocols
        self._count_protocols(protocols, 1)

    def _count_protocols(self, protocols: Protocols, by: int) -> None:
        for name, metadata in protocols:
            self.metadata_bytes += by * (len(name) + len(metadata))
        for name in {name for name, _ in protocols}:
            self._supporter_counts[name] += by
            if not self._supporter_counts[name]:
                del self._supporter_counts[name]

    # -- the group's record ------------------------------------------------------------------

    def recorded(self, value: Any) -> Roster:
        """Return the roster of a decoded record; known members keep their waiters."""
        roster = Roster()
        roster.leader = value.leader
        roster.pending_joins = self.pending_joins
        roster.pending_syncs = self.pending_syncs
        for member in value.members:
            roster._adopt(member, value.protocol or "", self.members.get(member.member_id))
        return roster

    def _adopt(self, recorded: Any, protocol: str, previous: Member | None) -> None:
        protocols: Protocols = ((protocol, recorded.subscription),)
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

    def restore_protocols(self, protocols: Mapping[str, Protocols]) -> None:
        """Set the protocols of members by member id, unless they have joined with others since."""
        for member_id, known in protocols.items():
            member = self.members.get(member_id)
            if member is not None and member.protocols[0] in known:
                self._set_protocols(member, known)

    # -- invariants --------------------------------------------------------------------------

    def check(self) -> None:
        """Assert the invariants."""
        waiting = [member for member in self.members.values() if member.awaiting_join is not None]
        assert self.awaiting_join_count == len(waiting), "waiting members are counted"
        assert self.leader is None or self.leader in self.members, "the leader is a member"
        static = {
            member.group_instance_id: member.member_id
            for member in self.members.values()
            if member.group_instance_id is not None
        }
        assert self.static_members == static, "a static instance has one member"
        assert not self.pending_joins & self.members.keys(), "pending members are not members"
        assert self.pending_syncs <= self.members.keys(), "only members have pending syncs"

    def check_support(self, protocol: str) -> None:
        """Assert that all members support a protocol."""
        assert self._supporter_counts[protocol] == len(self.members), "all members support it"

    def check_record(self, value: Any) -> None:
        """Assert that the members are those of a decoded record."""
        assert value.leader == self.leader
        members = {member.member_id: member for member in value.members}
        assert members.keys() == self.members.keys(), "all members are recorded"
        for member in self.members.values():
            recorded = members[member.member_id]
            assert member.assignment == recorded.assignment
            assert member.group_instance_id == recorded.group_instance_id
            assert member.metadata(value.protocol or "") == recorded.subscription
            assert member.session_timeout_ms == recorded.session_timeout
            assert member.rebalance_timeout_ms == _rebalance_timeout_ms(recorded)


def _rebalance_timeout_ms(recorded: Any) -> int:
    """Return a recorded member's timeout; old versions have no such field (-1)."""
    timeout_ms: int = recorded.rebalance_timeout
    if timeout_ms == -1:
        timeout_ms = recorded.session_timeout
    return timeout_ms
