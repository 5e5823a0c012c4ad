"""Links between nodes and their controller that delay, lose and repeat messages.

Source: faults of brokers and controllers as in tests/simulation/cluster/replica_world.py.
"""

from __future__ import annotations

from contextvars import Context
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.machine.loop import SimulatedClock
from tests.support.replicas.broker_cluster import Cluster, Member
from tests.support.replicas.memory_peers import Link
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.net.client.settings import PeerAddress

if TYPE_CHECKING:
    from tests.simulation.cluster.replica_world import ReplicaWorld
    from tests.simulation.machine.loop import SkewedClock
    from tests.support.replicas.memory_peers import Peer
    from wirebroker.coordinator.controller.image.cluster_image import PartitionImage, TopicImage
    from wirebroker.coordinator.controller.requests.request import ControllerRequest
    from wirebroker.net.client.transport import Receiver, Transport

# Maximum delay of a request on a hanging link: leaders and nodes change meanwhile.
_LATEST_S: Final = 8.0
_LATE_COPIES: Final = 3
_SETTINGS = {
    "min.insync.replicas": "2",
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.wait.max.ms": "300",
}


class _Wire(Link):
    """A link with delays that keeps the order of its data."""

    def __init__(self, peer: Peer, receiver: Receiver, world: ReplicaWorld, ends: tuple[int, int]):
        super().__init__(peer, receiver)
        self._world = world
        self._ends = ends
        self._free_at = [0.0, 0.0]

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._carry(1, self.arrive, bytes(data))

    def send(self, data: bytes, *, piece: int = 1 << 20) -> None:
        self._carry(0, self._hand_over, data, piece)

    def _hand_over(self, data: bytes, piece: int) -> None:
        super().send(data, piece=piece)

    def _carry(self, to: int, deliver: Any, *args: Any) -> None:
        world = self._world
        if self.is_closed or not world.may_pass(*self._ends):
            return  # lost: the sender times out
        if self._ends[1 - to] not in world.processes:
            return  # from a `finally` block of a node that is being killed
        if world.random.random() < world.break_rate:
            self.drop(ConnectionResetError("the weather"))
            return
        now = world.loop.time()
        self._free_at[to] = max(self._free_at[to], now + world.delay_s())
        process = world.processes.get(self._ends[to])
        if process is not None:
            process.call_later(self._free_at[to] - now, self._deliver, deliver, args)

    def _deliver(self, deliver: Any, args: Any) -> None:
        if not self.is_closed:
            deliver(*args)


class _Dialer:
    def __init__(self, world: ReplicaWorld, node_id: int) -> None:
        self._world = world
        self._node_id = node_id

    async def dial(self, host: str, port: int, receiver: Receiver) -> Transport:
        world = self._world
        other = int(host.removeprefix("node-"))
        await pause(world.delay_s())
        peer = world.cluster.peer(other)
        if peer.refuses is not None or not world.may_pass(self._node_id, other):
            raise ConnectionRefusedError("no listener")
        del port
        link = _Wire(peer, receiver, world, (self._node_id, other))
        peer.links.append(link)
        return link


class StormyCluster(Cluster):
    """A cluster whose controller is reached over faulty links.

    Attributes:
        world: The schedule.
        leaders: The leader of each partition in each leader epoch.
    """

    def __init__(self, world: ReplicaWorld, node_ids: range) -> None:
        self.world = world
        self.member_kind = world.member_kind
        super().__init__(
            None,
            node_ids=node_ids,
            clock=SimulatedClock(world.loop),
            seed=world.random.getrandbits(32),
            new_files=world.new_files,
            settings={**_SETTINGS, **world.settings},
        )
        self.leaders: dict[tuple[str, int, int], int] = {}

    def clock_of(self, node_id: int) -> SkewedClock:
        return self.world.clocks[node_id]

    def dialer(self, node_id: int) -> _Dialer:
        return _Dialer(self.world, node_id)

    def peer(self, node_id: int) -> Peer:
        return self._peers[PeerAddress(f"node-{node_id}", 9092)]

    async def handle(self, request: ControllerRequest) -> dict[str, Any]:
        world = self.world
        await pause(world.delay_s())
        if world.random.random() < world.lost_rate:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        if request.key is ApiKey.ALTER_PARTITION and world.random.random() < world.late_rate:
            for _ in range(_LATE_COPIES):
                # Outside of any process: the sender may be dead by then.
                late = self._handle_late(request)
                world.loop.call_soon(self._spawn, late, context=Context())
        response = await super().handle(request)
        if world.random.random() < world.doubled_rate:
            await pause(world.delay_s())
            response = await super().handle(request)
        await pause(world.delay_s())
        if world.random.random() < world.lost_rate:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        return response

    async def _handle_late(self, request: ControllerRequest) -> None:
        """Handle a request again, long after its sender's timeout, as if its link had hung."""
        await pause(self.world.random.uniform(0.2, _LATEST_S))
        await super().handle(request)

    def write(self, *records: Any) -> None:
        topics_before = self.image.topics
        super().write(*records)
        self.world.note_states()
        for name in self.world.topics():
            topic = self.image.topics.get(name)
            for partition in () if topic is None else topic.partitions.values():
                self._note(name, partition, topics_before.get(name))

    def _note(self, name: str, partition: PartitionImage, before: TopicImage | None) -> None:
        if partition.leader >= 0:
            leader = self.leaders.setdefault(
                (name, partition.index, partition.leader_epoch), partition.leader
            )
            assert leader == partition.leader, "two leaders in one epoch"
        if before is not None:
            joined = set(partition.isr) - set(before.partitions[partition.index].isr)
            self.world.upset(name, partition.index, joined)

    def _tell(self, member: Member) -> None:
        world = self.world
        process = world.processes.get(member.node_id)
        if process is not None:
            slowness = world.random.choice([1, 1, 1, 20])
            process.call_later(world.delay_s() * slowness, world.hear, process, member)
