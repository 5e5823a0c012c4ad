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
    from tests.simulation.cluster.moving_groups_world import MovingGroupsWorld

Partition = tuple[bytes, int]

_JOIN: Final = 0
_REBALANCE_MS: Final = 4_000
_PATIENCE_S: Final = 2.0
# The coordinator's 3 s by the fastest clock are 2.1 s.
_SHORTEST_SESSION_S: Final = 2.0
AGAIN: Final = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}
REMOVED: Final = {
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

    world: MovingGroupsWorld

    def __init__(self, world: MovingGroupsWorld, group: str, member_id: str, topic: str) -> None:
        super().__init__(world, group)
        self.member_id = member_id
        self.topic = topic
        self.epoch = _JOIN
        self.owned: frozenset[Partition] = frozenset()
        # Of the last heartbeat that was accepted: its time, and the coordinator's leader epoch.
        self._sent_s = 0.0
        self._term: int | None = None

    async def run(self) -> None:
        while not self.world.is_over:
            await self.take_turn()

    async def take_turn(self) -> None:
        """Send a heartbeat some time later."""
        await pause(self.world.random.uniform(0.1, 0.6))
        member = await self.coordinator()
        if member is None:
            return
        sent_s = self.world.loop.time()
        task = self.world.processes[member.node_id].spawn(self._beat(member))
        done, _ = await asyncio.wait([task], timeout=_PATIENCE_S)
        if not done:
            # A request that begins later would be a repeated one.
            task.cancel()
        elif not task.cancelled():
            self._receive(member, task.result(), sent_s)

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

    def _receive(self, coordinator: CoordinatingMember, answer: Any, sent_s: float) -> None:
        error = ErrorCode(answer.error_code)
        self.world.count(ApiKey.CONSUMER_GROUP_HEARTBEAT, error)
        if error in REMOVED:
            self._check_removal(coordinator, error)
            self.epoch, self.owned = _JOIN, frozenset()
            return
        if error in AGAIN:
            return
        assert error is ErrorCode.NONE, answer
        assert answer.member_epoch >= self.epoch, f"{self.member_id} goes back"
        self.epoch = answer.member_epoch
        self._sent_s = sent_s
        self._term = coordinator.epoch_for(self.group)
        self.world.known_groups.add(self.group)
        if answer.assignment is not None:
            self.owned = frozenset(
                (topic.topic_id, index)
                for topic in answer.assignment.topic_partitions
                for index in topic.partitions
            )

    def _check_removal(self, coordinator: CoordinatingMember, error: ErrorCode) -> None:
        """Check that the current coordinator still has what it or an earlier one acknowledged.

        An earlier coordinator that has not heard of its successor does not have it.
        """
        if self.world.served(coordinator, self.group) is None:
            is_current = self.world.leads(coordinator, self.group)
            is_known = self.group in self.world.known_groups
            assert not (is_current and is_known), f"{self.group} is lost"
            return
        # In the same term, it may also have been removed because it gave up partitions too late.
        has_moved = coordinator.epoch_for(self.group) != self._term
        if has_moved and error is ErrorCode.UNKNOWN_MEMBER_ID:
            silent_s = self.world.loop.time() - self._sent_s
            assert silent_s > _SHORTEST_SESSION_S, f"{self.member_id} is lost"
