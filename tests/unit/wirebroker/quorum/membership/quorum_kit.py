"""A leader of an in-memory metadata log, and the parts of an observer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.support.tools.waiting import until
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.messages import request_message, response_message
from wirebroker.config import Config
from wirebroker.coordinator.raft.model.replica_key import ReplicaKey
from wirebroker.coordinator.raft.protocol.messages import RequestFailure
from wirebroker.net.client.settings import PeerAddress
from wirebroker.quorum.image.metadata_follower import MetadataFollower
from wirebroker.quorum.log.metadata_batches import BatchBuilder, checked_batches
from wirebroker.quorum.log.metadata_snapshot import SnapshotId, encode_snapshot
from wirebroker.quorum.membership.metadata_observer import MetadataObserver
from wirebroker.quorum.raft.raft_log import raft_batch
from wirebroker.quorum.raft.request_bodies import KEYS, body_of
from wirebroker.quorum.raft.response_bodies import response_of
from wirebroker.storage.files import Files

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.base.clock import Clock
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.raft.model.replica_key import Destination
    from wirebroker.coordinator.raft.protocol.messages import RaftRequest, RaftResponse
    from wirebroker.quorum.raft.raft_channel import OnRefused

PATIENCE_S = 10
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
LISTENER = "CONTROLLER"
NODE_ID = 2
DIRECTORY_ID = bytes([9]) * 16
# The versions that have everything.
_NEWEST = 99


class Leader:
    """One leader whose log and committed offset the tests control."""

    def __init__(self, *, node_id: int = 101, epoch: int = 1) -> None:
        self.node_id = node_id
        self.epoch = epoch
        self.address = PeerAddress("127.0.0.1", 9000 + node_id)
        self.batches: list[tuple[int, int, bytes]] = []
        self.end_offset = 0
        self.start_offset = 0
        self.high_watermark = 0
        self.snapshot: tuple[SnapshotId, bytes] | None = None
        self.piece_bytes = 100
        self.is_down = False
        self.error = ErrorCode.NONE
        self.asked: list[Any] = []
        self._changed = asyncio.Condition()

    def write(self, *batches: list[MetadataRecord], commit: bool = True) -> None:
        for records in batches:
            builder = BatchBuilder(
                base_offset=self.end_offset, leader_epoch=self.epoch, timestamp_ms=1
            )
            for record in records:
                builder.add(record)
            builder.finish_batch()
            for header, buffer in zip(
                builder.batches.headers, builder.batches.buffers, strict=True
            ):
                self.batches.append((header.base_offset, self.epoch, bytes(buffer)))
            self.end_offset = builder.next_offset
        if commit:
            self.commit(self.end_offset)

    def commit(self, high_watermark: int) -> None:
        self.high_watermark = high_watermark
        self.tell()

    async def condense(self, image: ClusterImage) -> None:
        pieces = await encode_snapshot(image, voters=(), timestamp_ms=1, clock=SystemClock())
        self.snapshot = SnapshotId(image.offset, image.epoch), b"".join(pieces)
        self.start_offset = image.offset
        self.batches = [batch for batch in self.batches if batch[0] >= image.offset]

    def tell(self) -> None:
        """Wake all waiting fetches."""
        waiting = asyncio.get_running_loop().create_task(self._tell())
        self._telling = waiting

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def request(self, key: ApiKey, request: RaftRequest) -> Any:
        """Respond as the node that it simulates."""
        struct = request_message(key).struct_class
        body = struct(**body_of(request, _NEWEST))
        self.asked.append(body)
        if key is ApiKey.FETCH_SNAPSHOT:
            return self._snapshot_piece(body)
        return await self._fetched(body)

    async def _fetched(self, request: Any) -> Any:
        partition = request.topics[0].partitions[0]
        error = self.error
        if request.cluster_id != CLUSTER_ID:
            error = ErrorCode.INCONSISTENT_CLUSTER_ID
        if error is not ErrorCode.NONE:
            return self._answer({}, error_code=int(error))
        if partition.current_leader_epoch < self.epoch:
            return self._answer({"error_code": int(ErrorCode.FENCED_LEADER_EPOCH)})
        if partition.fetch_offset < self.start_offset:
            assert self.snapshot is not None
            return self._answer({"snapshot_id": self.snapshot[0]._asdict()})
        diverging = self._diverging(partition.fetch_offset, partition.last_fetched_epoch)
        if diverging is not None:
            return self._answer({"diverging_epoch": diverging})
        async with self._changed:
            await self._changed.wait_for(
                lambda: (
                    self.end_offset > partition.fetch_offset
                    or self.high_watermark > partition.high_watermark
                    or self.is_down
                )
            )
        records = b"".join(raw for base, _, raw in self.batches if base >= partition.fetch_offset)
        fields = {"high_watermark": self.high_watermark, "records": memoryview(records)}
        return self._answer(fields)

    def _answer(self, partition: dict[str, Any], error_code: int = 0) -> Any:
        leader = {"leader_id": self.node_id, "leader_epoch": self.epoch}
        fields = {"high_watermark": -1, "current_leader": leader, **partition}
        return response_message(ApiKey.FETCH).struct_class(
            error_code=error_code,
            responses=[{"partitions": [fields]}],
            node_endpoints=[self._endpoint],
        )

    @property
    def _endpoint(self) -> dict[str, Any]:
        return {"node_id": self.node_id, **self.address._asdict()}

    def _diverging(self, offset: int, epoch: int) -> dict[str, int] | None:
        """Return the end of an epoch in the log if the fetcher's end differs."""
        ends = {0: 0}
        if self.snapshot is not None:
            ends[self.snapshot[0].epoch] = self.start_offset
        for index, (_, batch_epoch, _) in enumerate(self.batches):
            later_batches = self.batches[index + 1 :]
            ends[batch_epoch] = later_batches[0][0] if later_batches else self.end_offset
        latest_epoch = max(known_epoch for known_epoch in ends if known_epoch <= epoch)
        if latest_epoch == epoch and offset <= ends[latest_epoch]:
            return None
        return {"epoch": latest_epoch, "end_offset": ends[latest_epoch]}

    def _snapshot_piece(self, request: Any) -> Any:
        assert self.snapshot is not None
        partition = request.topics[0].partitions[0]
        snapshot, content = self.snapshot
        piece = content[partition.position : partition.position + self.piece_bytes]
        fields = {
            "current_leader": {"leader_id": self.node_id, "leader_epoch": self.epoch},
            "snapshot_id": snapshot._asdict(),
            "size": len(content),
            "position": partition.position,
            "unaligned_records": piece,
        }
        topics = [{"name": "__cluster_metadata", "partitions": [fields]}]
        return response_message(ApiKey.FETCH_SNAPSHOT).struct_class(
            topics=topics, node_endpoints=[self._endpoint]
        )


