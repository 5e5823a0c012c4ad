"""Members of share groups: they fetch, acknowledge, renew, are too late, and disappear.

A member has one connection with a share session to each leader. It acknowledges on the connection
on which it got the records, like the Java client, but sometimes also on the one to a new leader.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.simulation.cluster.moving_members import AGAIN, REMOVED
from tests.simulation.cluster.offset_clients import GroupClient
from tests.support.records.batches import records_in
from tests.support.replicas.broker_cluster import new_session
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.share_partitions.acknowledgement import AckType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.simulation.cluster.coordinating_member import CoordinatingMember
    from tests.simulation.cluster.share_world import ShareWorld
    from tests.simulation.cluster.sharing_member import SharingMember
    from wirebroker.request.session import Session

_HEARTBEAT_VERSION: Final = 1
_BEAT_S: Final = 0.5
_PATIENCE_S: Final = 4.0
_FINAL_EPOCH: Final = -1
# Shares of turns in which a member does something unusual.
_SLOW: Final = 0.1
_VANISHES: Final = 0.03
_CLOSES: Final = 0.05
_ELSEWHERE: Final = 0.05
_RENEWS: Final = 0.1
_HASTY: Final = 0.05
_TYPES: Final = (AckType.ACCEPT,) * 7 + (AckType.RELEASE,) * 2 + (AckType.REJECT,)


class Batch(NamedTuple):
    """Acquired records, and the types with which they are acknowledged."""

    first_offset: int
    last_offset: int
    types: list[int]


class Connection:
    """A connection to one run of a node, with the share session on it.

    Attributes:
        epoch: The session epoch of the next request.
        held: Acquired records by partition.
    """

    def __init__(self, node: SharingMember, session: Session) -> None:
        self.node = node
        self.session = session
        self.epoch = 0
        self.held: dict[int, list[Batch]] = {}

    def next_epoch(self) -> int:
        self.epoch += 1
        return self.epoch - 1

    def take(self) -> dict[int, list[Batch]]:
        held, self.held = self.held, {}
        return held


class ShareConsumer(GroupClient):
    """One share consumer; after it has disappeared, another one with a new id."""

    world: ShareWorld

    def __init__(self, world: ShareWorld, group: str, number: int) -> None:
        super().__init__(world, group)
        self._name = f"{group}-{number}"
        self._life = 0
        self._connections: dict[int, Connection] = {}
        self._begin()

    def _begin(self) -> None:
        self._life += 1
        self.member_id = f"{self._name}-{self._life}"
        self._epoch = 0
        self._beats_at_s = 0.0
        self._assigned: frozenset[tuple[bytes, int]] = frozenset()

    async def run(self) -> None:
        while not self.world.is_over:
            await self.take_turn()
            if self.world.random.random() < _VANISHES:
                self._vanish()

    async def take_turn(self) -> None:
        world = self.world
        await pause(world.random.uniform(0.02, 0.2))
        if world.loop.time() >= self._beats_at_s:
            await self._heartbeat()
        by_node: dict[int, list[int]] = {}
        for _, index in sorted(self._assigned):
            member = world.taken_for_leader(index)
            if member is not None:
                by_node.setdefault(member.node_id, []).append(index)
        for node_id, indexes in by_node.items():
            await self._poll(node_id, indexes)

    # -- membership ------------------------------------------------------------------------------

    async def _heartbeat(self) -> None:
        node = await self.coordinator()
        if node is None:
            return
        body = {
            "group_id": self.group,
            "member_id": self.member_id,
            "member_epoch": self._epoch,
            "subscribed_topic_names": ["t"],
        }
        task = self.world.processes[node.node_id].spawn(self._beat(node, body))
        done, _ = await asyncio.wait([task], timeout=_PATIENCE_S)
        if done and not task.cancelled():
            self._receive(task.result())

    async def _beat(self, node: CoordinatingMember, body: Mapping[str, Any]) -> Any:
        return await node.ask(ApiKey.SHARE_GROUP_HEARTBEAT, _HEARTBEAT_VERSION, body)

    def _receive(self, answer: Any) -> None:
        error = ErrorCode(answer.error_code)
        self.world.count(ApiKey.SHARE_GROUP_HEARTBEAT, error)
        if error in REMOVED:
            self._epoch, self._assigned = 0, frozenset()
            return
        if error in AGAIN:
            return
        assert error is ErrorCode.NONE, answer
        assert answer.member_epoch >= self._epoch, f"{self.member_id} goes back"
        self._epoch = answer.member_epoch
        self._beats_at_s = self.world.loop.time() + _BEAT_S
        if answer.assignment is not None:
            self._assigned = frozenset(
                (topic.topic_id, index)
                for topic in answer.assignment.topic_partitions
                for index in topic.partitions
            )

    def _vanish(self) -> None:
        """Disappear with all locks; the nodes learn it, or never do."""
        is_noticed = self.world.random.random() < 0.5
        for connection in self._connections.values():
            if is_noticed:
                self.world.disconnect(connection.node, connection.session, self.member_id)
        self._connections.clear()
        self._begin()

    # -- records ---------------------------------------------------------------------------------

    async def _poll(self, node_id: int, indexes: list[int]) -> None:
        """Fetch from a node, process, and acknowledge now or with the next fetch."""
        world, random = self.world, self.world.random
        connection = self._connections.get(node_id)
        if connection is None or connection.node is not world.cluster.members.get(node_id):
            connection = self._connect(node_id)
        if connection is None:
            return
        if not await self._fetch(connection, indexes):
            return
        if not connection.held:
            return
        await pause(random.uniform(1.0, 4.0) if self._may(_SLOW) else random.uniform(0.0, 0.3))
        if self._may(_RENEWS):
            await self._renew(connection)
            await pause(random.uniform(0.0, 1.5))
        if self._may(_ELSEWHERE) and len(self._connections) > 1:
            other = random.choice(list(self._connections.values()))
            other.held, connection.held = connection.take(), other.take()
        if world.is_over or self._may(0.5):
            await self._acknowledge(connection)

    def _may(self, share: float) -> bool:
        """Return whether something that happens in a share of all turns happens now."""
        return not self.world.is_over and self.world.random.random() < share

    def _connect(self, node_id: int) -> Connection | None:
        node = self.world.sharing_member(node_id)
        self._connections.pop(node_id, None)
        if node is None:
            return None
        session = new_session(f"connection-{self.world.next_number()}")
        connection = self._connections[node_id] = Connection(node, session)
        return connection

    def _drop(self, connection: Connection) -> None:
        self._connections.pop(connection.node.node_id, None)
        self.world.disconnect(connection.node, connection.session, self.member_id)

    async def _fetch(self, connection: Connection, indexes: list[int]) -> bool:
        random = self.world.random
        acknowledged = {} if connection.epoch == 0 else connection.take()
        closes = connection.epoch > 0 and self._may(_CLOSES)
        body = {
            **self._head(connection, closes=closes),
            "max_wait_ms": random.choice([0, 100, 400]),
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": random.choice([1, 3, 20]),
            "batch_size": random.choice([1, 5, 500]),
            "share_acquire_mode": random.choice([0, 0, 1]),
            "topics": _topics(() if closes else indexes, acknowledged),
        }
        answer = await self._ask(connection, ApiKey.SHARE_FETCH, body, acknowledged)
        if answer is None or answer.error_code or closes:
            if answer is not None:
                self.world.count(ApiKey.SHARE_FETCH, ErrorCode(answer.error_code))
            self._drop(connection)
            return False
        for topic in answer.responses:
            for result in topic.partitions:
                self.world.count(ApiKey.SHARE_FETCH, ErrorCode(result.error_code))
                if result.acquired_records:
                    self._hold(connection, result)
        return True

    def _head(self, connection: Connection, *, closes: bool = False) -> dict[str, Any]:
        return {
            "group_id": self.group,
            "member_id": self.member_id,
            "share_session_epoch": _FINAL_EPOCH if closes else connection.next_epoch(),
        }

    def _hold(self, connection: Connection, result: Any) -> None:
        """Choose how to acknowledge the records of a response."""
        world = self.world
        values = {
            record.offset: record.value
            for header, record in records_in(bytes(result.records or b""))
            if not header.is_control
        }
        held = connection.held.setdefault(result.partition_index, [])
        for acquired in result.acquired_records:
            wanted = AckType.ACCEPT if world.is_over else world.random.choice(_TYPES)
            types: list[int] = []
            for offset in range(acquired.first_offset, acquired.last_offset + 1):
                types.append(wanted if offset in values else AckType.GAP)
                world.check_visible(self.group, values.get(offset))
            held.append(Batch(acquired.first_offset, acquired.last_offset, types))
        held.sort()

    async def _renew(self, connection: Connection) -> None:
        renewals = {
            index: [batch._replace(types=[AckType.RENEW] * len(batch.types)) for batch in batches]
            for index, batches in connection.held.items()
        }
        body = {
            **self._head(connection),
            "is_renew_ack": True,
            "topics": _topics((), renewals),
        }
        await self._send_acknowledgements(connection, body, renewals)

    async def _acknowledge(self, connection: Connection) -> None:
        acknowledged = connection.take()
        if acknowledged and connection.epoch > 0:
            body = {**self._head(connection), "topics": _topics((), acknowledged)}
            await self._send_acknowledgements(connection, body, acknowledged)

    async def _send_acknowledgements(
        self, connection: Connection, body: Mapping[str, Any], sent: Mapping[int, list[Batch]]
    ) -> None:
        answer = await self._ask(connection, ApiKey.SHARE_ACKNOWLEDGE, body, sent)
        if answer is None or answer.error_code:
            if answer is not None:
                self.world.count(ApiKey.SHARE_ACKNOWLEDGE, ErrorCode(answer.error_code))
            self._drop(connection)
            return
        for topic in answer.responses:
            for result in topic.partitions:
                self.world.count(ApiKey.SHARE_ACKNOWLEDGE, ErrorCode(result.error_code))

    async def _ask(
        self,
        connection: Connection,
        key: ApiKey,
        body: Mapping[str, Any],
        sent: Mapping[int, list[Batch]],
    ) -> Any:
        """Return the response, or None if it does not arrive in time."""
        world, node = self.world, connection.node
        await pause(world.delay_s())
        process = world.processes.get(node.node_id)
        if process is None or world.cluster.members.get(node.node_id) is not node:
            return None
        types = {index: _by_offset(batches) for index, batches in sent.items()}
        request = world.new_request(key, body, types)
        task = process.spawn(world.serve(node, connection.session, request))
        patience_s = 0.0 if self._may(_HASTY) else _PATIENCE_S
        done, _ = await asyncio.wait([task], timeout=patience_s)
        return task.result() if done and not task.cancelled() else None


def _by_offset(batches: Iterable[Batch]) -> dict[int, int]:
    return {
        offset: ack_type
        for batch in batches
        for offset, ack_type in zip(
            range(batch.first_offset, batch.last_offset + 1), batch.types, strict=True
        )
    }


def _topics(indexes: Iterable[int], held: Mapping[int, list[Batch]]) -> list[dict[str, Any]]:
    names = ("first_offset", "last_offset", "acknowledge_types")
    partitions = [
        {
            "partition_index": index,
            "acknowledgement_batches": [
                dict(zip(names, _shortened(batch), strict=True)) for batch in held.get(index, ())
            ],
        }
        for index in sorted({*indexes, *held})
    ]
    return [{"topic_id": b"t" * 16, "partitions": partitions}] if partitions else []


def _shortened(batch: Batch) -> Batch:
    """Return a batch whose offsets share one type with that type alone."""
    return batch if len(set(batch.types)) > 1 else batch._replace(types=batch.types[:1])
