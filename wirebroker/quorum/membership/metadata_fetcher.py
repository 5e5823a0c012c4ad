"""Follows the metadata log of a remote quorum as an observer.

    find the leader -> Fetch -> append -> committed batches -> MetadataFollower
                         |-> another leader or epoch: adopt it and retry
                         |-> diverging_epoch: truncate the copy
                         '-> snapshot_id: FetchSnapshot, replace the copy

Only problems that retries cannot solve end it: an unknown record, a failed disk, another cluster.

Source: Kafka's KafkaRaftClient (buildFetchRequest, handleFetchResponse and their twins for
snapshots) and MetadataLoader; KIP-595, KIP-630, KIP-853, KIP-1166.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError
from wirebroker.net.client.errors import PeerError, error_name
from wirebroker.net.client.settings import PeerAddress
from wirebroker.quorum.log.metadata_batches import decode_batch
from wirebroker.quorum.log.metadata_snapshot import SnapshotId
from wirebroker.quorum.log.metadata_store import TOPIC, TOPIC_ID
from wirebroker.quorum.log.observed_log import FetchedBatch, whole_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from wirebroker.base.clock import Clock
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.net.client.active_controller import ActiveController
    from wirebroker.net.client.node import Node
    from wirebroker.quorum.image.metadata_follower import MetadataFollower

LOGGER = logging.getLogger(__name__)

# This much blocks the loop for 5 ms.
_MAX_BYTES: Final = 1 << 20
_MAX_SNAPSHOT_BYTES: Final = 1 << 30
_WAIT_MS: Final = 500
# First Fetch versions in which an observer sends its directory (KIP-853), and its high watermark to
# get an immediate response if more is committed (KIP-1166).
_DIRECTORY_VERSION: Final = 17
_HIGH_WATERMARK_VERSION: Final = 18
# controller.quorum.fetch.timeout.ms; then another leader is searched for.
_TIMEOUT_S: Final = 2.0
# The piece may come from a busy disk.
_SNAPSHOT_TIMEOUT_S: Final = 30.0
_RETRY_S: Final = 0.1
# A waiting Fetch has two responses per second, so this is no election.
_SILENT_S: Final = 3.0
# Failed attempts per log line.
_ATTEMPTS_PER_LINE: Final = 100
# The first line follows after two seconds at least: elections are normal.
_FIRST_LINE: Final = 20

_ELSEWHERE: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.BROKER_NOT_AVAILABLE,
    }
)
_FATAL: Final = frozenset(
    {ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
)


class FetchedLog(Protocol):
    """Stores the fetched records: ObservedLog, or MemoryLog (quorum_image.py)."""

    @property
    def end_offset(self) -> int:
        """The next offset to fetch."""
        ...

    @property
    def last_epoch(self) -> int:
        """The leader epoch of the last record, or 0."""
        ...

    @property
    def kraft_version(self) -> int:
        """The level of kraft.version in the applied part of the log."""
        ...

    def append(self, batches: list[FetchedBatch]) -> None:
        """Append the next batches."""
        ...

    def take_committed(self, high_watermark: int) -> list[FetchedBatch]:
        """Return the newly committed batches."""
        ...

    def truncate(self, epoch: int, end_offset: int) -> None:
        """Truncate to the leader's log."""
        ...

    async def install(self, snapshot: SnapshotId, content: bytes) -> ClusterImage:
        """Replace the log by a snapshot; return its image."""
        ...

    def condense(self, image: ClusterImage) -> None:
        """Begin a snapshot of the applied image, if one is due."""
        ...


