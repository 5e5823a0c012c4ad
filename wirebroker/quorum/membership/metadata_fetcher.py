"""Follows the metadata log of a quorum elsewhere: Fetch as an observer, FetchSnapshot, applied.

    find the leader -> Fetch -> append -> what is committed by now -> MetadataFollower
                         |-> another leader or epoch: take over what it says, ask again
                         |-> diverging_epoch: cut our copy
                         '-> snapshot_id: FetchSnapshot, begin anew with it

It never ends by itself but for what trying again doesn't mend: a record that is not understood, a
disk that fails, another cluster. `on_failure` is told that in one line.

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

# As many are asked for at once: checked and written they hold the loop for 5 ms.
_MOST_BYTES: Final = 1 << 20
_MOST_SNAPSHOT_BYTES: Final = 1 << 30
_WAIT_MS: Final = 500
# Of Fetch: from these on an observer says which directory it has (KIP-853), and is answered at once
# when more is committed than it knows of (KIP-1166).
_DIRECTORY_VERSION: Final = 17
_HIGH_WATERMARK_VERSION: Final = 18
# controller.quorum.fetch.timeout.ms: a leader that says nothing for so long is looked for anew.
_TIMEOUT_S: Final = 2.0
# A snapshot's piece may have to come from a disk that is busy.
_SNAPSHOT_TIMEOUT_S: Final = 30.0
_RETRY_S: Final = 0.1
# A Fetch that waits is answered twice a second; so long without an answer is no election.
_SILENT_S: Final = 3.0
# Lines about the same trouble: one in so many attempts.
_ATTEMPTS_PER_LINE: Final = 100
# An election is no trouble: the first line comes after two seconds at least.
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
    """Where the records are kept: ObservedLog, or nowhere (quorum_image.py)."""

    @property
    def end_offset(self) -> int:
        """The next offset to be fetched."""
        ...

    @property
    def last_epoch(self) -> int:
        """The leader epoch of the last record, 0 if there is none."""
        ...

    def append(self, batches: list[FetchedBatch]) -> None:
        """Append batches that come next."""
        ...

    def take_committed(self, high_watermark: int) -> list[FetchedBatch]:
        """Return the batches that are committed by now and were not returned before."""
        ...

    def truncate(self, epoch: int, end_offset: int) -> None:
        """Drop what the leader does not have."""
        ...

    async def install(self, snapshot: SnapshotId, content: bytes) -> ClusterImage:
        """Begin anew with a snapshot; return its image."""
        ...

    def condense(self, image: ClusterImage) -> None:
        """Begin a snapshot of what is applied, if one is due."""
        ...


class MetadataFetcher:
    """One observer of a quorum.

    Attributes:
        caught_up: Set once everything was applied that was committed when the leader was asked.
        leader_epoch: The newest that a controller has named.
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
        """Take a way to the controllers that nobody else uses: a Fetch waits in it.

        Args:
            controllers: Closed with this.
            log: As far as it was fetched before.
            follower: Shows the image of what of it is applied.
            clock: For when a controller answered last.
            cluster_id: Whose log it must be.
            node_id: This broker's; -1 for somebody who only looks.
            directory_id: Of the log directory that holds the copy.
            on_failure: Told why nothing is followed any more.
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
        # When a controller answered last, on the monotonic clock.
        self._answered_s = clock.monotonic()
        self.leader_epoch = log.last_epoch
        self.caught_up = asyncio.Event()

    async def run(self) -> None:
        """Follow until cancelled; the root of its task."""
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
            # Nobody reads what the last Fetch brings, which may wait for half a second.
            self._controllers.abort()

    async def _turn(self) -> None:
        """Ask once; whoever cannot be asked is looked for anew after a pause."""
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
        """Say since when no controller answers, and where they were asked; None while one does."""
        silent_s = self._clock.monotonic() - self._answered_s
        if silent_s < _SILENT_S:
            return None
        since = datetime.fromtimestamp(self._clock.now_ms() / 1000 - silent_s, UTC)
        asked = ", ".join(dict.fromkeys(map(str, self._controllers.addresses)))
        return (
            f"no controller has answered for {silent_s:.0f} s, since"
            f" {since.isoformat(timespec='seconds')}; asked at {asked}"
        )

    def _note(self, problem: str) -> None:
        self._attempts += 1
        if self._attempts % _ATTEMPTS_PER_LINE == _FIRST_LINE:
            LOGGER.warning(
                "no controller answers: nothing is created or altered until one does, and what"
                " other brokers lead has no other leader if they fail: %s",
                problem,
            )

    def _question(self, version: int) -> dict[str, Any]:
        partition: dict[str, Any] = {
            "partition": 0,
            "current_leader_epoch": self.leader_epoch,
            "fetch_offset": self._log.end_offset,
            "last_fetched_epoch": self._log.last_epoch,
            "log_start_offset": 0,
            "partition_max_bytes": _MOST_BYTES,
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
            "max_bytes": _MOST_BYTES,
            "topics": [{"topic_id": TOPIC_ID, "partitions": [partition]}],
        }

    async def _take(self, node: Node, answer: Any) -> str | None:
        """Take an answer; return what was wrong with it, None if one can go on at once."""
        found = _partition_of(answer)
        error_code = answer.error_code or (found.error_code if found is not None else 0)
        if error_code in _FATAL:
            raise KafkaError(ErrorCode(error_code), f"{node.address}: {error_name(error_code)}")
        if found is None:
            return f"{node.address}: {error_name(error_code)}"
        is_told = self._learn(answer, found)
        if error_code in _ELSEWHERE:
            return None if is_told else f"{node.address}: {error_name(error_code)}"
        if error_code:
            return f"{node.address}: {error_name(error_code)}"
        if found.diverging_epoch.end_offset >= 0:
            self._log.truncate(found.diverging_epoch.epoch, found.diverging_epoch.end_offset)
            return None
        if found.snapshot_id.end_offset >= 0:
            snapshot = SnapshotId(found.snapshot_id.end_offset, found.snapshot_id.epoch)
            return await self._load_snapshot(node, snapshot)
        if found.records:
            self._log.append(whole_batches(memoryview(found.records)))
        await self._apply(found.high_watermark)
        return None

    def _learn(self, answer: Any, found: Any) -> bool:
        """Take over who leads, if the answer says it; return whether that was news."""
        leader = found.current_leader
        if leader.leader_epoch < self.leader_epoch or leader.leader_id < 0:
            return False
        is_news = bool(leader.leader_epoch > self.leader_epoch)
        self.leader_epoch = leader.leader_epoch
        for each in answer.node_endpoints or ():
            if each.node_id == leader.leader_id and each.host:
                self._controllers.learn(each.node_id, PeerAddress(each.host, each.port))
        return is_news

    # Applying

    async def _apply(self, high_watermark: int) -> None:
        """Apply what is committed, in order."""
        batches = self._log.take_committed(high_watermark)
        follower = self._follower
        if batches:
            last = batches[-1].header
            records = _records_of(batches, from_offset=follower.image.offset)
            await follower.follow(records, offset=last.last_offset + 1, epoch=last.leader_epoch)
            self._log.condense(follower.image)
        self._high_watermark = max(self._high_watermark, high_watermark)
        if 0 <= high_watermark <= follower.image.offset:
            self.caught_up.set()

    # Snapshots

    async def _load_snapshot(self, node: Node, snapshot: SnapshotId) -> str | None:
        """Fetch a snapshot whole and begin anew with it; return what went wrong, None if nothing.

        Raises:
            PeerError: The controller does not answer.
        """
        content = bytearray()
        while True:
            answer = await node.request(
                ApiKey.FETCH_SNAPSHOT,
                partial(self._snapshot_question, snapshot, len(content)),
                timeout_s=_SNAPSHOT_TIMEOUT_S,
            )
            self._answered_s = self._clock.monotonic()
            found = _partition_of(answer, "topics")
            error_code = answer.error_code or (found.error_code if found is not None else 0)
            if found is None or error_code:
                return f"{node.address}: snapshot {snapshot.file_name}: {error_name(error_code)}"
            piece = found.unaligned_records or b""
            content += piece
            size = found.size
            if len(content) > size or size > _MOST_SNAPSHOT_BYTES or not piece:
                return f"{node.address}: snapshot {snapshot.file_name} has no sensible size"
            if len(content) == size:
                break
        LOGGER.info("loading metadata snapshot %s (%d bytes)", snapshot.file_name, len(content))
        before = self._follower.image
        image = await self._log.install(snapshot, bytes(content))
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
            "max_bytes": _MOST_BYTES,
            "topics": [{"name": TOPIC, "partitions": [partition]}],
        }


def _partition_of(answer: Any, field: str = "responses") -> Any:
    """Return the one partition of an answer, None if it has none."""
    topics = getattr(answer, field)
    return topics[0].partitions[0] if topics and topics[0].partitions else None


def _records_of(batches: Iterable[FetchedBatch], *, from_offset: int) -> Iterator[MetadataRecord]:
    for header, batch in batches:
        if not header.is_control:
            yield from decode_batch(batch, header, from_offset=from_offset)
