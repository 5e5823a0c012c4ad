"""The raft machine of one replica: an event and a time in, actions out. It does no I/O.

    replica = RaftReplica(...)          state of `quorum-state`, the log and its snapshots
    step = replica.start(now_ms)
    step = replica.step(event, now_ms)  step.actions are performed in order (actions.py);
                                        a Tick is due at step.wake_ms, unless an event comes first

`now_ms` is of a clock that does not go back. Timeouts take their randomness from an argument. A
step costs time in proportion to the event and to the number of voters and waiting fetches.

Source: Kafka's KafkaRaftClient (KIP-595, KIP-853, KIP-996).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.coordinator.raft.event_handlers import handle_event
from wirebroker.coordinator.raft.handlers.leadership import take_batches
from wirebroker.coordinator.raft.handlers.voter_changes import upgrade_kraft_version
from wirebroker.coordinator.raft.polling import poll
from wirebroker.coordinator.raft.protocol.actions import ShutdownFinished
from wirebroker.coordinator.raft.starting import enter_first_state
from wirebroker.coordinator.raft.states.epoch_states import NEVER
from wirebroker.coordinator.raft.states.replica_core import ReplicaCore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.codecs.records.control import ControlRecord
    from wirebroker.coordinator.raft.model.election_state import ElectionState
    from wirebroker.coordinator.raft.model.log_point import RaftBatch
    from wirebroker.coordinator.raft.model.log_view import LogView
    from wirebroker.coordinator.raft.model.quorum_settings import QuorumSettings
    from wirebroker.coordinator.raft.model.voter_history import VoterHistory
    from wirebroker.coordinator.raft.protocol.actions import RaftAction
    from wirebroker.coordinator.raft.protocol.events import RaftEvent
    from wirebroker.coordinator.raft.states.replica_core import Identity
    from wirebroker.coordinator.raft.states.request_manager import RandomSource


class RaftStep(NamedTuple):
    """The result of a step."""

    actions: list[RaftAction]
    wake_ms: int


class RaftReplica:
    """One replica of the metadata log."""

    __slots__ = ("core",)

    def __init__(
        self,
        identity: Identity,
        *,
        settings: QuorumSettings,
        log: LogView,
        history: VoterHistory,
        election: ElectionState,
        random: RandomSource,
    ) -> None:
        self.core = ReplicaCore(
            identity,
            settings=settings,
            log=log,
            history=history,
            election=election,
            random=random,
        )

    def start(self, now_ms: int) -> RaftStep:
        """Continue from what is on disk."""
        enter_first_state(self.core, now_ms)
        return self._finish_step(now_ms)

    def step(self, event: RaftEvent, now_ms: int) -> RaftStep:
        """Handle an event."""
        if not self.core.is_stopped:
            handle_event(self.core, event, now_ms)
        return self._finish_step(now_ms)

    def append(self, epoch: int, batches: Sequence[RaftBatch], now_ms: int) -> RaftStep:
        """Append batches of this node's controller at the end of the log.

        They are committed when the high watermark says so.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER: this node does not lead that epoch, or no longer.
        """
        take_batches(self.core, epoch, batches)
        return self._finish_step(now_ms)

    def upgrade(
        self, epoch: int, kraft_version: int, now_ms: int, *, is_dry_run: bool = False
    ) -> RaftStep:
        """Raise the level of kraft.version, or only check whether it can be raised.

        Raises:
            KafkaError: See upgrade_kraft_version.
        """
        upgrade_kraft_version(self.core, epoch, kraft_version, is_dry_run=is_dry_run)
        return self._finish_step(now_ms)

    def snapshot_controls(self, end_offset: int) -> tuple[ControlRecord, ...]:
        """Return the control records for the header of a snapshot that ends at an offset."""
        return self.core.history.records_at(end_offset - 1)

    def _finish_step(self, now_ms: int) -> RaftStep:
        wake_ms = NEVER if self._is_finished(now_ms) else poll(self.core, now_ms)
        self.core.check()
        actions, self.core.actions = self.core.actions, []
        return RaftStep(actions, wake_ms)

    def _is_finished(self, now_ms: int) -> bool:
        core = self.core
        if core.is_stopped or core.shutdown_deadline_ms is None:
            return core.is_stopped
        has_successor = core.state.leader_id not in (None, core.key.replica_id)
        is_done = not core.is_voter or core.is_only_voter or has_successor
        if not is_done and now_ms < core.shutdown_deadline_ms:
            return False
        core.is_stopped = True
        core.actions.append(ShutdownFinished(is_timed_out=not is_done))
        return True
