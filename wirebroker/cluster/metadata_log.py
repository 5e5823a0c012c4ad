"""The cluster's metadata: a log of KRaft records, led by this node, and the image that it gives.

    submit(operation)   one at a time: runs on the newest image, appends its records at once
         |
      flusher           one fdatasync for all that wait (group commit, in a thread)
         |
      publish           in order: the listener is awaited, `image` moves on, submit() returns

Laws:
- `image` shows only what is on the disk and what this node has followed, so that whoever is told of
  a topic finds its partitions; operations see what is appended, so that two requests that come
  together cannot both create a topic.
- `image.offset` <= `_newest.offset` == end of the log.
- What is answered, with or without records of its own, rests on committed records only.
- After a failed write or sync nothing is answered any more but KAFKA_STORAGE_ERROR: what the disk
  holds is unknown until a restart reads it. A write that found no room was taken back, and fails
  its own request only.

Source: Kafka's QuorumController and KafkaRaftClient, for a quorum of one voter (KIP-500, KIP-595).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from wirebroker.clock import Slices
from wirebroker.cluster.data_directory import is_disk_failure
from wirebroker.cluster.metadata_batches import (
    BatchBuilder,
    EncodedBatches,
    decode_batch,
    framed,
)
from wirebroker.cluster.metadata_snapshot import (
    BOOTSTRAP_FILE,
    SnapshotContents,
    SnapshotId,
    bootstrap_records,
    control_records,
    encode_bootstrap,
    encode_snapshot,
    read_snapshot,
)
from wirebroker.cluster.metadata_store import MetadataStore
from wirebroker.cluster.quorum_state import read_quorum_state, write_quorum_state
from wirebroker.codecs.control_records import (
    ControlRecord,
    KRaftVersion,
    KRaftVoters,
    LeaderChange,
    QuorumVoter,
)
from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError
from wirebroker.codecs.primitives import random_uuid
from wirebroker.config_row import StartError
from wirebroker.coordinator import registration
from wirebroker.coordinator.cluster_image import METADATA_VERSION, ClusterImage, Endpoint
from wirebroker.coordinator.feature_control import (
    activation_records,
    bootstrap_levels,
    check_features,
)
from wirebroker.coordinator.image_builder import ImageBuilder, ImageChange
from wirebroker.coordinator.operation import ControllerResult, Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from wirebroker.clock import Clock
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.config import Config
    from wirebroker.storage.files import Files

    Listener = Callable[[ImageChange, ClusterImage], Awaitable[None]]

Response = TypeVar("Response")

LOGGER = logging.getLogger(__name__)


class _Commit:
    """A change that is appended and waits for the disk and its publication."""

    __slots__ = ("change", "done", "image")

    def __init__(self, image: ClusterImage, change: ImageChange) -> None:
        self.image = image
        self.change = change
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class MetadataLog:
    """The metadata log of a one-node cluster. Made by `open`; used on one event loop."""

    __slots__ = (
        "_clock",
        "_commits",
        "_config",
        "_failure",
        "_flusher",
        "_is_refusing",
        "_last_commit",
        "_last_snapshot_at",
        "_last_timestamp_ms",
        "_listener",
        "_newest",
        "_node_id",
        "_slices",
        "_snapshotter",
        "_store",
        "_turn",
        "_voters",
        "epoch",
        "image",
        "on_disk_failure",
    )

    def __init__(self, store: MetadataStore, *, clock: Clock, config: Config, node_id: int) -> None:
        self._store = store
        self._clock = clock
        self._config = config
        self._node_id = node_id
        # The committed state of the cluster: what everybody reads.
        self.image = ClusterImage()
        # The epoch that this node leads, from open() on.
        self.epoch = 0
        self._newest = self.image
        self._listener: Listener | None = None
        self._turn = asyncio.Lock()  # held by the operation that is running
        self._slices = Slices(clock)
        self._commits: deque[_Commit] = deque()  # appended, in order; not yet published
        self._last_commit: _Commit | None = None
        self._flusher: asyncio.Task[None] | None = None
        self._snapshotter: asyncio.Task[None] | None = None
        self._last_snapshot_at = clock.monotonic()
        self._last_timestamp_ms = 0
        self._voters: list[ControlRecord] = []  # of a log with dynamic voters, kept for snapshots
        self._failure: KafkaError | None = None  # why nothing is taken any more
        self._is_refusing = False  # the last write found no room
        # Told the path of the log when its disk has failed.
        self.on_disk_failure: Callable[[str, OSError], None] = _ignore

    # Start and stop

    @classmethod
    async def open(
        cls, log_directory: str, *, files: Files, clock: Clock, config: Config, node_id: int
    ) -> MetadataLog:
        """Read the log of a log directory, or begin one, and become its leader.

        Args:
            log_directory: Where `__cluster_metadata-0` lies; locked and formatted already.
            files: The file system.
            clock: Wall time for records, monotonic time for slices.
            config: For the rows metadata.log.*.
            node_id: This node, the only voter.

        Raises:
            StartError: The log cannot be used: it belongs to others, was written by something
                newer, or lacks records.
            OSError: The disk.
        """
        store = MetadataStore(files, log_directory, clock)
        store.open()
        log = cls(store, clock=clock, config=config, node_id=node_id)
        bootstrap_path = f"{log_directory}/{BOOTSTRAP_FILE}"
        bootstrap: list[MetadataRecord] = []
        try:
            await log._load()
            check_features(log.image.features)
            if METADATA_VERSION not in log.image.features and files.exists(bootstrap_path):
                bootstrap = bootstrap_records(files.read_whole(bootstrap_path))
                check_features(bootstrap_levels(bootstrap))
        except (KafkaError, MalformedFrameError) as error:
            raise StartError(
                f"the metadata log in {store.directory} cannot be read: {error}",
                "start the newer broker that wrote it, or restore it from a backup",
            ) from None
        # The log is ours from here on; until now it was only read.
        store.remove_leftovers()
        await log._lead(files)
        if log.image.offset <= 1 and not files.exists(bootstrap_path):
            files.write_whole(bootstrap_path, encode_bootstrap(clock.now_ms()))
        await log.submit(partial(_activate, bootstrap, config.int("min.insync.replicas")))
        return log

    def set_listener(self, listener: Listener) -> None:
        """Have every published change told; submit() returns after the listener has.

        The listener must not wait for a submit() of its own: that would be published after it.
        """
        self._listener = listener

    async def register(
        self,
        *,
        endpoints: Sequence[Endpoint],
        log_directories: Sequence[bytes],
        rack: str | None = None,
    ) -> int:
        """Register this node, fenced, under a new incarnation; return its broker epoch."""
        incarnation_id = random_uuid()

        def operation(image: ClusterImage) -> Operation[int]:
            return registration.register(
                image,
                node_id=self._node_id,
                incarnation_id=incarnation_id,
                endpoints=endpoints,
                log_directories=log_directories,
                rack=rack,
            )

        return await self.submit(operation)

    async def unfence(self) -> None:
        """Let this node serve: it leads the partitions that nobody led."""
        await self.submit(lambda image: registration.unfence(image, node_id=self._node_id))

    async def close(self) -> None:
        """Finish what was submitted, and let go of the files."""
        async with self._turn:
            self._failure = self._failure or KafkaError(
                ErrorCode.NOT_CONTROLLER, "the broker is stopping"
            )
        if self._flusher is not None:
            await self._flusher
        if self._snapshotter is not None:
            await self._snapshotter
        self._store.close()

    # Changing the cluster

    async def submit(self, operation: Callable[[ClusterImage], Operation[Response]]) -> Response:
        """Run an operation on the newest state, and return its response when it is true.

        Raises:
            KafkaError: What the operation raises; KAFKA_STORAGE_ERROR if the disk fails.
        """
        async with self._turn:
            # Many small operations in a row must not hold the loop either.
            await self._slices.turn()
            self._check_usable()
            result = await self._run(operation(self._newest))
            if result.records:
                await self._append(result.records)
            commit = self._last_commit
        # The commit goes on whether or not somebody still waits for it.
        if commit is not None:
            await asyncio.shield(commit.done)
        return result.response

    async def _run(self, operation: Operation[Response]) -> ControllerResult[Response]:
        """Run an operation, with turns for others in between."""
        slices = Slices(self._clock)
        steps: Any = operation
        while True:
            try:
                next(steps)
            except StopIteration as end:
                result: ControllerResult[Response] = end.value
                return result
            await slices.turn()

    async def _append(self, records: list[MetadataRecord]) -> None:
        """Apply and encode records in slices, then append them in one go."""
        timestamp_ms = self._clock.now_ms()
        slices = Slices(self._clock)
        builder = ImageBuilder(self._newest)
        batches = BatchBuilder(
            base_offset=self._newest.offset, leader_epoch=self.epoch, timestamp_ms=timestamp_ms
        )
        for record in records:
            builder.apply(record)
            await slices.turn()
        for record in framed(records):
            batches.add(record)
            await slices.turn()
        batches.finish_batch()
        image, change = builder.build(offset=batches.next_offset, epoch=self.epoch)
        self._write(batches.batches)
        self._last_timestamp_ms = timestamp_ms
        self._enqueue(image, change)

    def _write(self, batches: EncodedBatches) -> None:
        self._check_usable()  # a sync may have failed while the records were made
        try:
            self._store.append(batches)
        except OSError as error:
            if not is_disk_failure(error):
                raise self._refused(error) from error
            self._fail(error)
            self._check_usable()
        self._is_refusing = False

    def _enqueue(self, image: ClusterImage, change: ImageChange) -> None:
        self._newest = image
        self._last_commit = _Commit(image, change)
        self._commits.append(self._last_commit)
        if self._flusher is None:
            self._flusher = asyncio.create_task(self._flush(), name="metadata flusher")

    # Committing

    async def _flush(self) -> None:
        """Commit and publish until nothing waits any more."""
        while self._commits:
            covered = len(self._commits)
            try:
                await asyncio.to_thread(self._store.sync)
            except OSError as error:
                self._fail(error)
                break
            # Facts from now on, whatever becomes of the disk; a write may have failed meanwhile.
            count = min(covered, len(self._commits))
            for commit in [self._commits.popleft() for _ in range(count)]:
                await self._publish(commit)
            self._maybe_begin_snapshot()
        self._flusher = None

    async def _publish(self, commit: _Commit) -> None:
        if self._listener is not None:
            try:
                await self._listener(commit.change, commit.image)
            except Exception:
                # The change is a fact, whoever failed to follow it.
                LOGGER.exception(
                    "a metadata change at offset %d was not followed", commit.image.offset
                )
        self.image = commit.image
        if not commit.done.done():
            commit.done.set_result(None)

    def _refused(self, error: OSError) -> KafkaError:
        """Return what a request is told whose records found no room; the log is as before."""
        message = f"the metadata log cannot be written now: {error}"
        if not self._is_refusing:  # one line, however many requests there are
            self._is_refusing = True
            LOGGER.error("%s", message)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)

    def _fail(self, error: OSError) -> None:
        """Stop serving: the log's end on the disk is not known any more."""
        message = f"the metadata log cannot be written: {error}"
        LOGGER.error("%s", message)
        self.on_disk_failure(self._store.directory, error)
        self._failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
        while self._commits:
            done = self._commits.popleft().done
            done.set_exception(self._failure)
            done.exception()  # marks it as seen: perhaps nobody waits any more

    def _check_usable(self) -> None:
        if self._failure is not None:
            raise self._failure

    # Loading and leading

    async def _load(self) -> None:
        """Rebuild the image from the newest snapshot and the log behind it."""
        slices = Slices(self._clock)
        builder = ImageBuilder(self.image)
        offset = epoch = 0
        content = self._store.read_snapshot()
        if content is not None:
            snapshot = read_snapshot(content)
            await self._replay_snapshot(builder, snapshot, slices)
            offset, epoch = self._store.snapshots[-1]
        for header, batch in self._store.recover():
            epoch = header.leader_epoch
            self._last_timestamp_ms = header.max_timestamp
            if header.is_control:
                self._note_voters(control_records(batch, header))
                continue
            for record in decode_batch(batch, header, from_offset=offset):
                builder.apply(record)
                await slices.turn()
        self.image, _ = builder.build(offset=self._store.end_offset, epoch=epoch)
        self._newest = self.image

    async def _replay_snapshot(
        self, builder: ImageBuilder, snapshot: SnapshotContents, slices: Slices
    ) -> None:
        self._note_voters(snapshot.voters)
        self._last_timestamp_ms = snapshot.timestamp_ms
        for header, batch in snapshot.batches:
            for record in decode_batch(batch, header):
                builder.apply(record)
                await slices.turn()

    def _note_voters(self, records: Iterable[ControlRecord]) -> None:
        for record in records:
            if isinstance(record, KRaftVersion | KRaftVoters):
                kept = [each for each in self._voters if type(each) is not type(record)]
                self._voters = [*kept, record]
            if isinstance(record, KRaftVoters):
                others = {voter.voter_id for voter in record.voters} - {self._node_id}
                if others:
                    raise StartError(
                        f"{self._store.directory} has other voters than this node: {others}",
                        "only a quorum of this node alone can be opened",
                    )

    async def _lead(self, files: Files) -> None:
        """Begin the next epoch: its number goes to the disk before its first record."""
        directory = self._store.directory
        state = read_quorum_state(files, directory, node_id=self._node_id)
        self.epoch = max(state.leader_epoch, self._store.latest_epoch, self.image.epoch) + 1
        is_dynamic = any(
            isinstance(each, KRaftVersion) and each.kraft_version for each in self._voters
        )
        data_version = 1 if is_dynamic else state.data_version
        state = state._replace(leader_epoch=self.epoch, data_version=data_version)
        write_quorum_state(files, directory, state, node_id=self._node_id)
        self._store.begin_epoch(self.epoch)
        self._last_timestamp_ms = self._clock.now_ms()
        batches = BatchBuilder(
            base_offset=self._newest.offset,
            leader_epoch=self.epoch,
            timestamp_ms=self._last_timestamp_ms,
        )
        voter = (QuorumVoter(self._node_id),)
        # The voters that a fresh directory was formatted with become part of the log.
        voters = self._voters if self._newest.offset == 0 else []
        batches.add_control([LeaderChange(self._node_id, voter, voter), *voters])
        self._store.append(batches.batches)
        image, change = ImageBuilder(self._newest).build(
            offset=batches.next_offset, epoch=self.epoch
        )
        self._enqueue(image, change)

    # Snapshots

    def _maybe_begin_snapshot(self) -> None:
        if self._snapshotter is not None or self._commits or self._failure is not None:
            return
        size = self._store.bytes_since_snapshot
        interval_ms = self._config.int("metadata.log.max.snapshot.interval.ms")
        age_ms = (self._clock.monotonic() - self._last_snapshot_at) * 1000
        is_old = 0 < interval_ms <= age_ms and size > 0
        limit = self._config.int("metadata.log.max.record.bytes.between.snapshots")
        if (size < limit and not is_old) or self.image.open_transaction is not None:
            return
        # Nothing is pending, so the log ends where the image does: the segments part there.
        assert self.image.offset == self._store.end_offset
        try:
            self._store.roll()
        except OSError as error:
            if is_disk_failure(error):
                self._fail(error)
            else:
                # The log goes on in its present segment.
                LOGGER.warning("no metadata snapshot could be begun: %s", error)
            return
        self._last_snapshot_at = self._clock.monotonic()
        self._snapshotter = asyncio.create_task(
            self._write_snapshot(self.image, self._last_timestamp_ms), name="metadata snapshot"
        )

    async def _write_snapshot(self, image: ClusterImage, timestamp_ms: int) -> None:
        """Write a snapshot of a committed image, then remove what it replaces."""
        snapshot = SnapshotId(image.offset, image.epoch)
        try:
            pieces = await encode_snapshot(
                image, voters=self._voters, timestamp_ms=timestamp_ms, clock=self._clock
            )
            content = b"".join(pieces)
            await asyncio.to_thread(self._store.write_snapshot, snapshot, content)
            self._store.advance_start(snapshot)
        except OSError as error:
            # The log is whole without it; the next snapshot tries again.
            LOGGER.warning("no metadata snapshot could be written: %s", error)
        else:
            LOGGER.info("wrote metadata snapshot %s (%d bytes)", snapshot.file_name, len(content))
        finally:
            self._snapshotter = None


def _ignore(path: str, error: OSError) -> None:
    """Do nothing: nobody has asked to be told."""


def _activate(
    bootstrap: list[MetadataRecord], min_insync_replicas: int, image: ClusterImage
) -> Operation[None]:
    yield
    return ControllerResult(
        None,
        activation_records(image, bootstrap=bootstrap, min_insync_replicas=min_insync_replicas),
    )
