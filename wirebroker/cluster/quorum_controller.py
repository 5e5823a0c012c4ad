"""The controller of a one-voter quorum, at work: requests in, records on the disk, answers out.

    handle(request)     one at a time: its operation runs on the newest image, and appends its
         |              records at once
      flusher           one fdatasync for all that wait (group commit, in a thread)
         |
      publish           in order: the follower takes over the image, then the request is answered

Laws:
- Operations see what is appended, so that two requests that come together cannot both create a
  topic; everybody else sees what is committed and followed.
- `follower.image.offset` <= `_newest.offset` == end of the log.
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
from typing import TYPE_CHECKING, Any, Final, TypeVar

from wirebroker.clock import Slices, pause
from wirebroker.cluster.data_directory import is_disk_failure
from wirebroker.cluster.metadata_follower import MetadataFollower
from wirebroker.cluster.metadata_log import MetadataLog
from wirebroker.cluster.metadata_snapshot import (
    BOOTSTRAP_FILE,
    bootstrap_records,
    encode_bootstrap,
)
from wirebroker.cluster.quorum_description import describe_quorum
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError
from wirebroker.config.protection import asking_names, check_directory
from wirebroker.config.row import StartError
from wirebroker.coordinator.controller.broker_registration import (
    controller_registration,
    fence_broker,
)
from wirebroker.coordinator.controller.cluster_image import (
    METADATA_VERSION,
    ClusterImage,
    ResourceType,
)
from wirebroker.coordinator.controller.controller import refusal
from wirebroker.coordinator.controller.feature_control import (
    activation_records,
    bootstrap_levels,
    check_features,
)
from wirebroker.coordinator.controller.image_builder import ImageBuilder
from wirebroker.coordinator.controller.image_change import ImageChange
from wirebroker.coordinator.controller.operation import ControllerResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.clock import Clock
    from wirebroker.cluster.metadata_batches import EncodedBatches
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.coordinator.controller.controller import Controller, ControllerRequest
    from wirebroker.coordinator.controller.operation import Operation
    from wirebroker.storage.files import Files

Response = TypeVar("Response")

LOGGER = logging.getLogger(__name__)

# Until a broker that could not be fenced is tried again.
_FENCE_AGAIN_S: Final = 1.0


class _Commit:
    """A change that is appended and waits for the disk and its publication."""

    __slots__ = ("change", "done", "image")

    def __init__(self, image: ClusterImage, change: ImageChange) -> None:
        self.image = image
        self.change = change
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class QuorumController:
    """The active controller, which is the only one. Made by `open`; used on one event loop.

    Attributes:
        rules: What its requests do.
        follower: Shows the committed state, and tells others of it.
        log: Where the records are.
        on_disk_failure: Told the path of the log when its disk has failed.
    """

    __slots__ = (
        "_clock",
        "_commits",
        "_failure",
        "_fencing",
        "_flusher",
        "_is_refusing",
        "_last_commit",
        "_may_condense",
        "_newest",
        "_slices",
        "_turn",
        "follower",
        "log",
        "on_disk_failure",
        "rules",
    )

    def __init__(
        self, log: MetadataLog, image: ClusterImage, *, clock: Clock, rules: Controller
    ) -> None:
        self.rules = rules
        self.log = log
        self.follower = MetadataFollower(clock, image)
        self.on_disk_failure: Callable[[str, OSError], None] = _ignore
        self._clock = clock
        self._newest = image
        self._turn = asyncio.Lock()  # held by the operation that is running
        self._slices = Slices(clock)
        self._commits: deque[_Commit] = deque()  # appended, in order; not yet published
        self._last_commit: _Commit | None = None
        self._flusher: asyncio.Task[None] | None = None
        self._fencing: asyncio.TimerHandle | asyncio.Task[None] | None = None
        self._failure: KafkaError | None = None  # why nothing is taken any more
        self._is_refusing = False  # the last write found no room
        self._may_condense = True

    # Start and stop

    @classmethod
    async def open(
        cls, log_directory: str, *, files: Files, clock: Clock, rules: Controller
    ) -> QuorumController:
        """Read the log of a log directory, or begin one, and become its leader.

        Args:
            log_directory: Where `__cluster_metadata-0` lies; locked and formatted already.
            files: The file system.
            clock: Wall time for records, monotonic time for slices.
            rules: With the configuration of this node, the only voter.

        Raises:
            StartError: The log cannot be used: it belongs to others, was written by something
                newer, or lacks records.
            OSError: The disk.
        """
        config, node_id = rules.config, rules.node_id
        log = MetadataLog(log_directory, files=files, clock=clock, config=config, node_id=node_id)
        bootstrap_path = f"{log_directory}/{BOOTSTRAP_FILE}"
        bootstrap: list[MetadataRecord] = []
        try:
            image = await log.load()
            check_features(image.features)
            if METADATA_VERSION not in image.features and files.exists(bootstrap_path):
                bootstrap = bootstrap_records(files.read_whole(bootstrap_path))
                check_features(bootstrap_levels(bootstrap))
            held = ImageBuilder(image).apply_all(bootstrap).build(offset=0, epoch=0)[0]
            check_directory(
                (*held.unserved_protection, *_protecting_configs(held, node_id)),
                log.directory,
                config,
            )
        except (KafkaError, MalformedFrameError) as error:
            raise StartError(
                f"the metadata log in {log.directory} cannot be read: {error}",
                "start the newer broker that wrote it, or restore it from a backup",
            ) from None
        # The log is ours from here on; until now it was only read.
        controller = cls(log, image, clock=clock, rules=rules)
        if image.offset <= 1 and not files.exists(bootstrap_path):
            files.write_whole(bootstrap_path, encode_bootstrap(clock.now_ms()))
        await controller._activate(bootstrap)
        return controller

    async def _activate(self, bootstrap: list[MetadataRecord]) -> None:
        """Begin to lead: the epoch, what an empty log begins with, who the controller is."""
        rules = self.rules
        image = self.log.lead(self._newest)
        self._enqueue(image, ImageChange())
        rules.sessions.begin(image, self._clock.monotonic())
        min_isr = rules.config.int("min.insync.replicas")
        registration = controller_registration(rules.node_id, rules.new_uuid())
        # One sync serves both.
        await asyncio.gather(
            self.submit(partial(_first_records, bootstrap, min_isr)),
            self.submit(partial(_write, [registration])),
        )
        self._fence_when_due()

    async def close(self) -> None:
        """Finish what was submitted, and let go of the files."""
        async with self._turn:
            self._failure = self._failure or KafkaError(
                ErrorCode.NOT_CONTROLLER, "the controller is stopping"
            )
        if self._fencing is not None:
            self._fencing.cancel()
        if self._flusher is not None:
            await self._flusher
        await self.log.close()

    # Requests

    async def handle(self, request: ControllerRequest) -> dict[str, Any]:
        """Carry out a request, and return the body of its answer when it is true."""
        try:
            return await self.carry_out(request)
        except KafkaError as error:
            return refusal(request, error)

    async def carry_out(self, request: ControllerRequest) -> dict[str, Any]:
        """Carry out a request, for whoever answers one that is refused as a whole himself.

        Raises:
            KafkaError: Why it is refused, such as NOT_CONTROLLER.
        """
        if request.key is ApiKey.DESCRIBE_QUORUM:
            return describe_quorum(
                request,
                voter_id=self.rules.node_id,
                epoch=self.log.epoch,
                end_offset=self.follower.image.offset,
                now_ms=self._clock.now_ms(),
            )
        try:
            operation = self.rules.operation(request, now_s=self._clock.monotonic())
            return await self.submit(operation)
        finally:
            self._fence_when_due()

    async def submit(self, operation: Callable[[ClusterImage], Operation[Response]]) -> Response:
        """Run an operation on the newest state, and return its response when it is true.

        Raises:
            KafkaError: What the operation raises; KAFKA_STORAGE_ERROR if the disk fails.
        """
        async with self._turn:
            # Many small operations in a row must not hold the loop either.
            await self._slices.turn()
            self._check_usable()
            result = await Slices(self._clock).run(operation(self._newest))
            if result.records:
                await self._append(result.records)
            commit = self._last_commit
        # The commit goes on whether or not somebody still waits for it.
        if commit is not None:
            await asyncio.shield(commit.done)
        return result.response

    async def _append(self, records: list[MetadataRecord]) -> None:
        """Apply and encode records in slices, then append them in one go."""
        slices = Slices(self._clock)
        builder = ImageBuilder(self._newest)
        for record in records:
            builder.apply(record)
            await slices.turn()
        batches = await self.log.encode(records, slices)
        image, change = await slices.run(
            builder.finish(offset=batches.end_offset, epoch=self.log.epoch)
        )
        self._write(batches)
        self._enqueue(image, change)

    def _write(self, batches: EncodedBatches) -> None:
        self._check_usable()  # a sync may have failed while the records were made
        try:
            self.log.append(batches)
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

    # Brokers that are not heard of

    def _fence_when_due(self) -> None:
        """Look again when the next broker's session ends, if one has any."""
        if isinstance(self._fencing, asyncio.Task) and not self._fencing.done():
            return
        if self._fencing is not None:
            self._fencing.cancel()
            self._fencing = None
        due_s = self.rules.sessions.next_end_s()
        if due_s < float("inf") and self._failure is None:
            delay_s = max(0.0, due_s - self._clock.monotonic())
            self._fencing = asyncio.get_running_loop().call_later(delay_s, self._begin_fencing)

    def _begin_fencing(self) -> None:
        self._fencing = asyncio.create_task(self._fence_expired(), name="fence brokers")

    async def _fence_expired(self) -> None:
        """Fence the brokers whose sessions are over; the root of its task."""
        sessions = self.rules.sessions
        try:
            while True:
                for node_id in sessions.expired(self._newest, self._clock.monotonic()):
                    await self._try_to_fence(node_id)
                sessions.drop_ended(self._newest, self._clock.monotonic())
                is_done = not sessions.expired(self._newest, self._clock.monotonic())
                if is_done or self._failure is not None:
                    break
                await pause(_FENCE_AGAIN_S)
        finally:
            self._fencing = None
        self._fence_when_due()

    async def _try_to_fence(self, node_id: int) -> None:
        """Fence a broker unless it is heard of, or registers, before its turn comes."""
        broker = self._newest.brokers.get(node_id)
        if broker is None:
            return

        def operation(image: ClusterImage) -> Operation[None]:
            return _fence(self.rules, node_id, broker.epoch, self._clock.monotonic(), image)

        try:
            await self.submit(operation)
        except KafkaError as error:
            LOGGER.warning("broker %d could not be fenced: %s", node_id, error)

    # Committing

    async def _flush(self) -> None:
        """Commit and publish until nothing waits any more."""
        while self._commits:
            covered = len(self._commits)
            try:
                await self.log.sync()
            except OSError as error:
                self._fail(error)
                break
            # Facts from now on, whatever becomes of the disk; a write may have failed meanwhile.
            count = min(covered, len(self._commits))
            for commit in [self._commits.popleft() for _ in range(count)]:
                await self.follower.publish(commit.change, commit.image)
                if not commit.done.done():
                    commit.done.set_result(None)
            self._condense()
        self._flusher = None

    def hold_snapshots(self) -> None:
        """Begin no snapshot until `allow_snapshots`: a start is not held up by one."""
        self._may_condense = False

    def allow_snapshots(self) -> None:
        """Begin the snapshot that is due, if one is, and those to come when they are."""
        self._may_condense = True
        self._condense()

    def _condense(self) -> None:
        if self._may_condense and not self._commits and self._failure is None:
            self.log.condense(self.follower.image, self._fail)

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
        self.on_disk_failure(self.log.directory, error)
        self._failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
        while self._commits:
            done = self._commits.popleft().done
            done.set_exception(self._failure)
            done.exception()  # marks it as seen: perhaps nobody waits any more

    def _check_usable(self) -> None:
        if self._failure is not None:
            raise self._failure


