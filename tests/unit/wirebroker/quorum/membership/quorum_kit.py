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
from wirebroker.net.client.errors import CannotConnectError
from wirebroker.net.client.settings import PeerAddress
from wirebroker.quorum.image.metadata_follower import MetadataFollower
from wirebroker.quorum.log.metadata_batches import BatchBuilder
from wirebroker.quorum.log.metadata_snapshot import SnapshotId, encode_snapshot
from wirebroker.quorum.log.observed_log import ObservedLog
from wirebroker.quorum.membership.metadata_fetcher import MetadataFetcher
from wirebroker.storage.files import Files

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.base.clock import Clock
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage

PATIENCE_S = 10
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"


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

    async def request(self, key: ApiKey, body: Any, *, timeout_s: float) -> Any:
        """Respond as the node that it simulates."""
        del timeout_s
        if self.is_down:
            raise CannotConnectError(str(self.address), "it is down")
        struct = request_message(key).struct_class
        newest = request_message(key).versions[-1]
        request = struct(**body(newest))
        self.asked.append(request)
        if key is ApiKey.FETCH_SNAPSHOT:
            return self._snapshot_piece(request)
        return await self._fetched(request)

    async def _fetched(self, request: Any) -> Any:
        partition = request.topics[0].partitions[0]
        if request.cluster_id != CLUSTER_ID:
            return _answer({}, error_code=int(ErrorCode.INCONSISTENT_CLUSTER_ID))
        if partition.current_leader_epoch < self.epoch:
            leader = {"leader_id": self.node_id, "leader_epoch": self.epoch}
            code = int(ErrorCode.FENCED_LEADER_EPOCH)
            return _answer({"error_code": code, "current_leader": leader})
        if partition.fetch_offset < self.start_offset:
            assert self.snapshot is not None
            return _answer({"snapshot_id": self.snapshot[0]._asdict()})
        diverging = self._diverging(partition.fetch_offset, partition.last_fetched_epoch)
        if diverging is not None:
            return _answer({"diverging_epoch": diverging})
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
        return _answer(fields)

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
            "snapshot_id": snapshot._asdict(),
            "size": len(content),
            "position": partition.position,
            "unaligned_records": piece,
        }
        topics = [{"name": "__cluster_metadata", "partitions": [fields]}]
        return response_message(ApiKey.FETCH_SNAPSHOT).struct_class(topics=topics)


def _answer(partition: dict[str, Any], error_code: int = 0) -> Any:
    topics = [{"partitions": [{"high_watermark": -1, **partition}]}]
    return response_message(ApiKey.FETCH).struct_class(error_code=error_code, responses=topics)


class Controllers:
    """The channel to the leader that a test has made active (net/client/active_controller.py)."""

    def __init__(self, active: Leader) -> None:
        self.active = active
        self.forgotten = 0
        self.is_closed = False

    async def find(self, timeout_s: float) -> Leader:
        del timeout_s
        return self.active

    def forget(self, address: PeerAddress) -> None:
        assert address
        self.forgotten += 1

    def learn(self, controller_id: int, address: PeerAddress) -> None:
        raise AssertionError(f"unexpected controller {controller_id} at {address}")

    def abort(self) -> None:
        self.is_closed = True


class Observer:
    """A fetcher with its log in a directory."""

    def __init__(
        self,
        folder: Path,
        controllers: Controllers,
        settings: dict[str, str] | None = None,
        *,
        clock: Clock | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.follower = MetadataFollower(self.clock)
        self.controllers = controllers
        self.failures: asyncio.Queue[str] = asyncio.Queue()
        config = Config({"log.dirs": str(folder), **(settings or {})})
        self.log = ObservedLog(str(folder), files=Files(), clock=self.clock, config=config)
        self._task: asyncio.Task[None] | None = None
        self.fetcher: MetadataFetcher | None = None

    async def start(self, cluster_id: str = CLUSTER_ID) -> ClusterImage:
        self.follower.image = loaded = await self.log.load()
        controllers: Any = self.controllers
        self.fetcher = MetadataFetcher(
            controllers,
            self.log,
            self.follower,
            clock=self.clock,
            cluster_id=cluster_id,
            node_id=2,
            directory_id=bytes([9]) * 16,
            on_failure=self.failures.put_nowait,
        )
        self._task = asyncio.create_task(self.fetcher.run())
        return loaded

    async def until(self, offset: int) -> ClusterImage:
        await until(lambda: self.follower.image.offset >= offset)
        return self.follower.image

    async def failure(self) -> str:
        """Wait for the log line that says why following has stopped."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.failures.get()

    async def stop(self) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])
        await self.log.close()
