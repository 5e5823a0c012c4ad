"""Members of streams groups (KIP-1071) whose coordinators move between nodes.

A member gives up tasks immediately or some heartbeats later, and commits offsets of its active
tasks. Some members are static, and return with a new member id. Some disappear.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.cluster.moving_members import AGAIN, REMOVED
from tests.simulation.cluster.offset_clients import GroupClient
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.simulation.cluster.coordinating_member import CoordinatingMember
    from tests.simulation.cluster.streams_world import StreamsWorld

# Subtopology and partition.
Task = tuple[str, int]

_VERSION: Final = 1
_COMMIT_VERSION: Final = 9
_FETCH_VERSION: Final = 9
_JOIN, _LEAVE, _LEAVE_STATIC = 0, -1, -2
_REBALANCE_MS: Final = 4_000
_PATIENCE_S: Final = 2.0
_VANISHES: Final = 0.02
_LEAVES: Final = 0.02
_SLOW: Final = 0.3
# Another incarnation has the instance id.
_TAKEN: Final = {ErrorCode.UNRELEASED_INSTANCE_ID, ErrorCode.FENCED_INSTANCE_ID}
# The topics of a topology; the other ones are created by the broker.
SOURCE: Final = "s"
READS: Final = {"0": SOURCE}


def topology(group: str, epoch: int) -> dict[str, Any]:
    """Return two subtopologies: one reads the source, the other has state."""
    repartition = {"name": f"{group}-repartition", "partitions": 0, "replication_factor": 1}
    changelog = {"name": f"{group}-changelog", "partitions": 0, "replication_factor": 1}
    nothing: dict[str, Any] = {
        "source_topics": [],
        "source_topic_regex": [],
        "state_changelog_topics": [],
        "repartition_sink_topics": [],
        "repartition_source_topics": [],
        "copartition_groups": [],
    }
    sinks = [repartition["name"]]
    return {
        "epoch": epoch,
        "subtopologies": [
            {
                **nothing,
                "subtopology_id": "0",
                "source_topics": [SOURCE],
                "repartition_sink_topics": sinks,
            },
            {
                **nothing,
                "subtopology_id": "1",
                "repartition_source_topics": [{**repartition, "topic_configs": []}],
                "state_changelog_topics": [{**changelog, "topic_configs": []}],
            },
        ],
    }


class StreamsMember(GroupClient):
    """One thread of an application; after it has disappeared, another one.

    Attributes:
        epoch: That of its last response; 0 while it joins.
        active: The active tasks that it processes.
        standby: The standby tasks that it has.
        topology_epoch: That of its topology.
    """

    world: StreamsWorld

    def __init__(
        self,
        world: StreamsWorld,
        group: str,
        number: int,
        *,
        process: str,
        instance: str | None,
        topology_epoch: int,
    ) -> None:
        super().__init__(world, group)
        self.name = f"{group}-{number}"
        self.process = process
        self.instance = instance
        self.topology_epoch = topology_epoch
        self._life = 0
        self._begin()

    def _begin(self) -> None:
        self._life += 1
        self.member_id = f"{self.name}-{self._life}"
        self._lose_all()

    def _lose_all(self) -> None:
        self.epoch = _JOIN
        self.active: frozenset[Task] = frozenset()
        self.standby: frozenset[Task] = frozenset()
        self._pending: tuple[frozenset[Task], frozenset[Task]] | None = None
        self._unreported: frozenset[Task] = frozenset()
        self._is_answered = True
        self._positions: dict[Task, int] = {}

    @property
    def certain(self) -> frozenset[Task]:
        """The active tasks that the coordinator must know as this member's.

        If the assignment has changed, a heartbeat without a task that its sender is about to take
        ends the assignment of this task. A member that does not receive the response may still
        take the task, as Kafka's clients do, until its next heartbeat is fenced. Its commits are
        refused.
        """
        return self.active - self._unreported

    async def run(self) -> None:
        world = self.world
        while not world.is_over:
            await self.take_turn()
            choice = world.random.random()
            if choice < _VANISHES:
                self._begin()
            elif choice < _VANISHES + _LEAVES:
                await self._leave()

    async def take_turn(self) -> None:
        """Send a heartbeat some time later, then commit offsets."""
        world = self.world
        await pause(world.random.uniform(0.1, 0.6))
        if not world.may_join(self):
            return
        if self._pending is not None and (world.is_over or world.random.random() > _SLOW):
            if not self._is_answered:
                self._unreported |= self._pending[0] - self.active
            (self.active, self.standby), self._pending = self._pending, None
        self._is_answered = False
        answer = await self._send(
            ApiKey.STREAMS_GROUP_HEARTBEAT, _VERSION, self._heartbeat(), patience_s=_PATIENCE_S
        )
        if answer is not None:
            self._receive(answer)
        await self._process()

    async def _send(
        self, key: ApiKey, version: int, body: Mapping[str, Any], *, patience_s: float
    ) -> Any:
        """Send a request to the coordinator; return None if there is no response in time."""
        node = await self.coordinator()
        if node is None:
            return None
        task = self.world.processes[node.node_id].spawn(self._ask(node, key, version, body))
        done, _ = await asyncio.wait([task], timeout=patience_s)
        if not done:
            # A request that begins later would be a repeated one.
            task.cancel()
        return task.result() if done and not task.cancelled() else None

    async def _ask(
        self, node: CoordinatingMember, key: ApiKey, version: int, body: Mapping[str, Any]
    ) -> Any:
        return await node.ask(key, version, body)

    # -- membership ------------------------------------------------------------------------------

    def _identity(self, epoch: int) -> dict[str, Any]:
        return {
            "group_id": self.group,
            "member_id": self.member_id,
            "member_epoch": epoch,
            "instance_id": self.instance,
            "endpoint_information_epoch": -1,
        }

    def _heartbeat(self) -> dict[str, Any]:
        body = self._identity(self.epoch)
        body |= {
            "active_tasks": _listed(self.active),
            "standby_tasks": _listed(self.standby),
            "warmup_tasks": [],
        }
        if self.epoch == _JOIN:
            body |= {
                "topology": topology(self.group, self.topology_epoch),
                "rebalance_timeout_ms": _REBALANCE_MS,
                "process_id": self.process,
            }
        return body

    async def _leave(self) -> None:
        epoch = _LEAVE if self.instance is None else _LEAVE_STATIC
        body = self._identity(epoch)
        self._lose_all()
        await self._send(ApiKey.STREAMS_GROUP_HEARTBEAT, _VERSION, body, patience_s=_PATIENCE_S)
        self._begin()

    def _receive(self, answer: Any) -> None:
        world, error = self.world, ErrorCode(answer.error_code)
        world.count(ApiKey.STREAMS_GROUP_HEARTBEAT, error)
        if error in REMOVED | _TAKEN:
            self._lose_all()
            return
        if error in AGAIN:
            return
        if error is ErrorCode.INVALID_REQUEST and world.is_refused(self):
            return
        assert error is ErrorCode.NONE, answer
        assert not world.is_refused(self), f"{self.name} joins with another topology"
        assert answer.member_epoch >= self.epoch, f"{self.member_id} goes back"
        self.epoch = answer.member_epoch
        self._unreported, self._is_answered = frozenset(), True
        world.joined(self, {status.status_code for status in answer.status or ()})
        if answer.active_tasks is not None:
            self._pending = _tasks(answer.active_tasks), _tasks(answer.standby_tasks)
            if self.active <= self._pending[0] and self.standby <= self._pending[1]:
                (self.active, self.standby), self._pending = self._pending, None

    # -- offsets ---------------------------------------------------------------------------------

    async def _process(self) -> None:
        """Read on from the committed offset of each task with a source topic, and commit."""
        tasks = [task for task in self.active if task[0] in READS]
        self._positions = {task: self._positions[task] for task in tasks if task in self._positions}
        for task in sorted(tasks):
            if self.epoch != _JOIN and task in self.active:
                await (self._commit(task) if task in self._positions else self._fetch(task))

    async def _fetch(self, task: Task) -> None:
        subtopology, partition = task
        group = {
            "group_id": self.group,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "topics": [{"name": READS[subtopology], "partition_indexes": [partition]}],
        }
        body = {"groups": [group], "require_stable": True}
        answer = await self._send(ApiKey.OFFSET_FETCH, _FETCH_VERSION, body, patience_s=_PATIENCE_S)
        if answer is None or answer.groups[0].error_code:
            return
        (fetched,) = answer.groups[0].topics[0].partitions
        if not fetched.error_code:
            self.world.count(ApiKey.OFFSET_FETCH, ErrorCode.NONE)
            self._positions[task] = fetched.committed_offset

    async def _commit(self, task: Task) -> None:
        subtopology, partition = task
        offset = self._positions[task] + self.world.random.randint(1, 3)
        self.world.offsets.asked(self.group, partition, offset)
        entry = {"partition_index": partition, "committed_offset": offset}
        body = {
            "group_id": self.group,
            "member_id": self.member_id,
            "generation_id_or_member_epoch": self.epoch,
            "topics": [{"name": READS[subtopology], "partitions": [entry]}],
        }
        node = await self.coordinator()
        if node is None:
            return
        work = self._committed(node, body, partition, offset)
        spawned = self.world.processes[node.node_id].spawn(work)
        done, _ = await asyncio.wait([spawned], timeout=_PATIENCE_S)
        if done and not spawned.cancelled() and spawned.result():
            self._positions[task] = offset
        else:
            # The commit may have happened, or may still happen.
            self._positions.pop(task, None)

    async def _committed(
        self, node: CoordinatingMember, body: Mapping[str, Any], partition: int, offset: int
    ) -> bool:
        epoch = node.epoch_for(self.group)
        answer = await node.ask(ApiKey.OFFSET_COMMIT, _COMMIT_VERSION, body)
        error = ErrorCode(answer.topics[0].partitions[0].error_code)
        self.world.count(ApiKey.OFFSET_COMMIT, error)
        if error is not ErrorCode.NONE:
            return False
        assert epoch is not None, "who answers is a coordinator"
        self.world.offsets.committed(self.group, partition, offset, epoch)
        return True


def _listed(tasks: frozenset[Task]) -> list[dict[str, Any]]:
    partitions: dict[str, list[int]] = {}
    for subtopology, partition in sorted(tasks):
        partitions.setdefault(subtopology, []).append(partition)
    return [
        {"subtopology_id": subtopology, "partitions": indexes}
        for subtopology, indexes in partitions.items()
    ]


def _tasks(entries: Any) -> frozenset[Task]:
    return frozenset(
        (entry.subtopology_id, partition) for entry in entries for partition in entry.partitions
    )
