"""Steps about consumer groups (KIP-848): members, their partitions, offsets, administration.

Members behave as clients do: a heartbeat reports the partitions of the last assignment, or none of
them, or fewer. So they reconcile over many steps, while others join, leave and change their topics.
In the end the records of every group are compared.

Assignments have no interval between them, and nothing is removed by time. All members prefer the
range assignor: the uniform one's choice depends on hash tables, and so does the choice between two
that as many members prefer. The topics of a regular expression are searched at most every ten
seconds, so a group with one exists during one move only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compat_tests.lockstep.group_kinds.consumer_members import (
    ASSIGNOR,
    Consumer,
    ConsumerGroup,
    ConsumerRequests,
    as_owned,
)
from compat_tests.lockstep.group_kinds.epoch_members import LEAVE_FOR_A_WHILE
from compat_tests.lockstep.steps import command
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from compat_tests.lockstep.kind import Moves


class ConsumerGroups(ConsumerRequests):
    name = "consumer-groups"
    most_members = 4
    keys = frozenset(
        {
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            ApiKey.CONSUMER_GROUP_DESCRIBE,
            ApiKey.OFFSET_COMMIT,
            ApiKey.OFFSET_FETCH,
        }
    )

    def beginning(self) -> Moves:
        for partitions in (4, 2, 1):
            yield from self.create(partitions)
        yield command(["coordinator"])
        names = [topic.name for topic in self.topics]
        self._add_group(names)
        self._add_group(names[:1])
        for _ in range(3):
            yield from self.join()

    def moves(self) -> list[tuple[int, Callable[[], Moves]]]:
        return [
            (8, self.join),
            (3, self.join_again),
            (30, self.beat),
            (6, self.subscribe),
            (3, self.state_everything),
            (4, self.leave),
            (4, self.leave_for_a_while),
            (4, self.return_as_static),
            (8, self.wrong_beat),
            (4, self.wrong_fields),
            (8, self.commit),
            (6, self.fetch_offsets),
            (2, self.delete_offsets),
            (5, self.describe),
            (2, self.list_groups),
            (2, self.delete_groups),
            (1, self.live_by_pattern),
            (1, self.change_topics),
            (1, self.unserved_version),
        ]

    # -- members that come and go ------------------------------------------------------------

    def return_as_static(self) -> Moves:
        """Let a static member join with another member id, sometimes while the first is there."""
        group, member = self._any_member(is_static=True)
        if member is None:
            return
        successor = self._new_member(group)
        successor.instance = member.instance
        if self.maybe(0.5):
            successor.topics = member.topics
        if (yield from self._send_join(group, successor)):
            group.members[group.members.index(member)] = successor
            if self.maybe(0.5):
                yield from self._send_beat(self._beat_fields(group, member))

    # -- heartbeats --------------------------------------------------------------------------

    def beat(self) -> Moves:
        """Send a heartbeat that reports all, none, some or no word of the member's partitions."""
        group, member = self._any_member()
        if member is None:
            return
        fields = self._beat_fields(group, member)
        match self.random.randrange(8):
            case 0:
                pass
            case 1:
                fields["topic_partitions"] = []
            case 2:
                fewer = {topic: indexes[:1] for topic, indexes in member.assigned.items()}
                fields["topic_partitions"] = as_owned(fewer)
            case _:
                fields["topic_partitions"] = as_owned(member.assigned)
        member.learn((yield from self._send_beat(fields)))

    def subscribe(self) -> Moves:
        """Change a member's topics, sometimes to the same ones or to none."""
        group, member = self._any_member()
        if member is None:
            return
        topics = self._subscription(group)
        fields = {**self._beat_fields(group, member), "subscribed_topic_names": topics}
        if self.maybe(0.5):
            fields["topic_partitions"] = as_owned(member.assigned)
        if self.maybe(0.3):
            fields["server_assignor"] = ASSIGNOR
        if member.learn((yield from self._send_beat(fields))):
            member.topics = topics

    def state_everything(self) -> Moves:
        group, member = self._any_member()
        if member is not None:
            answer = yield from self._send_beat(self._whole_fields(group, member))
            member.learn(answer)

    def wrong_fields(self) -> Moves:
        """Join with invalid fields."""
        group = self._group()
        fields = self._whole_fields(group, self._new_member(group))
        wrong: dict[str, Any] = self.random.choice(
            (
                {"group_id": ""},
                {"member_id": "", "member_epoch": 1},
                {"instance_id": ""},
                {"rack_id": " "},
                {"rebalance_timeout_ms": -1},
                {"topic_partitions": None},
                {"topic_partitions": [{"topic_id": bytes(16), "partitions": [0]}]},
                {"subscribed_topic_names": None},
                {"server_assignor": "none"},
                {"member_epoch": -3},
                {"member_epoch": LEAVE_FOR_A_WHILE, "instance_id": None},
            )
        )
        yield from self._send_beat({**fields, **wrong})

    def live_by_pattern(self) -> Moves:
        """Let two members join with a regular expression, get their partitions and leave."""
        self._made += 1
        group = ConsumerGroup(f"{self.prefix}pattern{self._made}", [])
        pattern = f"{self.prefix}t[12]"
        members = [Consumer(name, None, []) for name in ("a", "b")]
        for number, member in enumerate(members):
            fields = {
                **self._whole_fields(group, member),
                "subscribed_topic_names": self.random.choice((None, [])),
                "subscribed_topic_regex": pattern,
            }
            answer = yield from self.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, fields, version=1)
            member.learn(answer)
            if number == 0:
                # Its assignor made the second epoch, its topics make the third.
                yield command(["wait-consumer-group", group.group_id, "3", "1"])
        for member in (*members, *members):
            fields = self._beat_fields(group, member)
            fields["topic_partitions"] = as_owned(member.assigned)
            member.learn((yield from self._send_beat(fields)))
        yield from self._describe(group)
        for member in members:
            yield from self._send_leave(group, member)
        yield command(["group-records", group.group_id])

    # -- offsets and administration ----------------------------------------------------------

    def fetch_offsets(self) -> Moves:
        group, member = self._any_member()
        version = self.version(ApiKey.OFFSET_FETCH, 8)
        topics = [
            {
                **({"name": topic.name} if version < 10 else {"topic_id": topic.topic_id}),
                "partition_indexes": topic.partitions,
            }
            for topic in self.some(self.topics)
        ]
        is_admin = member is None or self.maybe(0.3)
        requested = {
            "group_id": group.group_id,
            "member_id": None if is_admin or member is None else member.member_id,
            "member_epoch": -1
            if is_admin or member is None
            else member.epoch + self.random.choice((0, 0, -1, 1)),
            "topics": self.random.choice((None, topics)),
        }
        yield from self.ask(ApiKey.OFFSET_FETCH, {"groups": [requested]}, version=version)

    def describe(self) -> Moves:
        names = [group.group_id for group in self.some(self.groups)]
        names += self.some([f"{self.prefix}unknown", ""], 0, 1)
        request = {"group_ids": names, "include_authorized_operations": self.maybe(0.3)}
        yield from self.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, request)
        if self.maybe(0.3):
            yield from self.ask(ApiKey.DESCRIBE_GROUPS, {"groups": names})

    def list_groups(self) -> Moves:
        states = ["Stable", "Empty", "Reconciling", "assigning", "Nonsense"]
        request = {
            "states_filter": self.some(states, 0, 2),
            "types_filter": self.some(["classic", "Consumer", "consumer"], 0, 1),
        }
        yield from self.ask(ApiKey.LIST_GROUPS, request)

    def change_topics(self) -> Moves:
        """Make a topic larger, or delete it and create it again."""
        topic = self.any_topic()
        if self.maybe(0.5):
            yield from self.add_partitions(topic)
        else:
            yield from self.recreate(topic)
        # Coordinators know of a change when brokers serve the next one.
        self._made += 1
        yield command(["create", f"{self.prefix}later{self._made}", "1"])

    # -- choices -----------------------------------------------------------------------------

    def _add_group(self, topics: list[str]) -> None:
        group_id = f"{self.prefix}consumers{len(self.groups) + 1}"
        self.groups.append(ConsumerGroup(group_id, topics))

    def _new_member(self, group: ConsumerGroup) -> Consumer:
        self._made += 1
        instance = f"{self.prefix}i{self._made}" if self.maybe(0.4) else None
        # With a new member without topics, Apache Kafka may assign as if all had the same topics.
        topics = self._subscription(group) or group.topics
        return Consumer(f"member{self._made}", instance, topics)

    def _subscription(self, group: ConsumerGroup) -> list[str]:
        unknown = f"{self.prefix}nowhere"
        if self.maybe(0.1):
            return self.random.choice(([], [unknown], [*group.topics, unknown]))
        return self.some(group.topics)
