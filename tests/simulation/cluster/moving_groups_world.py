"""Three to five nodes that coordinate consumer groups (KIP-848) with members, under faults.

Beyond coordinator_world.py: in the state of the current leader of a group's partition, no partition
has two owners, and the coordinator knows what each current member owns. A member's epoch never
falls. A group that was acknowledged is never lost; when the coordinator moves, no member is lost
before its session ends. At rest each group is stable, and each partition has one owner.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.cluster.coordinator_world import CoordinatorWorld
from tests.simulation.cluster.moving_members import MovingMember
from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.coordinator.groups.consumer.consumer_group import ConsumerGroup

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from tests.simulation.cluster.coordinating_member import CoordinatingMember
    from tests.simulation.cluster.moving_members import Partition

# Java's hash puts them into different partitions.
_GROUPS: Final = ("c0", "c1")
_TOPIC: Final = "s"
_TOPIC_ID: Final = b"s" * 16
_PARTITIONS: Final = 3
_MOST_ROUNDS: Final = 200


class MovingGroupsWorld(CoordinatorWorld):
    """One schedule.

    Attributes:
        checks: The number of checked states with owners.
        known_groups: Groups of which a member got a response.
    """

    settings: Mapping[str, str] = {
        "group.consumer.min.session.timeout.ms": "1000",
        "group.consumer.session.timeout.ms": "3000",
        "group.consumer.min.heartbeat.interval.ms": "100",
        "group.consumer.heartbeat.interval.ms": "500",
        "group.consumer.assignment.interval.ms": "0",
    }

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.checks = 0
        self.known_groups: set[str] = set()
        self._members = [
            MovingMember(self, group, f"{group}-{number}", _TOPIC)
            for group in _GROUPS
            for number in range(self.random.randint(1, 3))
        ]

    def totals(self) -> Counter[str]:
        return super().totals() + Counter({"checks of owners": self.checks})

    def _create_topics(self) -> None:
        feature = {"name": "group.version", "feature_level": 1}
        self.cluster.write(metadata_record(RecordType.FEATURE_LEVEL, **feature))
        replicas = [(self.random.choice(list(self.node_ids)),) for _ in range(_PARTITIONS)]
        self.cluster.create_topic(*replicas, name=_TOPIC, topic_id=_TOPIC_ID)
        super()._create_topics()

    def _clients(self) -> list[Coroutine[Any, Any, None]]:
        return [*super()._clients(), *(member.run() for member in self._members)]

    def look_at(self, member: CoordinatingMember) -> None:
        super().look_at(member)
        for group_id in _GROUPS:
            group = self.served(member, group_id)
            if group is not None:
                self._check_owners(group)

    def leads(self, member: CoordinatingMember, group_id: str) -> bool:
        """Return whether a node is the current leader of a group's partition, and serves it."""
        index = member.groups.partition_for(group_id)
        state = self.state(index)
        is_leader = state.leader == member.node_id
        if not is_leader or member.epoch_for(group_id) != state.leader_epoch:
            return False
        try:
            member.groups._partitions.at(index)
        except KafkaError:
            return False
        return True

    def served(self, member: CoordinatingMember, group_id: str) -> ConsumerGroup | None:
        """Return a group if this node is the current leader of its partition."""
        if not self.leads(member, group_id):
            return None
        engine = member.groups._partitions.at(member.groups.partition_for(group_id))
        group = engine.machine.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def _check_owners(self, group: ConsumerGroup) -> None:
        owners: dict[Partition, str] = {}
        for member in self._members:
            known = group.members.get(member.member_id)
            if member.group != group.group_id or known is None:
                continue
            if member.epoch not in {known.epoch, known.previous_epoch}:
                continue
            name = member.member_id
            for partition in member.owned:
                owner = owners.setdefault(partition, name)
                assert owner == name, f"{partition} is owned by {owner} and {name}"
                is_known = known.partition_epoch(*partition) is not None
                assert is_known, f"{name} owns {partition}, unknown to the coordinator"
        self.checks += bool(owners)

    # -- the end -------------------------------------------------------------------------------

    async def _calm(self) -> None:
        await super()._calm()
        await self._settle()

    async def _settle(self) -> None:
        for _ in range(_MOST_ROUNDS):
            if all(self._is_settled(group_id) for group_id in _GROUPS):
                return
            # All at the same time: one after another, their sessions could end in between.
            await asyncio.gather(*(member.take_turn() for member in self._members))
        raise AssertionError(f"groups do not settle: {self.answers}")

    def _is_settled(self, group_id: str) -> bool:
        members = [member for member in self._members if member.group == group_id]
        for node_id in self.node_ids:
            node = self.member(node_id)
            group = None if node is None else self.served(node, group_id)
            if group is not None:
                break
        else:
            return False
        owned = sorted(partition for member in members for partition in member.owned)
        return (
            group.state == "Stable"
            and group.members.keys() == {member.member_id for member in members}
            and owned == [(_TOPIC_ID, index) for index in range(_PARTITIONS)]
        )
