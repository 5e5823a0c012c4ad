"""Performs the actions of one replica's machine: on files, connections and callers.

A step's actions are performed in order and in one turn of the event loop (raft_steps.py). What
takes longer begins a task (raft_tasks.py). The steps themselves perform Persist and Truncate, which
wait for the disk.

Source: Kafka's KafkaRaftClient.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.base.log_bound import about_quorum
from wirebroker.coordinator.raft.protocol.actions import (
    Append,
    DiscardSnapshot,
    HighWatermarkAdvanced,
    InstallSnapshot,
    LeaderChanged,
    Persist,
    Respond,
    Send,
    ShutdownFinished,
    Sync,
    Truncate,
    Violation,
    VotersChanged,
    WriteSnapshot,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.coordinator.raft.model.log_point import RaftBatch
    from wirebroker.coordinator.raft.protocol.actions import RaftAction
    from wirebroker.quorum.raft.committed_records import CommittedRecords
    from wirebroker.quorum.raft.raft_log import RaftLog
    from wirebroker.quorum.raft.raft_meters import RaftMeters
    from wirebroker.quorum.raft.raft_replies import RaftReplies
    from wirebroker.quorum.raft.raft_steps import RaftSteps
    from wirebroker.quorum.raft.raft_tasks import RaftTasks

LOGGER = logging.getLogger(__name__)

_ABOUT_PEERS = about_quorum()


class QuorumLeadership(NamedTuple):
    """Who leads.

    Attributes:
        start_offset: If this node leads: the first offset of its epoch.
    """

    leader_id: int | None
    epoch: int
    start_offset: int | None = None


class RaftListener(NamedTuple):
    """Functions that a replica calls within a step; they must not call the replica.

    Attributes:
        on_leadership: Called with each new leader or epoch.
        on_voters: Called when another set of voters is in effect.
        on_shutdown: Called when this replica has resigned.
    """

    on_leadership: Callable[[QuorumLeadership], None]
    on_voters: Callable[[], None]
    on_shutdown: Callable[[], None]


class RaftActions:
    """The actions of a replica, on one event loop.

    Attributes:
        leadership: Who leads now.
    """

    __slots__ = (
        "_committed",
        "_is_voter_capable",
        "_listener",
        "_log",
        "_meters",
        "_replies",
        "_steps",
        "_tasks",
        "leadership",
    )

    def __init__(
        self,
        steps: RaftSteps,
        log: RaftLog,
        *,
        tasks: RaftTasks,
        replies: RaftReplies,
        committed: CommittedRecords,
        meters: RaftMeters,
        listener: RaftListener,
        epoch: int,
        is_voter_capable: bool,
    ) -> None:
        """Store the parts; `epoch` is the epoch at the start, when no leader is known."""
        self._steps = steps
        self._log = log
        self._tasks = tasks
        self._replies = replies
        self._committed = committed
        self._meters = meters
        self._listener = listener
        self._is_voter_capable = is_voter_capable
        self.leadership = QuorumLeadership(None, epoch)

    def perform(self, action: RaftAction) -> None:  # noqa: C901, PLR0912 - a table
        """Perform an action, except Persist and Truncate."""
        match action:
            case Append(batches):
                self._append(batches)
            case Sync(point):
                self._tasks.sync(point)
            case WriteSnapshot(point, position, data):
                self._log.write_part(point, position, data)
            case DiscardSnapshot(point):
                self._log.delete_part(point)
            case InstallSnapshot(point):
                self._tasks.install(point)
            case Send():
                self._tasks.send(action)
            case Respond(token, response):
                if (reading := self._replies.give(token, response)) is not None:
                    self._tasks.begin(reading)
            case LeaderChanged(leader_id, epoch, start_offset):
                self.leadership = QuorumLeadership(leader_id, epoch, start_offset)
                self._meters.note_new_epoch()
                self._listener.on_leadership(self.leadership)
            case HighWatermarkAdvanced(high_watermark):
                self._meters.note_commit(high_watermark, self._steps.now_ms())
                self._committed.advance(high_watermark)
            case VotersChanged(voters):
                LOGGER.info("the voters of the metadata quorum are now %s", sorted(voters.ids))
                self._listener.on_voters()
            case Violation(text, lacks_commits):
                self._note_violation(text, lacks_commits=lacks_commits)
            case ShutdownFinished():
                self._listener.on_shutdown()
            case Persist() | Truncate():
                raise AssertionError("its steps wait for it")

    def _append(self, batches: Sequence[RaftBatch]) -> None:
        end_offset = batches[-1].end_offset
        # The controller's own batches are in the log already (RaftNode.append).
        if end_offset > self._log.end_offset:
            self._log.append(batches)
        self._meters.note_append(
            end_offset - batches[0].base_offset,
            end_offset,
            self._steps.now_ms(),
            is_leader=self.leadership.start_offset is not None,
        )

    def _note_violation(self, text: str, *, lacks_commits: bool) -> None:
        LOGGER.warning("ignored a message of the metadata quorum: %s", text, extra=_ABOUT_PEERS)
        if lacks_commits and not self._is_voter_capable:
            self._committed.fail(f"the cluster's metadata cannot be followed: {text}")