class Servers:
    """The connections of an observer to nodes that say that they lead (raft_channel.py)."""

    def __init__(self, *leaders: Leader) -> None:
        self.leaders = {leader.address.port: leader for leader in leaders}
        self.addresses = [leader.address for leader in leaders]
        self.kinds: set[ApiKey] = set()
        self.is_closed = False
        self._on_refused: OnRefused | None = None

    def connect(
        self,
        config: Config,
        clock: Clock,
        *,
        node_id: int,
        listener_name: str,
        on_refused: OnRefused | None,
    ) -> Servers:
        """Return these connections."""
        del config, clock
        assert (node_id, listener_name) == (NODE_ID, LISTENER)
        self._on_refused = on_refused
        return self

    async def request(self, destination: Destination, request: RaftRequest) -> RaftResponse:
        leader = self.leaders[destination.port]
        key = KEYS[type(request)]
        self.kinds.add(key)
        answer = None if leader.is_down else await leader.request(key, request)
        if answer is None or leader.is_down:
            return RequestFailure(ErrorCode.BROKER_NOT_AVAILABLE)
        response = response_of(key, answer, listener=LISTENER, batches=_batches)
        if isinstance(response, RequestFailure) and self._on_refused is not None:
            self._on_refused(leader.address, response.error)
        return response

    def outcome(self, node_id: int) -> str:
        return f"node {node_id}"

    def abort(self) -> None:
        self.is_closed = True


def _batches(records: bytes) -> Any:
    return tuple(map(raft_batch, checked_batches(memoryview(records))))


class Observer:
    """An observer with its log in a directory."""

    def __init__(
        self,
        folder: Path,
        servers: Servers,
        settings: dict[str, str] | None = None,
        *,
        clock: Clock | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.follower = MetadataFollower(self.clock)
        self.servers = servers
        self.failures: asyncio.Queue[str] = asyncio.Queue()
        self._folder = str(folder)
        self.parts = MetadataObserver(
            Config({"log.dirs": str(folder), **(settings or {})}),
            self.follower,
            servers=servers.addresses,
            files=Files(),
            clock=self.clock,
            on_failure=self.failures.put_nowait,
            connect=servers.connect,
        )

    async def start(self, cluster_id: str = CLUSTER_ID) -> ClusterImage:
        """Return the image that the directory contains."""
        await self.parts.open(self._folder, cluster_id, ReplicaKey(NODE_ID, DIRECTORY_ID))
        return self.follower.image

    async def until(self, offset: int) -> ClusterImage:
        await until(lambda: self.follower.image.offset >= offset)
        return self.follower.image

    async def failure(self) -> str:
        """Wait for the log line that says why following has stopped."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.failures.get()

    async def stop(self) -> None:
        await self.parts.abandon()
