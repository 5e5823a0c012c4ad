"""Steps about streams groups (KIP-1071): topologies, members, tasks, offsets, administration.

Members behave as clients do: a heartbeat reports the tasks of the last assignment, none or fewer.
The topics of a topology exist, or the broker creates the internal ones. Assignments have no
interval between them, and nothing is removed by time. In the end the records of every group are
compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compat_tests.lockstep.group_kinds.epoch_members import LEAVE_FOR_A_WHILE
from compat_tests.lockstep.group_kinds.streams_members import (
    StreamsGroup,
    StreamsMember,
    StreamsRequests,
    as_tasks,
    chained,
)
from compat_tests.lockstep.steps import Expression, call, command
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from compat_tests.lockstep.kind import Moves

_GROUP = 32
_CONFIGS: dict[str, tuple[str, ...]] = {
    "streams.num.standby.replicas": ("0", "1", "2"),
    "streams.heartbeat.interval.ms": ("5000", "15000"),
}


class StreamsGroups(StreamsRequests):
    name = "streams-groups"
    most_members = 3
    keys = frozenset(
        {
            ApiKey.STREAMS_GROUP_HEARTBEAT,
            ApiKey.STREAMS_GROUP_DESCRIBE,
            ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE,
            ApiKey.OFFSET_COMMIT,
            ApiKey.OFFSET_FETCH,
            ApiKey.OFFSET_DELETE,
        }
    )

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._changing = ""

    def beginning(self) -> Moves:
        for partitions in (4, 2):
            yield from self.create(partitions)
        yield command(["coordinator"])
        first, second = (topic.name for topic in self.topics)
        self._changing = first
        simple = [call("topology", call("subtopology", "0", first), epoch=0)]
        simple.append(call("topology", call("subtopology", "0", first, second), epoch=1))
        self.groups.append(StreamsGroup(f"{self.prefix}simple", simple))
        created = f"{self.prefix}created"
        names = (f"{created}-a-repartition", f"{created}-b-changelog")
        topologies = [chained(second, *names, epoch) for epoch in (0, 1)]
        self.groups.append(StreamsGroup(created, topologies))
        member = self._new_member(self.groups[1])
        if (yield from self._send_join(self.groups[1], member)):
            self.groups[1].members.append(member)
        for name in names:
            yield command(["wait", name, "2"])
        yield from self._change_something()
        for _ in range(3):
            yield from self.join()

    def moves(self) -> list[tuple[int, Callable[[], Moves]]]:
        return [
            (8, self.join),
            (3, self.join_again),
            (32, self.beat),
            (3, self.state_everything),
            (4, self.leave),
            (3, self.leave_for_a_while),
            (3, self.return_as_static),
            (8, self.wrong_beat),
            (4, self.wrong_fields),
            (2, self.wrong_topology),
            (2, self.change_topology),
            (3, self.report_offsets),
            (1, self.shut_down),
            (6, self.commit),
            (4, self.fetch_offsets),
            (2, self.delete_offsets),
            (5, self.describe),
            (3, self.describe_topology),
            (1, self.list_groups),
            (2, self.delete_groups),
            (1, self.change_config),
            (1, self.change_topics),
            (1, self.unserved_version),
        ]

    # -- members that come and go ------------------------------------------------------------

    def return_as_static(self) -> Moves:
        """Let a static member that has left for a while join with another member id.

        While it is there, Apache Kafka refuses every request with another member id, and then
        takes its tasks away (docs/compatibility.md).
        """
        group, member = self._any_member(is_static=True)
        if member is None or not member.is_away:
            return
        successor = self._new_member(group)
        successor.instance = member.instance
        if self.maybe(0.5):
            successor.process, successor.endpoint = member.process, member.endpoint
        if (yield from self._send_join(group, successor)):
            group.members[group.members.index(member)] = successor

    # -- heartbeats --------------------------------------------------------------------------

    def beat(self) -> Moves:
        """Send a heartbeat that reports all, none, some or no word of the member's tasks."""
        group, member = self._any_member()
        if member is None:
            return
        fields = self._beat_fields(group, member)
        match self.random.randrange(8):
            case 0:
                pass
            case 1:
                active = member.tasks.get("active_tasks", {})
                fewer = {name: partitions[:1] for name, partitions in active.items()}
                fields |= {**member.reported(), "active_tasks": as_tasks(fewer)}
            case _:
                fields |= member.reported()
        member.learn((yield from self._send_beat(fields)))

    def state_everything(self) -> Moves:
        group, member = self._any_member()
        if member is not None:
            fields = {**self._whole_fields(group, member), **member.reported()}
            del fields["topology"]
            member.learn((yield from self._send_beat(fields)))

    def report_offsets(self) -> Moves:
        group, member = self._any_member()
        if member is None:
            return
        offsets = [
            {"subtopology_id": name, "partition": partition, "offset": self.random.choice((0, 70))}
            for name in ("0", "1", "none")
            for partition in (0, 9)
        ]
        fields = {
            **self._beat_fields(group, member),
            **member.reported(),
            "task_offsets": self.some(offsets, 0),
            "task_end_offsets": self.some(offsets, 0),
        }
        member.learn((yield from self._send_beat(fields)))

    def change_topology(self) -> Moves:
        """Join with the next topology, or with the last one once more."""
        group = self._group()
        if group.topology_epoch + 1 < len(group.topologies):
            group.topology_epoch += 1
        elif self.maybe(0.5):
            group.topology_epoch = 0
        if group.members:
            yield from self._send_join(group, self.random.choice(group.members))

    def shut_down(self) -> Moves:
        group, member = self._any_member()
        if member is not None:
            fields = {**self._beat_fields(group, member), "shutdown_application": True}
            member.learn((yield from self._send_beat(fields)))

    def wrong_fields(self) -> Moves:
        """Join with invalid fields."""
        group = self._group()
        fields = self._whole_fields(group, self._new_member(group))
        wrong: dict[str, Any] = self.random.choice(
            (
                {"group_id": ""},
                {"member_id": ""},
                {"instance_id": ""},
                {"rack_id": " "},
                {"process_id": ""},
                {"process_id": None},
                {"rebalance_timeout_ms": -1},
                {"rebalance_timeout_ms": 0},
                {"active_tasks": None},
                {"active_tasks": [{"subtopology_id": "0", "partitions": [0]}]},
                {"warmup_tasks": None},
                {"topology": None},
                {"user_endpoint": {"host": "", "port": self._made}},
                {"member_epoch": -3},
                {"member_epoch": LEAVE_FOR_A_WHILE, "instance_id": None},
                {"client_tags": [{"key": "a", "value": "b"}, {"key": "a", "value": "c"}]},
            )
        )
        yield from self._send_beat({**fields, **wrong})

    def wrong_topology(self) -> Moves:
        """Let a member join with a strange topology and leave.

        It has no endpoint: Apache Kafka fails for those without tasks (docs/compatibility.md).
        """
        self._made += 1
        first, second = (topic.name for topic in self.topics)
        topology = self.random.choice(
            (
                call("topology", epoch=0),
                call("topology", epoch=-1),
                _of(call("subtopology", "0", first), call("subtopology", "0", first)),
                _of(call("subtopology", "0", first, regex=["x.*"])),
                _of(call("subtopology", "0", first, regex=["["])),
                _of(call("subtopology", "0", first, second, copartition=[[[0, 1], []]])),
                _of(call("subtopology", "0", first, second, copartition=[[[0, 5], []]])),
                _of(call("subtopology", "0", first, sinks=["no-source"])),
                _of(call("subtopology", "0", repartition=[call("internal", "r", -1)])),
                _of(call("subtopology", "0", first, repartition=[call("internal", "a b")])),
                _of(call("subtopology", "0", f"{self.prefix}nowhere")),
                _of(call("subtopology", "", first)),
            )
        )
        group = StreamsGroup(f"{self.prefix}strange{self._made}", [topology])
        member = StreamsMember("m", None, "p", None)
        if (yield from self._send_join(group, member)):
            member.learn((yield from self._send_beat(self._beat_fields(group, member))))
            yield from self._describe(group)
            yield from self._send_leave(group, member)
        yield command(["group-records", group.group_id])

    # -- offsets and administration ----------------------------------------------------------

    def fetch_offsets(self) -> Moves:
        group, member = self._any_member()
        is_admin = member is None or self.maybe(0.3)
        requested = {
            "group_id": group.group_id,
            "member_id": None if is_admin or member is None else member.member_id,
            "member_epoch": -1
            if is_admin or member is None
            else member.epoch + self.random.choice((0, 0, -1, 1)),
            "topics": None,
        }
        version = self.version(ApiKey.OFFSET_FETCH, 8)
        yield from self.ask(ApiKey.OFFSET_FETCH, {"groups": [requested]}, version=version)

    def describe(self) -> Moves:
        names = [group.group_id for group in self.some(self.groups)]
        names += self.some([f"{self.prefix}unknown", ""], 0, 1)
        request = {
            "group_ids": names,
            "include_authorized_operations": self.maybe(0.3),
            "include_topology_description": self.maybe(0.3),
        }
        yield from self.ask(ApiKey.STREAMS_GROUP_DESCRIBE, request)

    def describe_topology(self) -> Moves:
        """Send a topology's description; a broker without a plug-in has no use for it."""
        group, member = self._any_member()
        node = {
            "name": "source",
            "node_type": self.random.choice((1, 2, 3, 99)),
            "source_topics": [self.topics[0].name],
            "sink_topic": None,
            "stores": [],
            "successors": [],
        }
        described = {"subtopologies": [{"subtopology_id": "0", "nodes": [node]}]}
        request = {
            "group_id": self.random.choice((group.group_id, "", f"{self.prefix}unknown")),
            "member_id": "nobody" if member is None or self.maybe(0.3) else member.member_id,
            "topology_epoch": group.topology_epoch + self.random.choice((0, 0, 1, -1)),
            "topology_description": {**described, "global_stores": []},
        }
        yield from self.ask(ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, request)

    def list_groups(self) -> Moves:
        states = ["Stable", "Empty", "Reconciling", "notready", "Nonsense"]
        request = {
            "states_filter": self.some(states, 0, 2),
            "types_filter": self.some(["streams", "Streams", "consumer"], 0, 1),
        }
        yield from self.ask(ApiKey.LIST_GROUPS, request)

    def change_config(self) -> Moves:
        group = self._group()
        name = self.random.choice([*_CONFIGS])
        value = self.random.choice(_CONFIGS[name])
        change = {"name": name, "config_operation": 0, "value": value}
        resource = {"resource_type": _GROUP, "resource_name": group.group_id, "configs": [change]}
        request = {"resources": [resource], "validate_only": False}
        answer = yield from self.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request)
        if answer.is_good:
            yield command(["wait-group-config", group.group_id, name, value])
            yield from self.until_applied(self.any_topic())

    def change_topics(self) -> Moves:
        """Make the topic without internal ones larger, or delete it and create it again."""
        topic = next(topic for topic in self.topics if topic.name == self._changing)
        if self.maybe(0.7):
            yield from self.add_partitions(topic)
        else:
            yield from self.recreate(topic)
        yield from self._change_something()

    # -- choices -----------------------------------------------------------------------------

    def _change_something(self) -> Moves:
        """Coordinators know of a change when brokers serve the next one."""
        self._made += 1
        yield command(["create", f"{self.prefix}later{self._made}", "1"])

    def _new_member(self, group: StreamsGroup) -> StreamsMember:
        self._made += 1
        instance = f"{self.prefix}i{self._made}" if self.maybe(0.4) else None
        process = self.random.choice(("p1", "p2", f"own{self._made}"))
        endpoint = {"host": process, "port": self._made} if self.maybe(0.4) else None
        return StreamsMember(f"member{self._made}", instance, process, endpoint)


def _of(*subtopologies: Expression) -> Expression:
    return call("topology", *subtopologies)