class MetadataFetcher:
    """One observer of a quorum.

    Attributes:
        caught_up: Set once everything that a response reported as committed is applied.
        leader_epoch: The newest that a controller has reported.
    """

    __slots__ = (
        "_answered_s",
        "_attempts",
        "_clock",
        "_cluster_id",
        "_controllers",
        "_directory_id",
        "_follower",
        "_high_watermark",
        "_log",
        "_node_id",
        "_on_failure",
        "caught_up",
        "leader_epoch",
    )

    def __init__(
        self,
        controllers: ActiveController,
        log: FetchedLog,
        follower: MetadataFollower,
        *,
        clock: Clock,
        cluster_id: str,
        node_id: int = -1,
        directory_id: bytes = bytes(16),
        on_failure: Callable[[str], None],
    ) -> None:
        """Create an observer.

        `controllers` are its own connections, because a Fetch waits in them. A mere reader has the
        `node_id` -1. `on_failure` is called with the reason when following ends.
        """
        self._controllers = controllers
        self._log = log
        self._follower = follower
        self._cluster_id = cluster_id
        self._node_id = node_id
        self._directory_id = directory_id
        self._on_failure = on_failure
        self._high_watermark = -1
        self._attempts = 0
        self._clock = clock
        self._answered_s = clock.monotonic()
        self.leader_epoch = log.last_epoch
        self.caught_up = asyncio.Event()

    async def run(self) -> None:
        """Follow until canceled; the root of a task."""
        try:
            while True:
                await self._turn()
        except (KafkaError, MalformedFrameError) as error:
            self._on_failure(f"the cluster's metadata cannot be followed: {error}")
        except OSError as error:
            self._on_failure(f"the metadata log cannot be written: {error}")
        except Exception:
            LOGGER.exception("following the cluster's metadata failed")
            self._on_failure("the cluster's metadata cannot be followed: see the line above")
        finally:
            # The last Fetch may still wait.
            self._controllers.abort()

    async def _turn(self) -> None:
        node: Node | None = None
        try:
            node = await self._controllers.find(_TIMEOUT_S)
            answer = await node.request(ApiKey.FETCH, self._question, timeout_s=_TIMEOUT_S)
            problem = await self._take(node, answer)
        except PeerError as error:
            problem = str(error)
        if problem is None:
            self._attempts = 0
            self._answered_s = self._clock.monotonic()
            return
        if node is not None:
            self._controllers.forget(node.address)
        self._note(problem)
        await pause(_RETRY_S)

    def silence(self) -> str | None:
        """Return a message if no controller has responded recently."""
        silent_s = self._clock.monotonic() - self._answered_s
        if silent_s < _SILENT_S:
            return None
        since = datetime.fromtimestamp(self._clock.now_ms() / 1000 - silent_s, UTC)
        queried = ", ".join(dict.fromkeys(map(str, self._controllers.addresses)))
        return (
            f"no controller has responded for {silent_s:.0f} s, since"
            f" {since.isoformat(timespec='seconds')}; tried {queried}"
        )

    def _note(self, problem: str) -> None:
        self._attempts += 1
        if self._attempts % _ATTEMPTS_PER_LINE == _FIRST_LINE:
            LOGGER.warning(
                "no controller responds: until one does, nothing is created or altered, and"
                " partitions of failing brokers get no new leader: %s",
                problem,
            )

    def _question(self, version: int) -> dict[str, Any]:
        partition: dict[str, Any] = {
            "partition": 0,
            "current_leader_epoch": self.leader_epoch,
            "fetch_offset": self._log.end_offset,
            "last_fetched_epoch": self._log.last_epoch,
            "log_start_offset": 0,
            "partition_max_bytes": _MAX_BYTES,
        }
        if version >= _DIRECTORY_VERSION:
            partition["replica_directory_id"] = self._directory_id
        if version >= _HIGH_WATERMARK_VERSION:
            partition["high_watermark"] = self._high_watermark
        return {
            "cluster_id": self._cluster_id,
            "replica_state": {"replica_id": self._node_id, "replica_epoch": -1},
            "max_wait_ms": _WAIT_MS,
            "min_bytes": 0,
            "max_bytes": _MAX_BYTES,
            "topics": [{"topic_id": TOPIC_ID, "partitions": [partition]}],
        }

    async def _take(self, node: Node, answer: Any) -> str | None:
        """Handle a response; return the problem, or None to continue immediately."""
        partition = _partition_of(answer)
        error_code = answer.error_code or (partition.error_code if partition is not None else 0)
        if error_code in _FATAL:
            raise KafkaError(ErrorCode(error_code), f"{node.address}: {error_name(error_code)}")
        if partition is None:
            return f"{node.address}: {error_name(error_code)}"
        has_new_leader = self._learn(answer, partition)
        if error_code in _ELSEWHERE:
            return None if has_new_leader else f"{node.address}: {error_name(error_code)}"
        if error_code:
            return f"{node.address}: {error_name(error_code)}"
        if partition.diverging_epoch.end_offset >= 0:
            self._log.truncate(
                partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset
            )
            return None
        if partition.snapshot_id.end_offset >= 0:
            snapshot = SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
            return await self._load_snapshot(node, snapshot)
        if partition.records:
            self._log.append(whole_batches(memoryview(partition.records)))
        await self._apply(partition.high_watermark)
        return None

    def _learn(self, answer: Any, partition: Any) -> bool:
        """Adopt the leader in a response; return whether its epoch was new."""
        leader = partition.current_leader
        if leader.leader_epoch < self.leader_epoch or leader.leader_id < 0:
            return False
        has_new_epoch = bool(leader.leader_epoch > self.leader_epoch)
        self.leader_epoch = leader.leader_epoch
        for endpoint in answer.node_endpoints or ():
            if endpoint.node_id == leader.leader_id and endpoint.host:
                self._controllers.learn(endpoint.node_id, PeerAddress(endpoint.host, endpoint.port))
        return has_new_epoch

    # Applying

    async def _apply(self, high_watermark: int) -> None:
        batches = self._log.take_committed(high_watermark)
        follower = self._follower
        if batches:
            last = batches[-1].header
            records = _records_of(batches, from_offset=follower.image.offset)
            await follower.follow(records, offset=last.last_offset + 1, epoch=last.leader_epoch)
            follower.kraft_version = self._log.kraft_version
            self._log.condense(follower.image)
        self._high_watermark = max(self._high_watermark, high_watermark)
        if 0 <= high_watermark <= follower.image.offset:
            self.caught_up.set()

    # Snapshots

    async def _load_snapshot(self, node: Node, snapshot: SnapshotId) -> str | None:
        """Fetch and install a snapshot; return the problem, or None."""
        content = bytearray()
        while True:
            answer = await node.request(
                ApiKey.FETCH_SNAPSHOT,
                partial(self._snapshot_question, snapshot, len(content)),
                timeout_s=_SNAPSHOT_TIMEOUT_S,
            )
            self._answered_s = self._clock.monotonic()
            partition = _partition_of(answer, "topics")
            error_code = answer.error_code or (partition.error_code if partition is not None else 0)
            if partition is None or error_code:
                return f"{node.address}: snapshot {snapshot.file_name}: {error_name(error_code)}"
            piece = partition.unaligned_records or b""
            content += piece
            size = partition.size
            if len(content) > size or size > _MAX_SNAPSHOT_BYTES or not piece:
                return f"{node.address}: snapshot {snapshot.file_name} has an invalid size"
            if len(content) == size:
                break
        LOGGER.info("loading metadata snapshot %s (%d bytes)", snapshot.file_name, len(content))
        before = self._follower.image
        image = await self._log.install(snapshot, bytes(content))
        self._follower.kraft_version = self._log.kraft_version
        if image.offset > before.offset:
            change = await self._follower.difference(before, image)
            await self._follower.publish(change, image)
        self._high_watermark = max(self._high_watermark, snapshot.end_offset)
        return None

    def _snapshot_question(
        self, snapshot: SnapshotId, position: int, version: int
    ) -> dict[str, Any]:
        partition: dict[str, Any] = {
            "partition": 0,
            "current_leader_epoch": self.leader_epoch,
            "snapshot_id": {"end_offset": snapshot.end_offset, "epoch": snapshot.epoch},
            "position": position,
        }
        if version >= 1:
            partition["replica_directory_id"] = self._directory_id
        return {
            "cluster_id": self._cluster_id,
            "replica_id": self._node_id,
            "max_bytes": _MAX_BYTES,
            "topics": [{"name": TOPIC, "partitions": [partition]}],
        }


def _partition_of(answer: Any, field: str = "responses") -> Any:
    topics = getattr(answer, field)
    return topics[0].partitions[0] if topics and topics[0].partitions else None


def _records_of(batches: Iterable[FetchedBatch], *, from_offset: int) -> Iterator[MetadataRecord]:
    for header, batch in batches:
        if not header.is_control:
            yield from decode_batch(batch, header, from_offset=from_offset)
