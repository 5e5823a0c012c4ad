"""Consumer groups (KIP-848) of one broker, whose members may also use the classic protocol.

Besides what happens in every world, topics are created, grown and deleted, and members change
their protocol, so that groups are upgraded and downgraded.

    at any time      no partition has two owners among the members that are current, and the
                     coordinator knows what each of them owns
    at rest          the group is stable with the live members; each partition of each topic with
                     subscribers belongs to one of them, and all is processed and committed

The model checks committed offsets and records. A full heartbeat that arrives after its sender has
repeated it is dropped: in Kafka's protocol, too, it takes partitions from their owner.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

from tests.simulation.clients.member import TOPIC, Habits, Member, RejoinError
from tests.simulation.clients.model import Model
from tests.simulation.clients.modern_member import MODERN_AGES, ModernHabits, ModernMember
from tests.simulation.machine.loop import Process
from tests.simulation.network.link import Exchange, LinkLostError
from tests.simulation.worlds.world import World
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.coordinator.groups import background
from wirebroker.coordinator.groups.classic.classic_group import ClassicGroup, GroupState
from wirebroker.coordinator.groups.consumer import target_assignment
from wirebroker.coordinator.groups.consumer.consumer_group import (
    ConsumerGroup,
    ConsumerGroupState,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.clients.modern_member import Partition

# Topics that come and go; each member also reads TOPIC.
_OTHERS: Final = ("u", "v")
_NAMES: Final = ((TOPIC,), (TOPIC, "u"), (TOPIC, "u", "v"), (TOPIC, "missing"))
_REGEXES: Final = ("[tuv]", "t|v", ".*")
_MOST_PARTITIONS: Final = 6
# Members plus partitions for which an assignment is computed at once.
_AT_ONCE: Final = (3_000, 3)
_ADMIN_TRIES: Final = 3


class _Model(Model):
    """The promises about offsets and records."""

    def _assigned(self, exchange: Exchange, answer: Any) -> None:
        # Of a classic member. Its epochs may begin again if the group becomes empty and classic.
        del exchange, answer
        self.count("assignments")


class _ClassicMember(Member):
    """A member of the classic protocol that rejoins when its topic has grown."""

    def __init__(self, world: ConsumerGroupWorld, **arguments: Any) -> None:
        super().__init__(**arguments, partition_count=world.partition_count)
        self._world = world

    async def _join(self) -> None:
        self._partition_count = self._world.partition_count
        await super()._join()

    async def _heartbeat(self) -> None:
        if self._partition_count != self._world.partition_count:
            await self._commit()
            raise RejoinError
        await super()._heartbeat()


class ConsumerGroupWorld(World):
    """One simulated run."""

    LINGERS = (0.0, 0.03)
    # Probability that a new member uses the classic protocol; the seed chooses.
    CLASSIC: tuple[float, ...] = (0.0, 0.3)

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.model = _Model()
        self._classic_share = self.random.choice(self.CLASSIC)
        self._at_once = self.random.choice(_AT_ONCE)

    def _settings(self) -> dict[str, str]:
        return {
            "group.consumer.min.session.timeout.ms": "1000",
            "group.consumer.session.timeout.ms": str(self.random.choice([4_000, 10_000])),
            "group.consumer.min.heartbeat.interval.ms": "100",
            "group.consumer.heartbeat.interval.ms": "1000",
            "group.consumer.assignment.interval.ms": str(self.random.choice([0, 1_000, 3_000])),
        }

    def run(self) -> None:
        with (
            mock.patch.object(target_assignment, "MOST_AT_ONCE", self._at_once),
            mock.patch.object(background, "_MOST_ITEMS", 1),
        ):
            super().run()

    # -- network callbacks -------------------------------------------------------------------

    def admits(self, exchange: Exchange) -> bool:
        if exchange.key is ApiKey.JOIN_GROUP:
            return False
        is_heartbeat = exchange.key is ApiKey.CONSUMER_GROUP_HEARTBEAT
        return not is_heartbeat or exchange.request.get("topic_partitions") is None

    def answered(self, exchange: Exchange, answer: Any) -> None:
        super().answered(exchange, answer)
        try:
            for group_id in self._groups:
                self._check_owners(group_id)
        except AssertionError as error:
            self.failed(error)

    def _check_owners(self, group_id: str) -> None:
        group = self._group(group_id)
        if group is None:
            return
        owners: dict[Partition, Member] = {}
        for member in self._members_of(group_id):
            if not _is_current(member, group):
                continue
            for partition in member.claims():
                other = owners.setdefault(partition, member)
                assert other is member, (
                    f"{partition} is owned by {other.process.name} and {member.process.name}"
                )
                if isinstance(group, ConsumerGroup):
                    known = group.members[member.member_id]
                    assert known.partition_epoch(*partition) is not None, (
                        f"{member.process.name} owns {partition}, unknown to the coordinator"
                    )
        if owners:
            self.model.count("checks of owners")

    def _group(self, group_id: str) -> ConsumerGroup | ClassicGroup | None:
        for shard in self.host.broker.groups.shards():
            group = shard.groups.get(group_id)
            if group is not None:
                assert isinstance(group, ConsumerGroup | ClassicGroup)
                return group
        return None

    def _members_of(self, group_id: str) -> list[Member]:
        return [member for member in self._members if member.group == group_id]

    @property
    def partition_count(self) -> int:
        """The number of partitions of TOPIC."""
        return len(self.host.broker.metadata.image.topics[TOPIC].partitions)

    # -- clients -----------------------------------------------------------------------------

    def _new_member(self, process: Process, group: str, habits: Habits) -> Member:
        arguments: dict[str, Any] = {
            "process": process,
            "network": self.network,
            "model": self.model,
            "group": group,
            "topic_id": self._topic_id,
            "habits": habits,
        }
        if isinstance(habits, ModernHabits):
            return ModernMember(**arguments)
        return _ClassicMember(self, **arguments)

    def _new_habits(self) -> Habits:
        random = self.random
        if random.random() < self._classic_share:
            return super()._new_habits()
        self._number += 1
        version = random.choice([0, 1, 1])
        uses_regex = version == 1 and random.random() < 0.4
        return ModernHabits(
            random.choice(MODERN_AGES),
            session_timeout_ms=0,
            rebalance_timeout_ms=random.choice([4_000, 15_000]),
            heartbeat_interval_s=random.choice([0.5, 1.0]),
            protocols=(),
            instance=f"instance{self._number}" if random.random() < 0.3 else None,
            heartbeat_version=version,
            names=() if uses_regex else random.choice(_NAMES),
            regex=random.choice(_REGEXES) if uses_regex else "",
            leaves_for_good=random.random() < 0.5,
        )

    # -- the storm ---------------------------------------------------------------------------

    async def _strike(self) -> None:
        random = self.random
        if random.random() >= 0.25:
            await super()._strike()
            return
        changes: list[Callable[[], Any]] = [
            lambda: self._create_other(random.choice(_OTHERS)),
            lambda: self._delete_other(random.choice(_OTHERS)),
            lambda: self._grow(random.choice((TOPIC, *_OTHERS))),
        ]
        await random.choice(changes)()

    async def _create_other(self, name: str) -> None:
        count = self.random.randint(1, 3)
        topic = {"name": name, "num_partitions": count, "replication_factor": 1}
        await self._administer(ApiKey.CREATE_TOPICS, 7, {"topics": [topic]})

    async def _delete_other(self, name: str) -> None:
        await self._administer(ApiKey.DELETE_TOPICS, 6, {"topics": [{"name": name}]})

    async def _grow(self, name: str) -> None:
        topic = self.host.broker.metadata.image.topics.get(name)
        if topic is None or len(topic.partitions) >= _MOST_PARTITIONS:
            return
        count = len(topic.partitions) + 1
        grown = {"name": name, "count": count, "assignments": None}
        await self._administer(ApiKey.CREATE_PARTITIONS, 3, {"topics": [grown]})

    async def _administer(self, key: ApiKey, version: int, request: dict[str, Any]) -> None:
        """Send a request a few times until it is answered, with whatever error."""
        self.note(f"! {key.name} {request['topics']}")
        process = Process(self.loop, "admin")
        for _ in range(_ADMIN_TRIES):
            link = self.network.open(process)
            try:
                await link.ask(key, version, {**request, "timeout_ms": 5_000}, timeout_s=5)
            except LinkLostError:
                continue
            self.model.count(key.name)
            return

    # -- calm --------------------------------------------------------------------------------

    async def _append_to_all(self) -> None:
        self._partition_count = self.partition_count
        await super()._append_to_all()

    def _restless(self) -> str | None:
        for group_id in self._groups:
            reason = self._restless_group(group_id)
            if reason is not None:
                return f"{group_id}: {reason}"
        return None

    def _restless_group(self, group_id: str) -> str | None:
        group = self._group(group_id)
        if group is None or group.state_name not in {ConsumerGroupState.STABLE, GroupState.STABLE}:
            return f"it is {group and group.state_name}"
        members = self._members_of(group_id)
        if {member.member_id for member in members} != group.members.keys():
            return "it has other members than those that live"
        if not all(_is_up_to_date(member, group) for member in members):
            return "members are in other epochs"
        owned = Counter(partition for member in members for partition in member.claims())
        if owned != Counter(self._wanted(members)):
            return f"its members own {owned}"
        for partition, end_offset in self._ends.items():
            if not self.model.has_processed_all(group_id, partition, end_offset):
                return f"it has not processed all of {partition}"
        return None

    def _wanted(self, members: list[Member]) -> set[Partition]:
        """Return all partitions of the topics that members subscribe to."""
        return {
            (topic.topic_id, index)
            for name, topic in self.host.broker.metadata.image.topics.items()
            if any(_subscribes(member, name) for member in members)
            for index in topic.partitions
        }


class MigrationWorld(ConsumerGroupWorld):
    """One run in which most groups have members of both protocols."""

    CLASSIC = (0.5, 0.7)


def _is_current(member: Member, group: ConsumerGroup | ClassicGroup) -> bool:
    """Return whether the coordinator has not removed the member since its last response."""
    if isinstance(group, ClassicGroup):
        return member.member_id in group.members and member.generation == group.generation
    known = group.members.get(member.member_id)
    return known is not None and member.generation in {known.epoch, known.previous_epoch}


def _is_up_to_date(member: Member, group: ConsumerGroup | ClassicGroup) -> bool:
    if isinstance(group, ClassicGroup):
        return member.generation == group.generation
    return member.generation == group.members[member.member_id].epoch


def _subscribes(member: Member, topic: str) -> bool:
    habits = member.habits
    if not isinstance(habits, ModernHabits):
        return topic == TOPIC
    matches = habits.regex and re.fullmatch(habits.regex, topic)
    return topic in habits.names or bool(matches)
