"""Replicas that lose the ends of their logs in turn: eligible leaders (KIP-966).

    weather   as in replica_world.py
    deaths    nodes are killed and may lose unsynced data, in sync or not; several at a time are
              stopped and restarted. One node always has all acknowledged records and has not died
              since
    promises  as in replica_world.py: no acknowledged or read record is lost; and a topic with a
              replica on each node can be created while a stopped node is away

The complete replicas follow from the metadata's ISRs, independently of the controller's eligible
leaders: nothing is acknowledged while fewer than min.insync.replicas are in sync, so a replica that
leaves such an ISR stays complete.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from tests.simulation.cluster.replica_world import ReplicaWorld
from tests.simulation.machine.crash_states import CrashKind, crash
from tests.support.replicas.broker_cluster import Cluster, Member
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.messages import decode_request, encode_request
from wirebroker.coordinator.controller.features.feature_control import (
    ELIGIBLE_LEADER_REPLICAS,
    feature_level,
)
from wirebroker.coordinator.controller.requests.request import ControllerRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import Any

_MIN_ISR = 2


class PatientMember(Member):
    """A member that retries its registration and first heartbeat until they succeed."""

    async def tell(self, say: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await say()
            except KafkaError as error:
                if error.code is not ErrorCode.REQUEST_TIMED_OUT:
                    raise
                await pause(0.2)
            else:
                return


class LostTailWorld(ReplicaWorld):
    """One schedule.

    Attributes:
        lost_tails: How often the last in-sync replica lost the end of its log.
        creations: How often a topic was created while a node was away.
    """

    member_kind = PatientMember
    has_elr: ClassVar[bool] = True

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.node_ids = range(1, 4)
        self.lost_tails = 0
        self.creations = 0
        # Nodes that died and have not registered since; complete replicas by partition.
        self._dead: set[int] = set()
        self._complete: dict[int, set[int]] = {}
        self._leaving: set[int] = set()
        self._busy: dict[int, asyncio.Task[None]] = {}
        if self.has_elr:
            self.cluster.write(feature_level(ELIGIBLE_LEADER_REPLICAS, 1))

    def assignments(self) -> list[tuple[int, ...]]:
        return [(1, 2, 3), (2, 3, 1)]

    def note_states(self) -> None:
        """Update the complete replicas from the current metadata."""
        topic = self.cluster.image.topics.get(self.topic)
        for partition in () if topic is None else topic.partitions.values():
            in_sync = set(partition.isr) - self._dead
            if len(partition.isr) < _MIN_ISR:
                in_sync |= self._complete[partition.index]
            self._complete[partition.index] = in_sync

    def _misfortune(self) -> None:
        for task in self._busy.values():
            if task.done():
                task.result()
        self._busy = {node: task for node, task in self._busy.items() if not task.done()}
        able = [node for node in self.node_ids if node not in self._busy]
        choice = self.random.random()
        if choice < 0.6 and able:
            node_id = self.random.choice(able)
            if choice < 0.3 and self._may_die(node_id):
                self._begin(node_id, self._die)
            elif self._may_stop(node_id):
                self._begin(node_id, self._stop_and_start)
        elif choice < 0.8:
            self.blocked.add(frozenset(self.random.sample(list(self.node_ids), 2)))
        else:
            self.blocked.clear()

    def _begin(self, node_id: int, befall: Callable[[int], Coroutine[Any, Any, None]]) -> None:
        self._busy[node_id] = self.loop.create_task(befall(node_id))
        self._victim = self.loop.create_task(_end_of(list(self._busy.values())))

    def _may_die(self, node_id: int) -> bool:
        """Return whether each partition has another complete replica that stays in the ISR."""
        return all(replicas - {node_id} - self._leaving for replicas in self._complete.values())

    def _may_stop(self, node_id: int) -> bool:
        """Return whether no ISR that is large enough without the node has only dead members.

        The controller may not have noticed these deaths yet.
        """
        remaining_isrs = [set(self.state(index).isr) - {node_id} for index in self._complete]
        return all(len(isr) < _MIN_ISR or isr - self._dead for isr in remaining_isrs)

    async def _die(self, node_id: int) -> None:
        self.deaths += 1
        self._dead.add(node_id)
        for replicas in self._complete.values():
            replicas.discard(node_id)
        self._bury(node_id)
        await pause(self.random.choice([0.0, 0.5, 3.0]))
        self.cluster.fence(node_id)
        if self.random.random() < 0.8:
            self.lost_tails += any(self.state(index).isr in {(), (node_id,)} for index in (0, 1))
            self.disks[node_id] = crash(self.disks[node_id], CrashKind.SYNCED, self.random)
        await pause(self.random.choice([0.0, 0.5, 5.0]))
        await self._start(node_id)
        self._dead.discard(node_id)

    async def _stop_and_start(self, node_id: int) -> None:
        self._leaving.add(node_id)
        await self._stop(node_id)
        self._leaving.discard(node_id)
        self._bury(node_id)
        self.cluster.forget_sessions()
        await pause(self.random.choice([0.1, 2.0, 6.0]))
        try:
            if not self._leaving and any(e.is_active for e in self.cluster.image.brokers.values()):
                await self._create_topic()
        finally:
            await self._start(node_id)

    async def _create_topic(self) -> None:
        topic = {
            "name": "new",
            "num_partitions": 1,
            "replication_factor": len(self.node_ids),
            "assignments": [],
            "configs": [],
        }
        body = {"topics": [topic], "timeout_ms": 1000, "validate_only": True}
        frame = encode_request(ApiKey.CREATE_TOPICS, 7, body)
        decoded = decode_request(ApiKey.CREATE_TOPICS, 7, frame)
        request = ControllerRequest(ApiKey.CREATE_TOPICS, 7, decoded)
        answer = await Cluster.handle(self.cluster, request)  # without network faults
        (created,) = answer["topics"]
        assert not created.get("error_code"), f"cannot be created: {created}"
        self.creations += 1

    async def _stop(self, node_id: int) -> None:
        """Stop a node as soon as the controller permits it."""
        while True:
            self.cluster.hear_of_all()
            task = self.processes[node_id].spawn(self.cluster.members[node_id].stop())
            await asyncio.wait([task])
            error = task.exception()
            if error is None:
                return
            if not isinstance(error, KafkaError):
                raise error


async def _end_of(tasks: list[asyncio.Task[None]]) -> None:
    await asyncio.gather(*tasks)


class OldLostTailWorld(LostTailWorld):
    """The same without the feature: an ISR keeps its last member even if that has lost records."""

    has_elr = False
