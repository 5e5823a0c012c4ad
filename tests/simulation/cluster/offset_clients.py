"""Clients of simulated coordinators: one commits offsets, others fetch them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from tests.simulation.cluster.coordinating_member import CoordinatingMember
    from tests.simulation.cluster.coordinator_world import CoordinatorWorld
    from tests.simulation.cluster.service_world import ServiceWorld

_FIND_VERSION: Final = 4
# Versions with topic names, before and after batched groups (KIP-709) and member epochs (KIP-848).
_COMMIT_VERSIONS: Final = (5, 8, 9)
_FETCH_VERSIONS: Final = (5, 7, 8, 9)
# Share of commits sent twice concurrently, or to a node that was not looked up.
_DOUBLED: Final = 0.2
_ANYBODY: Final = 0.1
# Share of requests whose response the client does not wait for, as if it had died.
_HASTY: Final = 0.2
_PATIENCE_S: Final = 4.0


class GroupClient:
    """A client that finds the coordinator of a group and sends requests to it."""

    def __init__(self, world: ServiceWorld, group: str) -> None:
        self.world = world
        self.group = group

    async def coordinator(self) -> CoordinatingMember | None:
        """Return the group's coordinator according to a random node."""
        world = self.world
        await pause(world.delay_s())
        member = world.anybody()
        if member is None or world.random.random() < _ANYBODY:
            return member
        process = world.processes[member.node_id]
        body = {"coordinator_keys": [self.group], "key_type": 0}
        task = process.spawn(member.ask(ApiKey.FIND_COORDINATOR, _FIND_VERSION, body))
        done, _ = await asyncio.wait([task], timeout=_PATIENCE_S)
        if not done or task.cancelled():
            return None
        coordinator = task.result().coordinators[0]
        assert coordinator.error_code in {ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE}, (
            coordinator
        )
        await pause(world.delay_s())
        return world.member(coordinator.node_id)


class Committer(GroupClient):
    """Commits rising offsets of a group without members, usually each until it succeeds."""

    world: CoordinatorWorld

    async def run(self) -> None:
        world = self.world
        offset = 0
        while not world.is_over:
            await pause(world.random.uniform(0.0, 0.4))
            member = await self.coordinator()
            if member is None:
                continue
            process = world.processes[member.node_id]
            world.committed.asked(self.group, offset)
            copies = 2 if world.random.random() < _DOUBLED else 1
            tasks = [process.spawn(self._commit(member, offset)) for _ in range(copies)]
            is_hasty = world.random.random() < _HASTY
            done, _ = await asyncio.wait(tasks, timeout=0.0 if is_hasty else _PATIENCE_S)
            if any(not task.cancelled() and task.result() for task in done) or is_hasty:
                offset += 1

    async def _commit(self, member: CoordinatingMember, offset: int) -> bool:
        world, group = self.world, self.group
        world.look_at(member)
        epoch = member.epoch_for(group)
        topic = {"name": "t", "partitions": [{"partition_index": 0, "committed_offset": offset}]}
        version = world.random.choice(_COMMIT_VERSIONS)
        answer = await member.ask(
            ApiKey.OFFSET_COMMIT,
            version,
            {"group_id": group, "generation_id_or_member_epoch": -1, "topics": [topic]},
        )
        error = ErrorCode(answer.topics[0].partitions[0].error_code)
        world.count(ApiKey.OFFSET_COMMIT, error)
        if error:
            return False
        assert epoch is not None, "who answers is a coordinator"
        world.committed.committed(group, offset, epoch)
        return True


class Inquirer(GroupClient):
    """Fetches a group's committed offsets from current and former coordinators."""

    world: CoordinatorWorld

    async def run(self) -> None:
        world = self.world
        while not world.is_over:
            await pause(world.random.uniform(0.0, 0.6))
            member = await self.coordinator()
            if member is not None:
                task = world.processes[member.node_id].spawn(self.fetch(member))
                is_hasty = world.random.random() < _HASTY
                await asyncio.wait([task], timeout=0.0 if is_hasty else _PATIENCE_S)

    async def fetch(self, member: CoordinatingMember) -> bool:
        world, group = self.world, self.group
        world.look_at(member)
        epoch = member.epoch_for(group)
        minimum = -1 if epoch is None else world.committed.least(group, epoch)
        version = world.random.choice(_FETCH_VERSIONS)
        topics = [{"name": "t", "partition_indexes": [0]}]
        body: dict[str, Any] = {"group_id": group, "topics": topics}
        if version >= 8:
            body = {"groups": [body]}
        if version >= 7:
            body["require_stable"] = world.random.random() < 0.5
        answer = await member.ask(ApiKey.OFFSET_FETCH, version, body)
        of_group = answer.groups[0] if version >= 8 else answer
        error = ErrorCode(of_group.error_code)
        world.count(ApiKey.OFFSET_FETCH, error)
        if error:
            return False
        (partition,) = of_group.topics[0].partitions
        assert partition.error_code == ErrorCode.NONE, partition
        assert epoch is not None, "who answers is a coordinator"
        world.committed.fetched(group, partition.committed_offset, epoch, minimum)
        return True
