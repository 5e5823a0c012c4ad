"""Steps about share groups (KIP-932): members, partitions, start offsets, administration.

A group's partitions get share state after the response that needs it; the steps wait for that, and
the next heartbeats assign them. Assignments have no interval between them, and nothing is removed
by time. In the end the records of every group are compared.

Which partitions a member gets depends on a hash table in Apache Kafka. So the groups of several
members have a topic of one partition, which all of them share, and the group of one member has all
partitions of the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from compat_tests.lockstep.group_kinds.changing_members import ChangingMembers
from compat_tests.lockstep.steps import command
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from compat_tests.lockstep.kind import Moves, StepsWithResult
    from compat_tests.lockstep.steps import Answer

_LEAVE = -1


@dataclass(slots=True)
class ShareMember:
    member_id: str
    topics: list[str]
    epoch: int = 0

    def learn(self, answer: Answer) -> bool:
        if answer.is_good:
            self.epoch = answer.number("member_epoch")
        return answer.is_good


@dataclass(slots=True)
class ShareGroup:
    group_id: str
    most_members: int
    topics: list[str] = field(default_factory=list)  # that its members may subscribe to
    members: list[ShareMember] = field(default_factory=list)
    with_state: dict[str, int] = field(default_factory=dict)  # partitions by topic


class ShareGroups(ChangingMembers):
    name = "share-groups"
    keys = frozenset(
        {
            ApiKey.SHARE_GROUP_HEARTBEAT,
            ApiKey.SHARE_GROUP_DESCRIBE,
            ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
            ApiKey.ALTER_SHARE_GROUP_OFFSETS,
            ApiKey.DELETE_SHARE_GROUP_OFFSETS,
            ApiKey.DELETE_GROUPS,
        }
    )

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.groups = [
            ShareGroup(f"{self.prefix}{name}", most_members)
            for name, most_members in (("one", 4), ("two", 4), ("alone", 1))
        ]

    def beginning(self) -> Moves:
        for partitions in (1, 1, 4, 2):
            yield from self.create(partitions)
        one, two, *others = (topic.name for topic in self.topics)
        for group, topics in zip(self.groups, ([one], [two], others), strict=True):
            group.topics = topics
        yield command(["coordinator"])
        yield command(["share-coordinator", self.topics[0].name])
        for _ in range(3):
            yield from self.join()

    def moves(self) -> list[tuple[int, Callable[[], Moves]]]:
        return [
            (8, self.join),
            (3, self.join_again),
            (26, self.beat),
            (6, self.subscribe),
            (7, self.leave),
            (8, self.wrong_beat),
            (4, self.wrong_fields),
            (6, self.describe),
            (6, self.describe_offsets),
            (5, self.alter_offsets),
            (3, self.delete_offsets),
            (2, self.list_groups),
            (2, self.delete_group),
            (2, self.other_offsets),
            (1, self.enlarge),
            (1, self.unserved_version),
        ]

    def ending(self) -> Moves:
        for group in self.groups:
            yield from self.ask(ApiKey.SHARE_GROUP_DESCRIBE, {"group_ids": [group.group_id]})
            yield from self._all_offsets(group)
            yield command(["group-records", group.group_id])

    # -- heartbeats --------------------------------------------------------------------------

    def beat(self) -> Moves:
        group, member = self._any_member()
        if member is not None:
            fields = self._fields(group, member, member.epoch)
            if self.maybe(0.2):
                fields["subscribed_topic_names"] = member.topics
            member.learn((yield from self._send(fields)))

    def subscribe(self) -> Moves:
        """Change a member's topics, sometimes to the same ones or to none."""
        group, member = self._any_member()
        if member is None:
            return
        topics = self._subscription(group)
        fields = self._fields(group, member, member.epoch)
        answer = yield from self._send({**fields, "subscribed_topic_names": topics})
        if member.learn(answer):
            member.topics = topics
            yield from self._await_state(group, topics)

    def wrong_beat(self) -> Moves:
        """Send a heartbeat with a wrong epoch, member or group."""
        group, member = self._any_member()
        if member is None:
            return
        fields = self._fields(group, member, member.epoch)
        match self.random.randrange(5):
            case 0:
                fields["member_epoch"] += self.random.choice((-2, 1, 1000))
            case 1:
                fields["member_epoch"] -= 1
            case 2:
                fields["member_id"] = "nobody"
                fields["member_epoch"] = self.random.choice((member.epoch, _LEAVE))
            case 3:
                fields["group_id"] = f"{self.prefix}unknown"
                fields["member_epoch"] = self.random.choice((1, _LEAVE))
            case _:  # a member of another group
                other = next(listed for listed in self.groups if listed is not group)
                fields["group_id"] = other.group_id
        # An epoch of 0 or a leave would change the group without the model's notice.
        if fields["member_epoch"] > 0 or fields["member_id"] == "nobody":
            answer = yield from self._send(fields)
            if fields["group_id"] == group.group_id and fields["member_id"] == member.member_id:
                member.learn(answer)

    def wrong_fields(self) -> Moves:
        group = self._group()
        fields = self._fields(group, ShareMember("m", []), 0)
        fields["subscribed_topic_names"] = group.topics
        wrong: dict[str, Any] = self.random.choice(
            (
                {"group_id": ""},
                {"group_id": " "},
                {"member_id": ""},
                {"member_id": " "},
                {"member_id": "m" * 37},
                {"rack_id": ""},
                {"rack_id": " "},
                {"subscribed_topic_names": None},
                {"member_epoch": -2},
                {"member_epoch": -(2**31)},
            )
        )
        if wrong.get("rack_id") != " " and "m" * 37 not in wrong.values():
            yield from self._send({**fields, **wrong})

    # -- administration ----------------------------------------------------------------------

    def describe(self) -> Moves:
        names = [group.group_id for group in self.some(self.groups)]
        names += self.some([f"{self.prefix}unknown", ""], 0, 1)
        request = {"group_ids": names, "include_authorized_operations": self.maybe(0.3)}
        yield from self.ask(ApiKey.SHARE_GROUP_DESCRIBE, request)
        if self.maybe(0.2):
            yield from self.ask(ApiKey.DESCRIBE_GROUPS, {"groups": names})
            yield from self.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, {"group_ids": names})

    def describe_offsets(self) -> Moves:
        if self.maybe(0.4):
            yield from self._all_offsets(self._group())
            return
        topics = [
            {"topic_name": topic.name, "partitions": topic.partitions}
            for topic in [*self.some(self.topics), self.strange_topic()]
        ]
        names = [group.group_id for group in self.groups]
        names += self.some([f"{self.prefix}unknown", ""], 0, 1)
        groups = [{"group_id": name, "topics": topics} for name in self.some(names, 1, 2)]
        yield from self.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, {"groups": groups})

    def alter_offsets(self) -> Moves:
        group = self._group()
        listed = [
            {
                "topic_name": topic.name,
                "partitions": [
                    {"partition_index": index, "start_offset": self.random.choice((0, 3, 77))}
                    for index in self.some(topic.partitions, maximum=2)
                ],
            }
            for topic in self.topics
            if topic.name in group.topics
        ]
        if self.maybe(0.2):
            unknown = {"partition_index": 9, "start_offset": 0}
            listed.append({"topic_name": f"{self.prefix}nowhere", "partitions": [unknown]})
        request = {"group_id": self._maybe_another(group), "topics": listed}
        yield from self.ask(ApiKey.ALTER_SHARE_GROUP_OFFSETS, request)
        yield from self._learn_state(group)

    def delete_offsets(self) -> Moves:
        group = self._group()
        names = self.some([*group.topics, f"{self.prefix}nowhere"], maximum=2)
        topics = [{"topic_name": name} for name in names]
        request = {"group_id": self._maybe_another(group), "topics": topics}
        yield from self.ask(ApiKey.DELETE_SHARE_GROUP_OFFSETS, request)
        yield from self._learn_state(group)

    def other_offsets(self) -> Moves:
        """Send requests about offsets of other kinds of groups."""
        group = self._group()
        topic = self.any_topic()
        partition = {"partition_index": 0, "committed_offset": 5}
        commit = {
            "group_id": group.group_id,
            "generation_id_or_member_epoch": self.random.choice((-1, 1)),
            "member_id": self.random.choice(("", "nobody")),
            "topics": [{**topic.both, "partitions": [partition]}],
        }
        yield from self.ask(
            ApiKey.OFFSET_COMMIT, commit, version=self.version(ApiKey.OFFSET_COMMIT, 7)
        )
        fetch = {"groups": [{"group_id": group.group_id, "topics": None}]}
        yield from self.ask(ApiKey.OFFSET_FETCH, fetch, version=8)
        deleted = {"name": topic.name, "partitions": [{"partition_index": 0}]}
        request = {"group_id": group.group_id, "topics": [deleted]}
        yield from self.ask(ApiKey.OFFSET_DELETE, request)

    def list_groups(self) -> Moves:
        states = ["Stable", "Empty", "dead", "Nonsense"]
        request = {
            "states_filter": self.some(states, 0, 2),
            "types_filter": self.some(["share", "Share", "consumer"], 0, 1),
        }
        yield from self.ask(ApiKey.LIST_GROUPS, request)

    def delete_group(self) -> Moves:
        group = self._group()
        answer = yield from self.ask(ApiKey.DELETE_GROUPS, {"groups_names": [group.group_id]})
        if answer.is_good:
            group.with_state.clear()

    def enlarge(self) -> Moves:
        """Make a topic larger; its new partitions get share state after a heartbeat."""
        alone = self.groups[-1]
        topic = self.random.choice([topic for topic in self.topics if topic.name in alone.topics])
        if not alone.members or topic.name not in alone.members[0].topics or len(topic.ends) > 8:
            return
        yield from self.add_partitions(topic)
        # Coordinators know of a change when brokers serve the next one.
        self._made += 1
        yield command(["create", f"{self.prefix}later{self._made}", "1"])
        (member,) = alone.members
        member.learn((yield from self._send(self._fields(alone, member, member.epoch))))
        yield from self._await_state(alone, member.topics)

    # -- parts -------------------------------------------------------------------------------

    def _fields(self, group: ShareGroup, member: ShareMember, epoch: int) -> dict[str, Any]:
        return {
            "group_id": group.group_id,
            "member_id": member.member_id,
            "member_epoch": epoch,
            "rack_id": None,
            "subscribed_topic_names": None,
        }

    def _send(self, fields: dict[str, Any]) -> StepsWithResult[Answer]:
        answer = yield from self.ask(ApiKey.SHARE_GROUP_HEARTBEAT, fields)
        return answer

    def _most_members(self, group: ShareGroup) -> int:
        return group.most_members

    def _new_member(self, group: ShareGroup) -> ShareMember:
        self._made += 1
        return ShareMember(f"member{self._made}", self._subscription(group))

    def _send_leave(self, group: ShareGroup, member: ShareMember) -> StepsWithResult[bool]:
        answer = yield from self._send(self._fields(group, member, _LEAVE))
        return answer.is_good

    def _send_join(self, group: ShareGroup, member: ShareMember) -> StepsWithResult[bool]:
        fields = self._fields(group, member, 0)
        answer = yield from self._send({**fields, "subscribed_topic_names": member.topics})
        is_member = member.learn(answer)
        if is_member:
            yield from self._await_state(group, member.topics)
        return is_member

    def _await_state(self, group: ShareGroup, topics: list[str]) -> Moves:
        """Wait until the partitions of the topics have share state."""
        for topic in self.topics:
            if topic.name in topics:
                group.with_state[topic.name] = len(topic.ends)
        count = sum(group.with_state.values())
        yield command(["wait-share-state", group.group_id, str(count)])

    def _learn_state(self, group: ShareGroup) -> Moves:
        answer = yield from self._all_offsets(group)
        prefix = f"groups[{group.group_id}].topics["
        counts = {
            topic.name: sum(
                bool(answer.get(f"{prefix}{topic.name}].partitions[{index}].partition_index"))
                for index in topic.partitions
            )
            for topic in self.topics
        }
        group.with_state = {name: count for name, count in counts.items() if count}

    def _all_offsets(self, group: ShareGroup) -> StepsWithResult[Answer]:
        request = {"groups": [{"group_id": group.group_id, "topics": None}]}
        answer = yield from self.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, request)
        return answer

    # -- choices -----------------------------------------------------------------------------

    def _maybe_another(self, group: ShareGroup) -> str:
        if self.maybe(0.1):
            return self.random.choice(("", f"{self.prefix}unknown"))
        return group.group_id

    def _subscription(self, group: ShareGroup) -> list[str]:
        if self.maybe(0.1):
            unknown = f"{self.prefix}nowhere"
            return self.random.choice(([], [unknown], [group.topics[0], unknown]))
        return self.some(group.topics)
