"""Some nodes with replicas, fetchers and handlers, and one controller: no socket, no process.

    Cluster    the controller's rules over an image; each node hears of each new image
    Member     ReplicaManager, Replication, and what of the API moves records, over links in memory

Requests between nodes are Kafka's own, taken to the real handlers. A node that is killed leaves its
files as they are; it comes back with them, as after kill -9.
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
from wirebroker.coordinator.controller.controller import Controller, ControllerRequest, refusal
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
    from wirebroker.net.client.transport import Dialer
    from wirebroker.replica.partition import Partition

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
TOPIC_ID = b"t" * 16
# So that what a test waits for comes soon; a request for what is there waits no longer.
QUICK = {
    "replica.fetch.wait.max.ms": "50",
    "replica.fetch.backoff.ms": "200",
    "replica.lag.time.max.ms": "400",
}
_LISTENER = "PLAINTEXT"
_EVERYTHING = 1 << 40  # an offset behind all metadata
_SERVED = (ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.PRODUCE, ApiKey.OFFSET_FOR_LEADER_EPOCH)

for _module in ("data.fetch", "data.list_offsets", "data.produce", "data.offset_for_leader_epoch"):
    importlib.import_module(f"wirebroker.api.{_module}")


class Member:
    """One life of a node.

    Attributes:
        peer: What others reach it by.
        heard: The image that it has followed.
        is_deaf: Whether it hears of no new images for now.
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
        # As the topics' records name it.
        self.directory.directory_id = bytes([node_id]) * 16
        self.replicas: ReplicaManager
        self.replication: Replication
        self.broker: Any

    async def start(self) -> None:
        """Register, open what is there, follow, and serve."""
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
        self.replication.start()
        cluster.members[self.node_id] = self
        await self.tell(self.lifecycle.unfence)
        await self.hear()

    async def tell(self, say: Callable[[], Awaitable[None]]) -> None:
        """Say something to the controller; who does not hear it refuses this life."""
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
        """Begin what stands on the replicas: `broker` has all else."""

    async def apply(self, change: ImageChange) -> None:
        """Follow a change of the metadata, to what was heard last."""
        await self.replicas.apply(change, self.heard)

    @property
    def image(self) -> ClusterImage:
        """As the handlers read it of the metadata."""
        return self.heard

    async def hear(self) -> None:
        """Follow the metadata."""
        async with self._hearing:
            while not self.is_deaf and self.heard is not self.cluster.image:
                before, self.heard = self.heard, self.cluster.image
                await self.apply(change_between(before, self.heard))

    def kill(self) -> None:
        """End as by a kill; `bury` waits for what is left."""
        del self.cluster.members[self.node_id]
        self.peer.refuses = ConnectionRefusedError("it is dead")
        for link in self.peer.links:
            link.drop()
        for task in self._tasks:
            task.cancel()

    async def stop(self) -> None:
        """End as by a clean stop: others lead first, and the next life says that nothing is lost.

        Raises:
            KafkaError: The controller has not let it go; nothing has ended then.
        """
        await self.lifecycle.shut_down()
        self.kill()
        self.broker.is_stopping = True
        await self.replication.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.replicas.until_settled()
        for each in self.replicas.directories:
            each.close(broker_epoch=self.lifecycle.broker_epoch)
        self.directory.close()
        self.files.close_all()

    async def bury(self) -> None:
        """Let go of what a killed node held."""
        self.broker.is_stopping = True
        await self.replication.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.replicas.until_settled()
        self.directory.close()
        self.files.close_all()

    def partition(self, name: str = "t", index: int = 0) -> Partition:
        """Return its replica."""
        return self.replicas.find(name, b"", by_id=False)[0][index]

    async def ask(self, key: ApiKey, version: int, body: Mapping[str, Any]) -> Any:
        """Return the decoded answer to a request of nobody in particular."""
        frame = memoryview(bytearray(encode_request(key, version, body)))
        return decode_response(key, version, await self._answer(key, version, frame, 0))

    async def produce(
        self, value: bytes, *, index: int = 0, timeout_ms: int = 5_000, **header: Any
    ) -> int:
        """Append a record with acks=all; return its offset, or raise the error.

        Args:
            value: The record's.
            index: Of the partition.
            timeout_ms: How long replicas are waited for.
            header: Of its batch: producer_id, producer_epoch, base_sequence.
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
        (found,) = answer.responses[0].partition_responses
        if found.error_code:
            raise KafkaError(ErrorCode(found.error_code))
        return int(found.base_offset)

    def _begin(self, asked: Asked) -> None:
        task = asyncio.create_task(self._serve(asked))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, asked: Asked) -> None:
        frame = memoryview(bytearray(asked.frame))
        asked.answer_bytes(await self._answer(asked.key, asked.version, frame, asked.position))

    async def _answer(self, key: ApiKey, version: int, frame: memoryview, position: int) -> bytes:
        session = Session(
            connection_id="c",
            peer="peer:1",
            listener_name=_LISTENER,
            local_host="here",
            local_port=9092,
        )
        request = Request(key, version, 7, "client", frame, position, session)
        [handler] = [each for each in REGISTRY.handlers() if each.key is key]
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
            bytes(each) if isinstance(each, bytes | bytearray | memoryview) else each.read()
            for each in reply
        )


class Cluster:
    """The controller's image, and the nodes that hear of it.

    Attributes:
        member_kind: What a life of a node is.
        members: Who lives, by node id.
        decided: What AlterPartition was decided: (partition index, ISR).
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
        self._peers = Peers(*(PeerAddress(f"node-{each}", 9092) for each in self.node_ids))
        self._telling: set[asyncio.Task[None]] = set()

    def new_uuid(self) -> bytes:
        return self.random.randbytes(16)

    def clock_of(self, node_id: int) -> Clock:
        """Return what a node tells the time by."""
        del node_id
        return self.clock

    def dialer(self, node_id: int) -> Dialer:
        """Return what a node dials others by."""
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
        """Return where a node's files are."""
        return f"{self._path or '/data'}/{node_id}"

    async def start(self, node_id: int) -> Member:
        """Let a node live, with what files it has."""
        peer = self._peers[PeerAddress(f"node-{node_id}", 9092)]
        peer.refuses = None
        member = self.member_kind(
            self, node_id, self.place(node_id), self._new_files(node_id), peer
        )
        await member.start()
        return member

    async def kill(self, node_id: int, *, is_noticed: bool = True) -> None:
        """Kill a node; the controller fences it at once, if it notices."""
        member = self.members[node_id]
        member.kill()
        await member.bury()
        if is_noticed:
            self.fence(node_id)

    # -- the controller ------------------------------------------------------------------------

    def fence(self, node_id: int) -> None:
        """Fence a node: it leaves ISRs, and others lead."""
        self.write(*complete(fence_broker(self.image, self.config, node_id)).records)
        self.rules.sessions.begin(self.image, 0)  # none of it from now on

    def hear_of_all(self) -> None:
        """Have the controller know that all who live have followed it: they send no heartbeats."""
        for node_id, member in self.members.items():
            epoch = member.lifecycle.broker_epoch
            self.rules.sessions.touch(node_id, epoch, 0, metadata_offset=_EVERYTHING)

    def forget_sessions(self) -> None:
        """Have the sessions of those who stopped be over."""
        self.rules.sessions.begin(self.image, 0)

    async def handle(self, request: ControllerRequest) -> dict[str, Any]:
        """Carry out what a node asks for."""
        try:
            result = complete(self.rules.operation(request)(self.image, Moment(0, 0)))
        except KafkaError as error:
            return in_one_go(refusal(request, error))
        if request.key is ApiKey.ALTER_PARTITION:
            self.decided += [
                (each["partition_index"], each["isr"])
                for topic in result.response["topics"]
                for each in topic["partitions"]
                if "isr" in each
            ]
        self.write(*result.records)
        await pause(0)
        return result.response

    def write(self, *records: Any) -> None:
        """Have records be the metadata, and all nodes told."""
        if not records:
            return
        self.image = image_of(*records, base=self.image)
        for member in list(self.members.values()):
            self._tell(member)

    def _tell(self, member: Member) -> None:
        self._spawn(member.hear())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Have something done that nobody waits for before the end."""
        task = asyncio.create_task(work)
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    def create_topic(
        self, *assignments: tuple[int, ...], name: str = "t", topic_id: bytes = TOPIC_ID
    ) -> None:
        """Create a topic; the first of each assignment leads."""
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
                    directories=[bytes([each]) * 16 for each in replicas],
                )
                for index, replicas in enumerate(assignments)
            ),
        )

    def set_config(self, name: str, value: str, topic: str = "t") -> None:
        """Set a config of a topic."""
        record = metadata_record(
            RecordType.CONFIG, resource_type=2, resource_name=topic, name=name, value=value
        )
        self.write(record)

    def elect(
        self, leader: int, *, index: int = 0, isr: Iterable[int] | None = None, topic: str = "t"
    ) -> None:
        """Have a node lead from now on."""
        change = {
            "partition_id": index,
            "topic_id": self.image.topics[topic].topic_id,
            "leader": leader,
            "isr": None if isr is None else list(isr),
        }
        self.write(metadata_record(RecordType.PARTITION_CHANGE, **change))

    def state(self, index: int = 0, topic: str = "t") -> PartitionImage:
        """Return what the metadata says of a partition."""
        found = self.image.partition(topic, index)
        assert found is not None
        return found

    def leader(self, index: int = 0) -> Member:
        """Return who leads."""
        return self.members[self.state(index).leader]


def stored(partition: Partition, end: int | None = None) -> bytes:
    """Return a log's batches below an offset (all of them if not said) as they are stored."""
    log = partition.log
    end = log.log_end_offset if end is None else end
    pieces: list[bytes] = []
    offset = log.log_start_offset
    while offset < end:
        found = log.read(offset, 1, up_to_offset=end, min_one=True).slice
        if found is None:
            break
        piece = bytes(found.read())
        pieces.append(piece)
        offset = int.from_bytes(piece[:8]) + int.from_bytes(piece[23:27]) + 1
    return b"".join(pieces)
