"""Serves the metadata log to its followers: Fetch and FetchSnapshot of `__cluster_metadata-0`.

A Fetch returns committed batches, waiting up to max_wait_ms; or the diverging epoch; or the
snapshot to fetch if the fetch offset is below the log's start. Responses have at most 1 MiB.

Source: Kafka's KafkaRaftClient (handleFetchRequest, handleFetchSnapshotRequest; KIP-595, KIP-630),
KafkaMetadataLog.validateOffsetAndEpoch.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.controller.image.topic_names import CLUSTER_METADATA_TOPIC
from wirebroker.quorum.controller.observers import ObserverId, Observers
from wirebroker.quorum.log.metadata_snapshot import SnapshotId
from wirebroker.quorum.log.metadata_store import TOPIC_ID, EpochEnd, read_batches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.coordinator.controller.image.cluster_image import Endpoint
    from wirebroker.quorum.controller.controller_log import ControllerLog

Body = dict[str, Any]

_MAX_BYTES: Final = 1 << 20
# Kafka's followers wait no longer.
_LONGEST_WAIT_MS: Final = 30_000
# First Fetch versions with topic ids, replica state and endpoints.
_FIRST_WITH_IDS: Final = 13
_FIRST_WITH_STATE: Final = 15
_FIRST_WITH_ENDPOINTS: Final = 16
# First FetchSnapshot version with endpoints.
_FIRST_SNAPSHOT_WITH_ENDPOINTS: Final = 1


class MetadataFetches:
    """Serves followers of the metadata log."""

    __slots__ = (
        "_clock",
        "_cluster_id",
        "_endpoints",
        "_is_stopping",
        "_log",
        "_node_id",
        "_waiting",
        "observers",
    )

    def __init__(
        self,
        log: ControllerLog,
        *,
        clock: Clock,
        node_id: int,
        cluster_id: str,
        endpoints: Sequence[Endpoint],
    ) -> None:
        """Serve `log`; responses contain the first of this node's `endpoints`."""
        self._log = log
        self._clock = clock
        self._node_id = node_id
        self._cluster_id = cluster_id
        self._endpoints = endpoints
        self._is_stopping = False
        self._waiting: set[asyncio.Event] = set()
        self.observers = Observers()

    def stop(self) -> None:
        """Complete all waiting requests, and let no new ones wait."""
        self._is_stopping = True
        for event in self._waiting:
            event.set()

    async def fetch(self, version: int, body: Any) -> Body:
        """Serve a Fetch of the metadata log; refuse any other."""
        if body.cluster_id not in {None, self._cluster_id}:
            return {"error_code": int(ErrorCode.INCONSISTENT_CLUSTER_ID)}
        if not _is_of_metadata(body.topics, version):
            return {"error_code": int(ErrorCode.INVALID_REQUEST)}
        requested = body.topics[0].partitions[0]
        error = self._refusal(requested)
        if error is None and not body.max_wait_ms >= 0:
            error = ErrorCode.INVALID_REQUEST
        if error is not None:
            return self._fetched(version, {"error_code": int(error), "high_watermark": -1})
        self._note(version, body, requested)
        divergence = self._divergence(requested)
        if divergence is None and self._has_all(requested) and body.max_wait_ms:
            await self._until_longer(
                requested.fetch_offset, min(body.max_wait_ms, _LONGEST_WAIT_MS)
            )
        return self._fetched(version, await self._read(requested, body.max_bytes))

    async def fetch_snapshot(self, version: int, body: Any) -> Body:
        """Serve a piece of a snapshot."""
        if body.cluster_id not in {None, self._cluster_id}:
            return {"error_code": int(ErrorCode.INCONSISTENT_CLUSTER_ID)}
        if len(body.topics) != 1 or len(body.topics[0].partitions) != 1:
            return {"error_code": int(ErrorCode.INVALID_REQUEST)}
        topic = body.topics[0]
        requested = topic.partitions[0]
        if (topic.name, requested.partition) != (CLUSTER_METADATA_TOPIC, 0):
            part: Body = {"error_code": int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}
        else:
            part = await self._read_snapshot(requested, body.max_bytes)
            part["current_leader"] = self._leader()
        part["index"] = requested.partition
        answer: Body = {"topics": [{"name": topic.name, "partitions": [part]}]}
        if version >= _FIRST_SNAPSHOT_WITH_ENDPOINTS:
            answer["node_endpoints"] = self._node_endpoints()
        return answer

    # Fetch

    def _refusal(self, requested: Any) -> ErrorCode | None:
        if (
            min(
                requested.current_leader_epoch, requested.fetch_offset, requested.last_fetched_epoch
            )
            < 0
        ):
            return ErrorCode.INVALID_REQUEST
        return self._refuse_epoch(requested.current_leader_epoch)

    def _refuse_epoch(self, epoch: int) -> ErrorCode | None:
        current_epoch = self._log.stored.epoch
        if epoch < current_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH if epoch > current_epoch else None

    def _divergence(self, requested: Any) -> SnapshotId | EpochEnd | None:
        return self._log.stored.store.judge(
            requested.fetch_offset, requested.last_fetched_epoch, self._log.committed_offset
        )

    def _has_all(self, requested: Any) -> bool:
        """Return whether a follower has everything committed, and knows the high watermark."""
        end_offset = self._log.committed_offset
        return bool(min(requested.fetch_offset, requested.high_watermark) >= end_offset)

    def _note(self, version: int, body: Any, requested: Any) -> None:
        node_id = body.replica_id
        if version >= _FIRST_WITH_STATE:
            node_id = body.replica_state.replica_id
        if node_id >= 0:
            observer_id = ObserverId(node_id, bytes(requested.replica_directory_id))
            end_offset = self._log.committed_offset
            self.observers.note(
                observer_id, requested.fetch_offset, end_offset, self._clock.now_ms()
            )

    async def _until_longer(self, offset: int, wait_ms: int) -> None:
        if self._is_stopping:
            return
        is_over = asyncio.Event()

        def on_advance() -> None:
            if self._log.committed_offset > offset:
                is_over.set()

        self._waiting.add(is_over)
        self._log.watch(on_advance)
        try:
            async with asyncio.timeout(wait_ms / 1000):
                await is_over.wait()
        except TimeoutError:
            pass
        finally:
            self._log.unwatch(on_advance)
            self._waiting.discard(is_over)

    async def _read(self, requested: Any, max_bytes: int) -> Body:
        log = self._log
        divergence = self._divergence(requested)
        end_offset = log.committed_offset
        part: Body = {
            "high_watermark": end_offset,
            "log_start_offset": log.stored.store.start_offset,
            "current_leader": self._leader(),
        }
        if isinstance(divergence, EpochEnd):
            return part | {"diverging_epoch": divergence._asdict()}
        if isinstance(divergence, SnapshotId):
            return part | {"snapshot_id": divergence._asdict()}
        byte_limit = max(0, min(max_bytes, requested.partition_max_bytes or max_bytes, _MAX_BYTES))
        piece = log.stored.store.slice_from(requested.fetch_offset, end_offset, byte_limit)
        if piece is not None:
            part["records"] = await in_thread(Work.WARMING, read_batches, piece)
        return part

    def _fetched(self, version: int, part: Body) -> Body:
        part = {"current_leader": self._leader(), "aborted_transactions": None, **part}
        part.setdefault("records", b"")
        topic: Body = {"partitions": [part]}
        if version >= _FIRST_WITH_IDS:
            topic["topic_id"] = TOPIC_ID
        else:
            topic["topic"] = CLUSTER_METADATA_TOPIC
        answer: Body = {"responses": [topic]}
        if version >= _FIRST_WITH_ENDPOINTS:
            answer["node_endpoints"] = self._node_endpoints()
        return answer

    # FetchSnapshot

    async def _read_snapshot(self, requested: Any, max_bytes: int) -> Body:
        error = self._refuse_epoch(requested.current_leader_epoch)
        if error is not None:
            return {"error_code": int(error)}
        store = self._log.stored.store
        snapshot_id = SnapshotId(requested.snapshot_id.end_offset, requested.snapshot_id.epoch)
        if snapshot_id not in store.snapshots:
            return {"error_code": int(ErrorCode.SNAPSHOT_NOT_FOUND)}
        if requested.position < 0:
            return {"error_code": int(ErrorCode.POSITION_OUT_OF_RANGE)}
        byte_limit = max(0, min(max_bytes, _MAX_BYTES))
        try:
            size, piece = await in_thread(
                Work.WARMING, store.read_snapshot_part, snapshot_id, requested.position, byte_limit
            )
        except FileNotFoundError:  # replaced meanwhile
            return {"error_code": int(ErrorCode.SNAPSHOT_NOT_FOUND)}
        if requested.position >= size:
            return {"error_code": int(ErrorCode.POSITION_OUT_OF_RANGE)}
        return {
            "snapshot_id": snapshot_id._asdict(),
            "size": size,
            "position": requested.position,
            "unaligned_records": piece,
        }

    # The leader

    def _leader(self) -> Body:
        return {"leader_id": self._node_id, "leader_epoch": self._log.stored.epoch}

    def _node_endpoints(self) -> list[Body]:
        return [
            {"node_id": self._node_id, "host": endpoint.host, "port": endpoint.port}
            for endpoint in self._endpoints[:1]
        ]


def _is_of_metadata(topics: Any, version: int) -> bool:
    if len(topics) != 1 or [partition.partition for partition in topics[0].partitions] != [0]:
        return False
    if version >= _FIRST_WITH_IDS:
        return bool(topics[0].topic_id == TOPIC_ID)
    return bool(topics[0].topic == CLUSTER_METADATA_TOPIC)
