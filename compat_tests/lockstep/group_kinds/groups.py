"""Steps about classic groups: joins, rejoins, leaves, static members, offsets, administration.

The broker responds to JoinGroup when all members have joined, and to SyncGroup when the leader
has synced. A request that waits is sent on the member's own connection and awaited within the
same move, so the model only tracks the members of a group and whether it is stable.

Two outcomes are never tested because Apache Kafka's hash table order decides them: the new leader
after a leader has left two other members, and the protocol that wins a tied vote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compat_tests.lockstep.group_kinds.group_requests import (
    FIRST_STATIC,
    FIRST_STATIC_JOIN,
    Group,
    GroupRequests,
    Member,
)
from compat_tests.lockstep.steps import begin, command
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from compat_tests.lockstep.kind import Moves
    from compat_tests.lockstep.steps import Answer

_MOST_MEMBERS = 3
_FIRST_ASKING_FOR_IDS = 4


class Groups(GroupRequests):
    name = "groups"
    keys = frozenset(
        {
            ApiKey.JOIN_GROUP,
            ApiKey.SYNC_GROUP,
            ApiKey.HEARTBEAT,
            ApiKey.LEAVE_GROUP,
            ApiKey.OFFSET_COMMIT,
            ApiKey.OFFSET_FETCH,
            ApiKey.OFFSET_DELETE,
            ApiKey.FIND_COORDINATOR,
            ApiKey.DESCRIBE_GROUPS,
            ApiKey.LIST_GROUPS,
            ApiKey.DELETE_GROUPS,
        }
    )

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.groups: list[Group] = []
        self._made = 0

    def beginning(self) -> Moves:
        yield from self.create(3)
        yield from self.create(1)
        yield command(["coordinator"])
        for _ in range(2):
            self._new_group()
            yield from self.join()

    def moves(self) -> list[tuple[int, Callable[[], Moves]]]:
        return [
            (10, self.join),
            (6, self.rejoin),
            (5, self.follow_again),
            (5, self.return_as_static),
            (8, self.sync),
            (4, self.leave),
            (10, self.heartbeat),
            (14, self.commit),
            (10, self.fetch_offsets),
            (4, self.delete_offsets),
            (7, self.wrong_join),
            (6, self.wrong_sync),
            (4, self.wrong_leave),
            (5, self.describe),
            (3, self.list_groups),
            (3, self.find_coordinator),
            (3, self.delete_groups),
            (1, self.unserved_version),
            (1, lambda: self.recreate(self.any_topic())),
        ]

    def ending(self) -> Moves:
        for group in self.groups:
            yield from self.ask(ApiKey.DESCRIBE_GROUPS, {"groups": [group.group_id]}, version=6)
            yield from self._all_offsets(group, version=8)
            yield from self._all_offsets(group, version=2)

    def forget(self) -> None:
        """Abandon all groups and continue with new ones."""
        self.groups.clear()
        self._new_group()

    # -- members that come and go ------------------------------------------------------------

    def join(self) -> Moves:
        """Add a member; the others rejoin or leave; perhaps all sync."""
        group = self._group()
        if len(group.members) >= _MOST_MEMBERS:
            yield from self.leave()
            return
        self._made += 1
        name = f"member{self._made}"
        instance = f"{self.prefix}i{self._made}" if self.maybe(0.3) else None
        member = Member(name, instance, self._subscription())
        lowest = FIRST_STATIC_JOIN if instance else 0
        version = self.version(ApiKey.JOIN_GROUP, lowest)
        if version >= _FIRST_ASKING_FOR_IDS and instance is None:
            answer = yield from self._send_join(group, member, version)
            member_id = answer.name("member_id", "M")
            if answer.number("error_code") != 79 or member_id is None:
                return
            member.member_id = member_id
        yield from self._rebalance(group, member, version)

    def rejoin(self) -> Moves:
        """Let the leader, or a member with a new subscription, rejoin, which forces a rebalance.

        Before the generation has synced, the leader also needs a new subscription for that.
        """
        group = self._group()
        if not group.members:
            return
        member = self.random.choice(group.members)
        if member.member_id != group.leader or not group.is_synced:
            before = member.topics
            member.topics = self._subscription()
            if member.topics == before:
                return
        yield from self._rebalance(group, member, self._join_version(member))

    def follow_again(self) -> Moves:
        """Let a follower rejoin unchanged: the response describes the current generation."""
        group = self._group()
        followers = [member for member in group.members if member.member_id != group.leader]
        if not group.is_synced or not followers:
            return
        member = self.random.choice(followers)
        yield from self._send_join(group, member, self._join_version(member))

    def return_as_static(self) -> Moves:
        """Let a static member rejoin unchanged without its member id: the group stays stable."""
        group = self._group()
        static = [member for member in group.members if member.instance]
        if not group.is_synced or not static:
            return
        member = self.random.choice(static)
        old_id, member.member_id = member.member_id, ""
        answer = yield from self._send_join(group, member, self._join_version(member))
        new_id = answer.name("member_id", "M")
        if new_id is None or not answer.is_good:
            member.member_id = old_id
            return
        member.member_id = new_id
        leader = group.leader
        self._learn_generation(group, answer)
        if leader == old_id:
            group.leader = new_id  # the response has the old id before version 9
        if self.maybe(0.5):
            fenced = Member(member.connection, member.instance, member.topics, old_id)
            yield from self._beat(group, fenced)

    def leave(self) -> Moves:
        group = self._group()
        if not group.members:
            return
        leaving = self.random.choice(self._may_leave(group))
        yield from self._send_leave(group, leaving)
        group.members.remove(leaving)
        group.is_synced = False
        if group.members:
            first, *_ = group.members
            yield from self._rebalance(group, first, self._join_version(first), is_begun=True)

    def sync(self) -> Moves:
        group = self._group()
        if not group.members:
            return
        yield from self._sync_all(group)

    # -- single requests ---------------------------------------------------------------------

    def heartbeat(self) -> Moves:
        group = self._group()
        yield from self._beat(group, self._anybody(group))

    def commit(self) -> Moves:
        group = self._group() if self.maybe(0.8) else Group(f"{self.prefix}simple")
        member = self._anybody(group) if self.maybe(0.7) else Member("", None, ())
        # Apache Kafka keeps an empty group after it has refused every commit for an unknown one;
        # wirebroker does not (docs/compatibility.md). So only existing groups get long metadata.
        metadata = ["", "mark", None, "m" * 30] if group.members else ["", "mark", None]
        topics = [
            {
                **topic.both,
                "partitions": [
                    {
                        "partition_index": index,
                        "committed_offset": self.random.choice((0, 5, 77, -1)),
                        "committed_leader_epoch": self.random.choice((-1, 0, 3)),
                        "committed_metadata": self.random.choice(metadata),
                    }
                    for index in self.some([*topic.partitions, 9], maximum=2)
                ],
            }
            for topic in self.some(
                [*self.topics, self.strange_topic()] if self.maybe(0.1) else self.topics, maximum=2
            )
        ]
        request = {
            "group_id": group.group_id,
            "generation_id_or_member_epoch": self._generation(group) if member.member_id else -1,
            "member_id": member.member_id,
            "group_instance_id": member.instance,
            "retention_time_ms": self.random.choice((-1, -1, 10**10)),
            "topics": topics,
        }
        version = self.version(ApiKey.OFFSET_COMMIT, 7 if member.instance else 0)
        yield from self.ask(ApiKey.OFFSET_COMMIT, request, version=version)

    def fetch_offsets(self) -> Moves:
        if self.maybe(0.4):
            yield from self._all_offsets(self._group())
            return
        version = self.version(ApiKey.OFFSET_FETCH)
        names = [
            {
                **({"name": topic.name} if version < 10 else {"topic_id": topic.topic_id}),
                "partition_indexes": self.some([*topic.partitions, 9]),
            }
            for topic in self.some(self.topics, maximum=2)
        ]
        groups = [group.group_id for group in self.some(self.groups, maximum=2)]
        if self.maybe(0.2):
            groups.append(f"{self.prefix}simple")
        request = {
            "group_id": groups[0],
            "topics": names,
            "groups": [{"group_id": group_id, "topics": names} for group_id in groups],
            "require_stable": self.maybe(0.3),
        }
        yield from self.ask(ApiKey.OFFSET_FETCH, request, version=version)

    def delete_offsets(self) -> Moves:
        group = self._group() if self.maybe(0.6) else Group(f"{self.prefix}simple")
        topics = [
            {
                "name": topic.name,
                "partitions": [{"partition_index": index} for index in self.some(topic.partitions)],
            }
            for topic in self.some([*self.topics, self.strange_topic()], maximum=2)
        ]
        yield from self.ask(ApiKey.OFFSET_DELETE, {"group_id": group.group_id, "topics": topics})

    def wrong_join(self) -> Moves:
        """Join with an unknown id, a wrong timeout, or missing or inconsistent protocols."""
        group = self._group()
        member = Member("third", None, self._subscription(), "nobody")
        version = self.version(ApiKey.JOIN_GROUP)
        fields = self._join_fields(group, member)
        match self.random.randrange(6):
            case 0:
                pass
            case 1:
                fields["session_timeout_ms"] = self.random.choice((-1, 0, 9, 2**31 - 1))
            case 2:
                fields["protocols"] = []
            case 3 if group.members:
                fields |= {"member_id": "", "protocol_type": "connect"}
            case 4 if group.members:
                fields["member_id"] = ""
                fields["protocols"] = [{"name": "unheard-of", "metadata": b""}]
            case _:
                fields["group_id"] = ""
        if fields["member_id"] == "" and version >= _FIRST_ASKING_FOR_IDS:
            version = 3  # later versions require a member id first and wait
        yield from self.ask(ApiKey.JOIN_GROUP, fields, version=version, to="third")

    def wrong_sync(self) -> Moves:
        """Sync with an unknown id, another generation or another protocol."""
        group = self._group()
        if not group.members:
            return
        member = self.random.choice(group.members)
        fields = self._sync_fields(group, member)
        match self.random.randrange(4):
            case 0:
                fields["generation_id"] = group.generation + self.random.choice((-1, 1))
            case 1:
                fields["member_id"] = "nobody"
            case 2:
                fields["group_id"] = f"{self.prefix}unknown"
            case _:
                fields[self.random.choice(("protocol_type", "protocol_name"))] = "another"
                yield from self.ask(ApiKey.SYNC_GROUP, fields, version=5, to="third")
                return
        version = self.version(ApiKey.SYNC_GROUP, FIRST_STATIC if member.instance else 0)
        yield from self.ask(ApiKey.SYNC_GROUP, fields, version=version, to="third")

    def wrong_leave(self) -> Moves:
        group = self._group()
        unknown_member = {"member_id": "nobody", "group_instance_id": None, "reason": None}
        unknown_instance = {"member_id": "", "group_instance_id": "unknown", "reason": "why not"}
        members = self.some([unknown_member, unknown_instance], maximum=2)
        static = [member for member in group.members if member.instance]
        if static and self.maybe(0.3):
            instance = static[0].instance
            members.append({"member_id": "another", "group_instance_id": instance, "reason": ""})
        request = {"group_id": group.group_id, "member_id": "nobody", "members": members}
        yield from self.ask(ApiKey.LEAVE_GROUP, request)

    def describe(self) -> Moves:
        names = [group.group_id for group in self.some(self.groups)]
        names += self.some([f"{self.prefix}simple", f"{self.prefix}unknown", ""], 0, 2)
        request = {"groups": names, "include_authorized_operations": self.maybe(0.3)}
        yield from self.ask(ApiKey.DESCRIBE_GROUPS, request)

    def list_groups(self) -> Moves:
        states = ["Stable", "Empty", "CompletingRebalance", "stable", "Nonsense"]
        request = {
            "states_filter": self.some(states, 0, 2),
            "types_filter": self.some(["classic", "Classic", "consumer"], 0, 1),
        }
        yield from self.ask(ApiKey.LIST_GROUPS, request)

    def find_coordinator(self) -> Moves:
        keys = [group.group_id for group in self.some(self.groups)]
        kind = self.random.choice((0, 0, 1, 3) if self.maybe(0.3) else (0, 1))
        request = {"key": keys[0], "coordinator_keys": keys, "key_type": kind}
        yield from self.ask(ApiKey.FIND_COORDINATOR, request)

    def delete_groups(self) -> Moves:
        """Delete groups that have members, are empty or are unknown."""
        group = self._group()
        names = [group.group_id]
        names += self.some([f"{self.prefix}simple", f"{self.prefix}unknown"], 0, 2)
        yield from self.ask(ApiKey.DELETE_GROUPS, {"groups_names": names})

    # -- a rebalance -------------------------------------------------------------------------

    def _rebalance(
        self, group: Group, first: Member, version: int, *, is_begun: bool = False
    ) -> Moves:
        """Let one member join and all others after it; perhaps some leave, perhaps all sync."""
        others = [member for member in group.members if member is not first]
        self.random.shuffle(others)
        if not others:
            answer = yield from self._send_join(group, first, version)
            self._learn_joined(group, first, answer)
        else:
            waiting = [first]
            yield self._begin_join(group, first, version)
            if not is_begun:
                count = len(others) + 1
                yield command(["wait-group", group.group_id, "PreparingRebalance", str(count)])
            yield from self._amid(group, others)
            yield from self._follow(group, waiting, others)
        if group.members and self.maybe(0.8):
            yield from self._sync_all(group)

    def _amid(self, group: Group, others: list[Member]) -> Moves:
        if self.maybe(0.4):
            yield from self._beat(group, self.random.choice(others))
        if self.maybe(0.2):
            yield from self.commit()
        if self.maybe(0.2):
            yield from self.describe()

    def _follow(self, group: Group, waiting: list[Member], others: list[Member]) -> Moves:
        """Let the others join or leave; then await all responses."""
        staying = [
            member for member in others if member.member_id == group.leader or self.maybe(0.9)
        ]
        for member in others:
            if member not in staying:
                yield from self._send_leave(group, member)
                group.members.remove(member)
                continue
            yield self._begin_join(group, member, self._join_version(member))
            waiting.append(member)
        for member in waiting:
            answer = yield command(["await", member.connection])
            self._learn_joined(group, member, answer)

    def _sync_all(self, group: Group) -> Moves:
        followers = [member for member in group.members if member.member_id != group.leader]
        leader = next(
            (member for member in group.members if member.member_id == group.leader), None
        )
        if leader is None:
            return
        self.random.shuffle(followers)
        early = followers[: self.random.randint(0, len(followers))]
        if group.is_synced:
            early = []  # no request waits: the assignments exist
        for member in early:
            fields = self._sync_fields(group, member)
            yield begin(
                ApiKey.SYNC_GROUP, self._sync_version(member), fields, name=member.connection
            )
        answer = yield from self._send_sync(group, leader)
        group.is_synced = group.is_synced or answer.is_good
        for member in early:
            yield command(["await", member.connection])
        for member in followers:
            if member not in early:
                yield from self._send_sync(group, member)

    def _learn_joined(self, group: Group, member: Member, answer: Answer) -> None:
        if not answer.is_good:
            return
        member_id = answer.name("member_id", "M")
        assert member_id is not None, answer.lines
        member.member_id = member_id
        if member not in group.members:
            group.members.append(member)
        self._learn_generation(group, answer)
        group.is_synced = False

    def _learn_generation(self, group: Group, answer: Answer) -> None:
        group.generation = answer.number("generation_id")
        group.leader = answer.name("leader", "M") or group.leader

    # -- choices -----------------------------------------------------------------------------

    def _group(self) -> Group:
        if not self.groups or (len(self.groups) < 4 and self.maybe(0.05)):
            return self._new_group()
        return self.random.choice(self.groups)

    def _new_group(self) -> Group:
        self._made += 1
        group = Group(f"{self.prefix}g{self._made}")
        self.groups.append(group)
        return group

    def _subscription(self) -> tuple[str, ...]:
        return tuple(topic.name for topic in self.some(self.topics, 0, 2))

    def _may_leave(self, group: Group) -> list[Member]:
        if len(group.members) <= 2:
            return group.members
        return [member for member in group.members if member.member_id != group.leader]

    def _anybody(self, group: Group) -> Member:
        """Return a member, or a fake one."""
        if group.members and self.maybe(0.85):
            return self.random.choice(group.members)
        instance = self.random.choice((None, None, "unknown"))
        return Member("third", instance, (), "nobody")
