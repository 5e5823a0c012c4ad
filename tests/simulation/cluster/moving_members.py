"""Members of consumer groups (KIP-848) whose coordinators move between nodes.

A member gives up partitions immediately. After a request without a response it reports everything
to whichever node coordinates the group by then.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.cluster.offset_clients import GroupClient
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from tests.simulation.cluster.coordinating_member import CoordinatingMember
    from tests.simulation.cluster.coordinator_world import CoordinatorWorld

Partition = tuple[bytes, int]

_JOIN: Final = 0
_REBALANCE_MS: Final = 4_000
_PATIENCE_S: Final = 2.0
_AGAIN: Final = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}
_REMOVED: Final = {
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.GROUP_ID_NOT_FOUND,
}


class MovingMember(GroupClient):
    """One member.

    Attributes:
        epoch: That of its last response; 0 while it joins.
        owned: The partitions that it reads.
    """

    def __init__(self, world: CoordinatorWorld, group: str, member_id: str, topic: str) -> None:
        super().__init__(world, group)
        self.member_id = member_id
        self.topic = topic
        self.epoch = _JOIN
        self.owned: frozenset[Partition] = frozenset()

    async def run(self) -> None:
        while not self.world.is_over:
            await self.take_turn()

    async def take_turn(self) -> None:
        """Send a heartbeat some time later."""
        await pause(self.world.random.uniform(0.1, 0.6))
        member = await self.coordinator()
        if member is None:
            return
        task = self.world.processes[member.node_id].spawn(self._beat(member))
        done, _ = await asyncio.wait([task], timeout=_PATIENCE_S)
        if not done:
            # A request that begins later would be a repeated one.
            task.cancel()
        elif not task.cancelled():
            self._receive(task.result())

    async def _beat(self, member: CoordinatingMember) -> Any:
        indexes: dict[bytes, list[int]] = {}
        for topic_id, index in sorted(self.owned):
            indexes.setdefault(topic_id, []).append(index)
        body = {
            "group_id": self.group,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "rebalance_timeout_ms": _REBALANCE_MS,
            "subscribed_topic_names": [self.topic],
            "topic_partitions": [
                {"topic_id": topic_id, "partitions": partitions}
                for topic_id, partitions in indexes.items()
            ],
        }
        return await member.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, body)

    def _receive(self, answer: Any) -> None:
        error = ErrorCode(answer.error_code)
        self.world.count(ApiKey.CONSUMER_GROUP_HEARTBEAT, error)
        if error in _REMOVED:
            self.epoch, self.owned = _JOIN, frozenset()
            return
        if error in _AGAIN:
            return
        assert error is ErrorCode.NONE, answer
        assert answer.member_epoch >= self.epoch, f"{self.member_id} goes back"
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = frozenset(
                (topic.topic_id, index)
                for topic in answer.assignment.topic_partitions
                for index in topic.partitions
            )
