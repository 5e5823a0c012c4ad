"""Three to five nodes that coordinate streams groups (KIP-1071) with members, under faults.

weather, deaths    as in replica_world.py, for the partitions of __consumer_offsets
members            with active and standby tasks, static ones, ones of an older topology
(streams_members.py); one with a changed topology is always refused
laws               in the state of the current leader of a group's partition, no active task has
two owners (StreamsMember.certain), the coordinator knows what each current
member owns, and no process has two copies of a task; epochs never fall; the group keeps its
topology; offsets change only by commits of owners (task_offsets.py)
at rest            within a bounded number of heartbeats each group is stable; each task is
active once, and has its standby tasks
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.cluster.service_world import ServiceWorld
from tests.simulation.cluster.streams_members import SOURCE, StreamsMember
from tests.simulation.cluster.task_offsets import TaskOffsets
from wirebroker.base.clock import pause
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.coordinator.groups.partitions import CONSUMER_OFFSETS
from wirebroker.coordinator.groups.streams.streams_group import StreamsGroup
from wirebroker.coordinator.groups.topologies.topic_problem import TopicStatus

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from tests.simulation.cluster.coordinating_member import CoordinatingMember
    from tests.simulation.cluster.streams_members import Task

# Java's hash puts them into different partitions.
_GROUPS: Final = ("c0", "c1")
_PARTITIONS: Final = 3
_SOURCE_ID: Final = b"s" * 16
_OFFSETS_ID: Final = b"o" * 16
_OLD, _PRESENT, _CHANGED = 0, 1, 2
_LOOK_S: Final = 0.1
# Of each member, until a group is at rest.
_MOST_HEARTBEATS: Final = 60
_ALL_TASKS: Final = frozenset((name, index) for name in "01" for index in range(_PARTITIONS))


class StreamsWorld(ServiceWorld):
    """One schedule.

    Attributes:
        offsets: The offsets that count.
        checks: The number of checked states with owners.
        heartbeats_to_rest: Heartbeats of each member until all groups were at rest.
    """

    topic = CONSUMER_OFFSETS
    storm_s = 15.0
    settings: Mapping[str, str] = {
        "group.streams.min.session.timeout.ms": "1000",
        "group.streams.session.timeout.ms": "3000",
        "group.streams.min.heartbeat.interval.ms": "100",
        "group.streams.heartbeat.interval.ms": "500",
        "group.streams.assignment.interval.ms": "0",
        "group.streams.initial.rebalance.delay.ms": "0",
        "group.streams.num.standby.replicas": "1",
    }

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.offsets = TaskOffsets()
        self.checks = 0
        self.heartbeats_to_rest = 0
        self._with_topology: set[str] = set()
        # The highest epoch of a response, by group.
        self._epochs: Counter[str] = Counter()
        self._members = [member for group in _GROUPS for member in self._members_of(group)]

    def totals(self) -> Counter[str]:
        own = {"checks of owners": self.checks, "commits": self.offsets.commits}
        return super().totals() + Counter({**own, "heartbeats to rest": self.heartbeats_to_rest})

    def _members_of(self, group: str) -> list[StreamsMember]:
        random = self.random
        epochs = [_PRESENT] * random.randint(1, 3) + [random.choice([_OLD, _PRESENT]), _CHANGED]
        return [
            StreamsMember(
                self,
                group,
                number,
                process=random.choice(["p", "q"]),
                instance=f"{group}-i{number}" if random.random() < 0.4 else None,
                topology_epoch=epoch,
            )
            for number, epoch in enumerate(epochs)
        ]

    def _create_topics(self) -> None:
        features = {"group.version": 1, "streams.version": 1}
        self.cluster.write(
            *(
                metadata_record(RecordType.FEATURE_LEVEL, name=name, feature_level=level)
                for name, level in features.items()
            )
        )
        replicas = [(self.random.choice(list(self.node_ids)),) for _ in range(_PARTITIONS)]
        self.cluster.create_topic(*replicas, name=SOURCE, topic_id=_SOURCE_ID)
        self.cluster.create_topic(*self.assignments(), name=self.topic, topic_id=_OFFSETS_ID)

    def _clients(self) -> list[Coroutine[Any, Any, None]]:
        return [self._look(), *(member.run() for member in self._members)]

    # -- members -----------------------------------------------------------------------------------

    def may_join(self, member: StreamsMember) -> bool:
        """Return whether the group has a topology, which this member does not set."""
        return member.topology_epoch == _PRESENT or member.group in self._with_topology

    def is_refused(self, member: StreamsMember) -> bool:
        return member.topology_epoch == _CHANGED

    def joined(self, member: StreamsMember, statuses: set[int]) -> None:
        """Check a successful heartbeat."""
        self._with_topology.add(member.group)
        is_stale = TopicStatus.STALE_TOPOLOGY in statuses
        assert is_stale == (member.topology_epoch == _OLD), f"statuses {statuses} of {member.name}"
        self._epochs[member.group] = max(self._epochs[member.group], member.epoch)

    # -- checks at any time ------------------------------------------------------------------------

    async def _look(self) -> None:
        while not self.is_over:
            await pause(_LOOK_S)
            self._look_at_all()

    def _look_at_all(self) -> None:
        for node_id in self.node_ids:
            node = self.member(node_id)
            if node is None:
                continue
            for group_id in _GROUPS:
                group = self.served(node, group_id)
                if isinstance(group, StreamsGroup):
                    self._check_group(node, group)

    def _check_group(self, node: CoordinatingMember, group: StreamsGroup) -> None:
        group.check()
        if group.topology is not None:
            assert group.topology.epoch == _PRESENT, f"{group.group_id} has another topology"
        self._check_owners(group)
        self._check_copies(group)
        epoch = node.epoch_for(group.group_id)
        engine = node.groups._partitions.at(node.groups.partition_for(group.group_id))
        assert epoch is not None
        for index in range(_PARTITIONS):
            commit = engine.machine.offsets.find(group.group_id, SOURCE, index)
            offset = -1 if commit is None else commit.offset
            self.offsets.is_held(group.group_id, index, offset, epoch)

    def _current(self, group: StreamsGroup) -> list[StreamsMember]:
        """Return the members that this coordinator knows in their present epoch."""
        current: list[StreamsMember] = []
        for member in self._members:
            known = group.members.get(member.member_id)
            if known is None or member.group != group.group_id:
                continue
            if 0 < member.epoch in {known.epoch, known.previous_epoch}:
                current.append(member)
        return current

    def _check_owners(self, group: StreamsGroup) -> None:
        owners: dict[Task, str] = {}
        for member in self._current(group):
            known = group.members[member.member_id]
            for task in member.certain:
                owner = owners.setdefault(task, member.member_id)
                assert owner == member.member_id, (
                    f"task {task} is owned by {owner} and {member.member_id}"
                )
                is_known = known.active_task_epoch(*task) is not None
                assert is_known, f"{owner} owns task {task}, unknown to the coordinator"
        self.checks += bool(owners)

    def _check_copies(self, group: StreamsGroup) -> None:
        """Check that no process has two copies of a task, as the coordinator assigns them."""
        copies: Counter[tuple[str, Task]] = Counter()
        for member in group.members.values():
            for tasks in (member.assigned.active, member.assigned.standby):
                for name, indexes in tasks.items():
                    copies.update((member.process_id, (name, index)) for index in indexes)
        twice = [copy for copy, count in copies.items() if count > 1]
        assert not twice, f"two copies in one process: {twice}"

    # -- the end -----------------------------------------------------------------------------------

    async def _calm(self) -> None:
        await super()._calm()
        while not all(self._is_settled(group_id) for group_id in _GROUPS):
            self.heartbeats_to_rest += 1
            assert self.heartbeats_to_rest <= _MOST_HEARTBEATS, f"no rest: {self._states()}"
            await asyncio.gather(*(member.take_turn() for member in self._members))
            self._look_at_all()

    def _group(self, group_id: str) -> StreamsGroup | None:
        for node_id in self.node_ids:
            node = self.member(node_id)
            group = None if node is None else self.served(node, group_id)
            if isinstance(group, StreamsGroup):
                return group
        return None

    def _joining(self, group_id: str) -> list[StreamsMember]:
        return [
            member
            for member in self._members
            if member.group == group_id and not self.is_refused(member)
        ]

    def _is_settled(self, group_id: str) -> bool:
        group, members = self._group(group_id), self._joining(group_id)
        if group is None or group.state != "Stable":
            return False
        if group.members.keys() != {member.member_id for member in members}:
            return False
        active = sorted(task for member in members for task in member.active)
        standby = sorted(task for member in members for task in member.standby)
        has_two_processes = len({member.process for member in members}) > 1
        stateful = sorted(task for task in _ALL_TASKS if task[0] == "1")
        return active == sorted(_ALL_TASKS) and standby == (stateful if has_two_processes else [])

    def _states(self) -> list[Any]:
        groups = [self._group(group_id) for group_id in _GROUPS]
        return [
            None if group is None else (group.state.name, sorted(group.members)) for group in groups
        ] + [(member.member_id, member.active, member.standby) for member in self._members]

    def _check_records(self, index: int, values: dict[int, bytes | None]) -> None:
        """Do nothing: the offsets were already checked."""
