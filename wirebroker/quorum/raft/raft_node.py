"""One replica of the metadata log: the raft machine with its log, its connections and its clock.

    a request, a response, a finished sync or the time   ->  the machine's step (raft_steps.py)
    the step's actions (raft_actions.py)                 ->  files, messages, committed records

Syncs, reads for responses and checks of downloaded snapshots run alongside the steps
(raft_tasks.py); their results are events. A failed disk ends the node, because the log's end on
disk is then unknown.

Source: Kafka's KafkaRaftClient and KafkaRaftClientDriver.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.raft.model.election_state import encode_election_state
from wirebroker.coordinator.raft.protocol.events import (
    ResignationRequested,
    ShutdownRequested,
    SnapshotCreated,
)
from wirebroker.coordinator.raft.protocol.messages import NO_LEADER, KnownLeader
from wirebroker.coordinator.raft.states.epoch_states import FollowerState
from wirebroker.disks.data_directory import is_disk_failure
from wirebroker.quorum.raft.raft_actions import RaftActions, RaftListener
from wirebroker.quorum.raft.raft_log import point_of
from wirebroker.quorum.raft.raft_meters import RaftMeters
from wirebroker.quorum.raft.raft_replies import RaftReplies
from wirebroker.quorum.raft.raft_snapshots import RaftSnapshots
from wirebroker.quorum.raft.raft_steps import RaftSteps
from wirebroker.quorum.raft.raft_tasks import RaftTasks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.controller_machine import ClusterChange
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.raft.model.replica_key import Destination, ReplicaKey
    from wirebroker.coordinator.raft.model.voter_set import VoterSet
    from wirebroker.coordinator.raft.protocol.actions import Persist, RaftAction
    from wirebroker.coordinator.raft.protocol.messages import DescribeQuorumResponse
    from wirebroker.coordinator.raft.raft_replica import RaftReplica
    from wirebroker.quorum.log.metadata_batches import EncodedBatches
    from wirebroker.quorum.log.metadata_snapshot import SnapshotId
    from wirebroker.quorum.raft.committed_records import CommittedRecords
    from wirebroker.quorum.raft.raft_actions import QuorumLeadership
    from wirebroker.quorum.raft.raft_channel import RaftTransport
    from wirebroker.quorum.raft.raft_figures import RaftFigures
    from wirebroker.quorum.raft.raft_log import RaftLog
    from wirebroker.storage.files import Files

LOGGER = logging.getLogger(__name__)

ELECTION_FILE = "quorum-state"


class RaftNode:
    """A replica, used on one event loop.

    Attributes:
        failure: Why it has ended by itself, or None.
        snapshots: Those that it writes.
    """

    __slots__ = (
        "_actions",
        "_committed",
        "_files",
        "_is_ended",
        "_log",
        "_meters",
        "_on_failure",
        "_replica",
        "_replies",
        "_steps",
        "_stopped",
        "_tasks",
        "_transport",
        "failure",
        "snapshots",
    )

    def __init__(
        self,
        replica: RaftReplica,
        log: RaftLog,
        *,
        files: Files,
        clock: Clock,
        transport: RaftTransport,
        committed: CommittedRecords,
        config: Config,
        on_leadership: Callable[[QuorumLeadership], None],
        on_failure: Callable[[OSError], None],
        on_voters: Callable[[], None],
    ) -> None:
        """Join the parts.

        `on_leadership` and `on_voters` are called within a step: they must not call this node.
        `on_failure` is called when the disk has failed, which ends the node.
        """
        self._replica = replica
        self._log = log
        self._files = files
        self._transport = transport
        self._committed = committed
        committed.on_disk_failure = self._cannot_read
        self._on_failure = on_failure
        self._is_ended = False
        self._stopped = asyncio.Event()
        self.failure: str | None = None
        self.snapshots = RaftSnapshots(
            log, clock=clock, config=config, on_written=self._snapshot_is_written
        )
        self._meters = RaftMeters()
        self._steps = RaftSteps(
            replica,
            clock=clock,
            meters=self._meters,
            act=self._act,
            write=self._write,
            truncate=log.truncate,
            on_failure=self.fail,
        )
        self._replies = RaftReplies(self._steps, log, clock, leader=lambda: self.known_leader)
        self._tasks = RaftTasks(
            self._steps,
            log,
            transport=transport,
            committed=committed,
            snapshots=self.snapshots,
            on_failure=self.fail,
        )
        self._actions = RaftActions(
            self._steps,
            log,
            tasks=self._tasks,
            replies=self._replies,
            committed=committed,
            meters=self._meters,
            listener=RaftListener(on_leadership, on_voters, self._stopped.set),
            epoch=replica.core.state.epoch,
            is_voter_capable=replica.core.identity.is_voter_capable,
        )

    @property
    def leadership(self) -> QuorumLeadership:
        """Who leads now."""
        return self._actions.leadership

    @property
    def end_offset(self) -> int:
        """The end of the log, on disk or not."""
        return self._log.end_offset

    @property
    def directory(self) -> str:
        """The path of the log's directory."""
        return self._log.store.directory

    @property
    def is_unused(self) -> bool:
        """Whether no controller has initialized the cluster yet."""
        return self._log.is_unused

    @property
    def is_ended(self) -> bool:
        """Whether it has stopped or failed."""
        return self._is_ended

    @property
    def is_only_voter(self) -> bool:
        """Whether the quorum has no other voters."""
        return self._replica.core.is_only_voter

    @property
    def voters(self) -> VoterSet:
        """The voters that count now."""
        return self._replica.core.history.last_voters

    @property
    def bootstrap_servers(self) -> tuple[Destination, ...]:
        """The nodes that may know the leader."""
        return self._replica.core.bootstrap_servers

    def use_controllers(self, controllers: Sequence[Destination]) -> None:
        """Also look for the leader at the controllers that the metadata names."""
        self._replica.core.registered_controllers = controllers

    @property
    def key(self) -> ReplicaKey:
        """This replica: the node and the directory of its log."""
        return self._replica.core.key

    @property
    def kraft_version(self) -> int:
        """The last level of kraft.version in the log."""
        return self._replica.core.history.kraft_version

    @property
    def known_leader(self) -> KnownLeader:
        """The leader and its listeners, if they are known and `quorum-state` names the leader."""
        if self._steps.is_writing:
            return KnownLeader(NO_LEADER, self.leadership.epoch)
        return self._replica.core.known_leader()

    @property
    def has_working_leader(self) -> bool:
        """Whether this node leads, or the leader responds to it."""
        core, state = self._replica.core, self._replica.core.state
        if not isinstance(state, FollowerState):
            return core.is_leader
        # While a snapshot is installed, this node sends nothing.
        is_silent = self._steps.now_ms() >= state.fetch_deadline_ms and core.installing is None
        return state.has_fetched and not is_silent

    @property
    def leader_heard_s(self) -> float | None:
        """When another node that leads last responded, on the clock's monotonic time."""
        heard_ms = self._replica.core.leader_heard_ms
        return None if heard_ms is None else heard_ms / 1000

    @property
    def state_name(self) -> str:
        """The name of its state, as in Kafka."""
        return self._replica.core.state.name

    def figures(self) -> RaftFigures:
        """Return its figures."""
        return self._meters.figures(self._replica.core, self._steps.now_ms())

    @property
    def is_applied(self) -> bool:
        """Whether everything that is known to be committed is applied."""
        return self._committed.is_idle

    @property
    def is_caught_up(self) -> bool:
        """Whether everything is applied that the followed leader has reported as committed."""
        state = self._replica.core.state
        return (
            isinstance(state, FollowerState)
            and 0 <= state.leader_high_watermark <= self._committed.applied_offset
        )

    async def until_caught_up(self) -> bool:
        """Wait until this node, which follows, has caught up; return False if it has ended."""
        while not self.is_caught_up:
            if self._is_ended:
                return False
            self._steps.performed.clear()
            if self._committed.is_idle:
                await self._steps.performed.wait()
            else:
                await self._committed.settle()
        return True

    def start(self) -> None:
        """Begin from what is on disk; remove what a crash left."""
        self._log.store.remove_leftovers()
        self._steps.perform(self._replica.start(self._steps.now_ms()))

    async def stop(self, *, timeout_ms: int) -> None:
        """Resign if this node leads, wait for a successor, and close the connections."""
        self._steps.handle(ShutdownRequested(timeout_ms))
        await self._stopped.wait()
        await self.abandon()

    async def settle(self) -> None:
        """Wait until everything appended is committed and applied, or cannot be."""
        await self._tasks.until_synced()
        await self._committed.settle()

    async def abandon(self) -> None:
        """End immediately, without resigning; may be repeated."""
        self._end()
        self._committed.stop()
        await self._tasks.stop()
        await self._steps.settle()
        await self.snapshots.writer.settle()
        self._log.close()

    # Requests

    async def respond(
        self, key: ApiKey, version: int, body: Any, *, listener: str
    ) -> dict[str, Any]:
        """Return the response to a request of another node, which arrived on a listener.

        A node that has ended responds with BROKER_NOT_AVAILABLE.
        """
        return await self._replies.respond(key, version, body, listener=listener)

    async def describe(self) -> DescribeQuorumResponse:
        """Return the progress of voters and observers, with times since 1970.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER: this node does not lead.
        """
        return await self._replies.describe()

    # This node's controller

    def append(self, epoch: int, batches: EncodedBatches, change: ClusterChange) -> None:
        """Append a change of the controller that leads an epoch.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER: this node does not lead that epoch, or no longer.
            OSError: Nothing was appended.
        """
        self._check_leads(epoch)
        appended = self._log.append_change(batches, change)
        self._steps.perform(self._replica.append(epoch, appended, self._steps.now_ms()))

    def upgrade(self, epoch: int, kraft_version: int, *, is_dry_run: bool) -> None:
        """Raise kraft.version, or only check whether it can be raised.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER; INVALID_UPDATE_VERSION.
        """
        self._check_leads(epoch)
        now_ms = self._steps.now_ms()
        self._steps.perform(
            self._replica.upgrade(epoch, kraft_version, now_ms, is_dry_run=is_dry_run)
        )

    def resign(self, epoch: int) -> None:
        """Stop leading an epoch, because its controller has failed."""
        self._steps.handle(ResignationRequested(epoch))

    def _check_leads(self, epoch: int) -> None:
        """Check that this node leads an epoch.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER.
        """
        leader_id, led_epoch, _ = self.leadership
        leads = (leader_id, led_epoch) == (self.key.replica_id, epoch)
        # The machine writes its election state only to begin or to end a term.
        if self._is_ended or not leads or self._steps.is_writing:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this node does not lead epoch {epoch}"
            )

    # The actions of a step

    def _act(self, action: RaftAction) -> None:
        self._actions.perform(action)

    def _write(self, action: Persist) -> None:
        """Write and sync `quorum-state`. Blocks."""
        content = encode_election_state(action.election, action.data_version)
        self._files.write_file(f"{self._log.store.directory}/{ELECTION_FILE}", content)

    # Its own snapshots

    def look_for_snapshot(self, image: ClusterImage) -> None:
        """Begin a snapshot of the applied image, if one is due."""
        core = self._replica.core
        if self._is_ended or self._steps.is_writing or core.installing is not None:
            return
        try:
            self.snapshots.look(
                image,
                synced_offset=core.log.synced_offset,
                controls=self._replica.snapshot_controls,
            )
        except OSError as error:
            if is_disk_failure(error):
                self.fail(error)
            else:
                LOGGER.warning("cannot start a metadata snapshot: %s", error)

    def _snapshot_is_written(self, snapshot: SnapshotId, size: int) -> None:
        self._steps.handle(SnapshotCreated(point_of(snapshot), size, is_log_start=True))

    # The end

    def fail(self, error: OSError) -> None:
        """End, because a write has failed."""
        self._fail(error, f"the metadata log cannot be written: {error}")

    def _cannot_read(self, error: OSError) -> None:
        self._fail(error, f"the metadata log cannot be read: {error}")

    def _fail(self, error: OSError, failure: str) -> None:
        if self._is_ended:
            return
        self.failure = failure
        LOGGER.error("%s", self.failure)
        self._end()
        self._on_failure(error)

    def _end(self) -> None:
        self._is_ended = True
        self._stopped.set()
        self._steps.end()
        self._tasks.end()
        self._replies.end()
        self._transport.abort()
