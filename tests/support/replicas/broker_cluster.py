"""Nodes with replicas, fetchers and handlers, and one controller, without sockets or processes.

    Cluster    the controller's rules over an image; each node follows the new images
    Member     a node: ReplicaManager, Replication and the handlers for data, over memory links

Nodes exchange real Kafka requests through the real handlers. A killed node leaves its files as they
are, as after kill -9, and restarts with them.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.support.coordinators.kit import image_of
from tests.support.records.batches import batch
from tests.support.replicas.memory_peers import Peers
from wirebroker.api.registry import REGISTRY
from wirebroker.base.clock import SystemClock, in_one_go, pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.messages import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.config import Config
from wirebroker.coordinator.controller.brokers.broker_registration import fence_broker
from wirebroker.coordinator.controller.controller import Controller, refusal
from wirebroker.coordinator.controller.image.cluster_image import Endpoint, PartitionImage
from wirebroker.coordinator.controller.image.image_change import change_between
from wirebroker.coordinator.operation import complete
from wirebroker.coordinator.outcome import Moment
from wirebroker.net.client.settings import PeerAddress
from wirebroker.quorum.channel.broker_lifecycle import BrokerLifecycle
from wirebroker.quorum.channel.controller_channel import LocalChannel
from wirebroker.quotas.client_quotas import ClientQuotas
from wirebroker.replica.replica_manager import ReplicaManager
from wirebroker.replication.replication import Replication
from wirebroker.request.fetch_sessions import FetchSessions
from wirebroker.request.request import Request
from wirebroker.request.session import Session
from wirebroker.storage.files import Files
from wirebroker.storage.log_directory import LogDirectory

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
    from pathlib import Path

    from tests.support.replicas.memory_peers import Asked, Peer
    from wirebroker.base.clock import Clock
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.image.image_change import ImageChange
    from wirebroker.coordinator.controller.requests.request import ControllerRequest
    from wirebroker.net.client.transport import Dialer
    from wirebroker.replica.partition import Partition

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
TOPIC_ID = b"t" * 16
# Short waits, so that tests run quickly.
QUICK = {
    "replica.fetch.wait.max.ms": "50",
    "replica.fetch.backoff.ms": "200",
    "replica.lag.time.max.ms": "400",
}
_LISTENER = "PLAINTEXT"
_EVERYTHING = 1 << 40  # an offset after all metadata
_SERVED = (ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.PRODUCE, ApiKey.OFFSET_FOR_LEADER_EPOCH)

for _module in ("data.fetch", "data.list_offsets", "data.produce", "data.offset_for_leader_epoch"):
    importlib.import_module(f"wirebroker.api.{_module}")


class Member:
    """One run of a node, from its start to its stop or kill.

    Attributes:
        peer: Its address for other nodes.
        heard: The image that it has applied.
        is_deaf: Whether it ignores new images for now.
    """

    def __init__(self, cluster: Cluster, node_id: int, path: str, files: Files, peer: Peer) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.path = path
        self.files = files
        self.peer = peer
        self.heard: ClusterImage = cluster.image
        self.is_deaf = False
        self._hearing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        controller: Any = cluster  # its rules, without a log
        self._channel = LocalChannel(controller)
        metadata: Any = SimpleNamespace(image=SimpleNamespace(offset=1 << 40, features={}))
        self.lifecycle = BrokerLifecycle(
            self._channel, metadata, node_id=node_id, new_uuid=cluster.new_uuid
        )
        self.directory = LogDirectory.open(path, files, node_id=node_id)
        # The directory id that `create_topic` assigns.
        self.directory.directory_id = bytes([node_id]) * 16
        self.replicas: ReplicaManager
        self.replication: Replication
        self.broker: Any

    async def start(self) -> None:
        """Register, open the logs, follow the leaders, and serve."""
        cluster = self.cluster
        config, clock = cluster.config, cluster.clock_of(self.node_id)
        self.directory.remove_clean_shutdown_marker()
        await self.tell(self._register)
        self.heard = cluster.image
        self.replicas = ReplicaManager(
            [self.directory], self.files, config=config, clock=clock, node_id=self.node_id
        )
        await self.replicas.load(self.heard)
        self.replication = Replication(
            config,
            replicas=self.replicas,
            lifecycle=self.lifecycle,
            channel=self._channel,
            image=lambda: self.heard,
            clock=clock,
            dialer=cluster.dialer(self.node_id),
            rng=cluster.random,
        )
        self.broker = SimpleNamespace(
            config=config,
            clock=clock,
            node_id=self.node_id,
            replicas=self.replicas,
            isr_changes=self.replication.isr_changes,
            metadata=self,
            fetch_sessions=FetchSessions(1000, cluster.random),
            quotas=ClientQuotas(config, clock),
            authorization=None,
            replication_quotas=self.replication.quotas,
            is_stopping=False,
            auto_listeners=frozenset(),
            transaction_verifier=None,
        )
        for key in _SERVED:
            self.peer.answers[key] = self._begin
        self.begin()
        # Not before: the handlers were those of the former run.
        self.peer.refuses = None
        self.replication.start()
        cluster.members[self.node_id] = self
        await self.tell(self.lifecycle.unfence)
        await self.hear()

    async def tell(self, say: Callable[[], Awaitable[None]]) -> None:
        """Send a request to the controller; subclasses can refuse this run."""
        await say()

    async def _register(self) -> None:
        await self.lifecycle.register(
            cluster_id=CLUSTER_ID,
            endpoints=[Endpoint(_LISTENER, f"node-{self.node_id}", 9092, 0)],
            log_directories=[self.directory.directory_id],
            rack=f"rack-{self.node_id}",
            previous_broker_epoch=self.directory.previous_broker_epoch,
        )

    def begin(self) -> None:
        """Start parts that need the replicas (a hook for subclasses)."""

    async def apply(self, change: ImageChange) -> None:
        await self.replicas.apply(change, self.heard)

    @property
    def image(self) -> ClusterImage:
        return self.heard

    async def hear(self) -> None:
        """Apply the newest image."""
        async with self._hearing:
            while not self.is_deaf and self.heard is not self.cluster.image:
                before, self.heard = self.heard, self.cluster.image
                await self.apply(change_between(before, self.heard))

    def kill(self) -> None:
        """Disconnect as a kill would; `bury` releases the rest."""
        del self.cluster.members[self.node_id]
        self.peer.refuses = ConnectionRefusedError("it is dead")
        for link in self.peer.links:
            link.drop()
        for task in self._tasks:
            task.cancel()

    async def stop(self) -> None:
        """Shut down cleanly, after the leaderships have moved.

        Raises:
            KafkaError: The controller refused the shutdown; the node still runs.
        """
        await self.lifecycle.shut_down()
        self.kill()
        self.broker.is_stopping = True
        await self.replication.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.replicas.until_settled()
        for directory in self.replicas.directories:
            directory.close(broker_epoch=self.lifecycle.broker_epoch)
        self.directory.close()
        self.files.close_all()

    async def bury(self) -> None:
        self.broker.is_stopping = True
        await self.replication.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.replicas.until_settled()
        self.directory.close()
        self.files.close_all()

    def partition(self, name: str = "t", index: int = 0) -> Partition:
        return self.replicas.find(name, b"", by_id=False)[0][index]

    async def ask(
        self, key: ApiKey, version: int, body: Mapping[str, Any], session: Session | None = None
    ) -> Any:
        """Return the decoded response to a request of a connection, by default a new one."""
        frame = memoryview(bytearray(encode_request(key, version, body)))
        response = await self._answer(key, version, frame, 0, session or new_session("c"))
        return decode_response(key, version, response)

    async def produce(
        self, value: bytes, *, index: int = 0, timeout_ms: int = 5_000, **header: Any
    ) -> int:
        """Append a record with acks=all and return its offset; raise the error of the response.

        Args:
            value: The record's value.
            index: The partition.
            timeout_ms: Timeout of the replication.
            header: Fields of the batch: producer_id, producer_epoch, base_sequence.
        """
        answer = await self.ask(
            ApiKey.PRODUCE,
            12,
            {
                "acks": -1,
                "timeout_ms": timeout_ms,
                "topic_data": [
                    {
                        "name": "t",
                        "partition_data": [{"index": index, "records": batch(value, **header)}],
                    }
                ],
            },
        )
        (partition,) = answer.responses[0].partition_responses
        if partition.error_code:
            raise KafkaError(ErrorCode(partition.error_code))
        return int(partition.base_offset)

    def _begin(self, request: Asked) -> None:
        task = asyncio.create_task(self._serve(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, request: Asked) -> None:
        frame = memoryview(bytearray(request.frame))
        request.answer_bytes(
            await self._answer(
                request.key, request.version, frame, request.position, new_session("c")
            )
        )

    async def _answer(
        self, key: ApiKey, version: int, frame: memoryview, position: int, session: Session
    ) -> bytes:
        request = Request(key, version, 7, "client", frame, position, session)
        [handler] = [candidate for candidate in REGISTRY.handlers() if candidate.key is key]
        reply: Any
        if handler.is_raw:
            reply = handler.function(self.broker, request)
        else:
            body = decode_request(key, version, frame, position)
            reply = handler.function(self.broker, request, body)
        if inspect.isawaitable(reply):
            reply = await reply
        if not handler.is_raw:
            return encode_response(key, version, reply)
        return b"".join(
            bytes(part) if isinstance(part, bytes | bytearray | memoryview) else part.read()
            for part in reply
        )


def new_session(connection_id: str) -> Session:
    """Return the session of a new connection."""
    return Session(
        connection_id=connection_id,
        peer="peer:1",
        listener_name=_LISTENER,
        local_host="here",
        local_port=9092,
    )


class Cluster:
    """The controller's image, and the nodes that follow it.

    Attributes:
        member_kind: The class of nodes.
        members: The running nodes by id.
        decided: The results of AlterPartition: (partition index, ISR).
    """

    member_kind: type[Member] = Member

    def __init__(
        self,
        path: Path | None,
        *,
        node_ids: Iterable[int] = (1, 2, 3),
        clock: Clock | None = None,
        seed: int = 7,
        new_files: Callable[[int], Files] = lambda _: Files(),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.config = Config({"log.dirs": "data", **QUICK, **(settings or {})})
        self.clock = clock or SystemClock()
        self.random = random.Random(seed)
        self.node_ids = tuple(node_ids)
        self.rules = Controller(self.config, node_id=100, cluster_id=CLUSTER_ID)
        self.image = image_of(
            metadata_record(RecordType.FEATURE_LEVEL, name="metadata.version", feature_level=30)
        )
        self.rules.sessions.begin(self.image, 0)
        self.members: dict[int, Member] = {}
        self.decided: list[tuple[int, list[int]]] = []
        self._path = path
        self._new_files = new_files
        self._peers = Peers(*(PeerAddress(f"node-{node_id}", 9092) for node_id in self.node_ids))
        self._telling: set[asyncio.Task[None]] = set()

    def new_uuid(self) -> bytes:
        return self.random.randbytes(16)

    def clock_of(self, node_id: int) -> Clock:
        del node_id
        return self.clock

    def dialer(self, node_id: int) -> Dialer:
        del node_id
        return self._peers

    async def __aenter__(self) -> Cluster:
        for node_id in self.node_ids:
            await self.start(node_id)
        return self

    async def __aexit__(self, *_: object) -> None:
        for member in list(self.members.values()):
            member.kill()
            await member.bury()
        await asyncio.gather(*self._telling)

    def __getitem__(self, node_id: int) -> Member:
        return self.members[node_id]

    def place(self, node_id: int) -> str:
        return f"{self._path or '/data'}/{node_id}"

    async def start(self, node_id: int) -> Member:
        """Start a node with its existing files."""
        peer = self._peers[PeerAddress(f"node-{node_id}", 9092)]
        member = self.member_kind(
            self, node_id, self.place(node_id), self._new_files(node_id), peer
        )
        await member.start()
        return member

    async def kill(self, node_id: int, *, is_noticed: bool = True) -> None:
        """Kill a node; if `is_noticed`, the controller fences it."""
        member = self.members[node_id]
        member.kill()
        await member.bury()
        if is_noticed:
            self.fence(node_id)

    # -- the controller ------------------------------------------------------------------------

    def fence(self, node_id: int) -> None:
        """Fence a node: it leaves all ISRs and loses its leaderships."""
        self.write(*complete(fence_broker(self.image, self.config, node_id)).records)
        self.rules.sessions.begin(self.image, 0)  # forgets all sessions

    def hear_of_all(self) -> None:
        """Record that all running nodes have applied the metadata, in place of their heartbeats."""
        for node_id, member in self.members.items():
            epoch = member.lifecycle.broker_epoch
            self.rules.sessions.touch(node_id, epoch, 0, metadata_offset=_EVERYTHING)

    def forget_sessions(self) -> None:
        """End the broker sessions of stopped nodes."""
        self.rules.sessions.begin(self.image, 0)

    async def handle(self, request: ControllerRequest) -> dict[str, Any]:
        try:
            result = complete(self.rules.operation(request)(self.image, Moment(0, 0)))
        except KafkaError as error:
            return in_one_go(refusal(request, error))
        if request.key is ApiKey.ALTER_PARTITION:
            self.decided += [
                (partition["partition_index"], partition["isr"])
                for topic in result.response["topics"]
                for partition in topic["partitions"]
                if "isr" in partition
            ]
        self.write(*result.records)
        await pause(0)
        return result.response

    def write(self, *records: Any) -> None:
        if not records:
            return
        self.image = image_of(*records, base=self.image)
        for member in list(self.members.values()):
            self._tell(member)

    def _tell(self, member: Member) -> None:
        self._spawn(member.hear())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work in a task that is awaited when the cluster closes."""
        task = asyncio.create_task(work)
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    def create_topic(
        self, *assignments: tuple[int, ...], name: str = "t", topic_id: bytes = TOPIC_ID
    ) -> None:
        """Create a topic; the first replica of each assignment leads."""
        self.write(
            metadata_record(RecordType.TOPIC, name=name, topic_id=topic_id),
            *(
                metadata_record(
                    RecordType.PARTITION,
                    partition_id=index,
                    topic_id=topic_id,
                    replicas=list(replicas),
                    isr=list(replicas),
                    leader=replicas[0],
                    leader_epoch=0,
                    partition_epoch=0,
                    directories=[bytes([replica]) * 16 for replica in replicas],
                )
                for index, replicas in enumerate(assignments)
            ),
        )

    def set_config(self, name: str, value: str, topic: str = "t") -> None:
        record = metadata_record(
            RecordType.CONFIG, resource_type=2, resource_name=topic, name=name, value=value
        )
        self.write(record)

    def elect(
        self, leader: int, *, index: int = 0, isr: Iterable[int] | None = None, topic: str = "t"
    ) -> None:
        change = {
            "partition_id": index,
            "topic_id": self.image.topics[topic].topic_id,
            "leader": leader,
            "isr": None if isr is None else list(isr),
        }
        self.write(metadata_record(RecordType.PARTITION_CHANGE, **change))

    def state(self, index: int = 0, topic: str = "t") -> PartitionImage:
        partition = self.image.partition(topic, index)
        assert partition is not None
        return partition

    def leader(self, index: int = 0) -> Member:
        return self.members[self.state(index).leader]


def stored(partition: Partition, end: int | None = None) -> bytes:
    """Return the stored bytes of a log's batches below `end`, by default all."""
    log = partition.log
    end = log.log_end_offset if end is None else end
    pieces: list[bytes] = []
    offset = log.log_start_offset
    while offset < end:
        log_slice = log.read(offset, 1, up_to_offset=end, min_one=True).slice
        if log_slice is None:
            break
        piece = bytes(log_slice.read())
        pieces.append(piece)
        offset = int.from_bytes(piece[:8]) + int.from_bytes(piece[23:27]) + 1
    return b"".join(pieces)