def _ignore(path: str, error: OSError) -> None:
    """Do nothing: nobody has asked to be told."""


def _protecting_configs(image: ClusterImage, node_id: int) -> tuple[str, ...]:
    """Return the dynamic configs of this broker that ask for protection."""
    cluster_wide = image.config(ResourceType.BROKER, "")
    return asking_names({**cluster_wide, **image.config(ResourceType.BROKER, str(node_id))})


def _first_records(
    bootstrap: list[MetadataRecord], min_insync_replicas: int, image: ClusterImage
) -> Operation[None]:
    yield
    return ControllerResult(
        None,
        activation_records(image, bootstrap=bootstrap, min_insync_replicas=min_insync_replicas),
    )


def _write(records: list[MetadataRecord], image: ClusterImage) -> Operation[None]:
    del image
    yield
    return ControllerResult(None, records)


def _fence(
    rules: Controller, node_id: int, broker_epoch: int, now_s: float, image: ClusterImage
) -> Operation[None]:
    broker = image.brokers.get(node_id)
    is_same = broker is not None and not broker.fenced and broker.epoch == broker_epoch
    if not is_same or node_id not in rules.sessions.expired(image, now_s):
        yield
        return ControllerResult(None)
    LOGGER.warning("broker %d is fenced: it was not heard of for too long", node_id)
    result = yield from fence_broker(image, rules.config, node_id)
    return ControllerResult(None, result.records)
