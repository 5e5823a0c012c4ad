"""A change of states that waits for the persister: begun, then committed or rolled back.

Source: Kafka's SharePartition.rollbackOrProcessStateUpdates, initiateDLQAndArchive.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.coordinator.share_partitions.archiving import note_available
from wirebroker.coordinator.share_partitions.record_state import (
    TERMINAL,
    InFlightState,
    RecordState,
)
from wirebroker.coordinator.share_state.state import StateBatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.share_partitions.share_partition import ShareLimits, SharePartition

# Values of the header __dlq.errors.message.
CLIENT_REJECT: Final = "Offset rejected by client."
DELIVERY_COUNT_EXCEEDED: Final = "Offset delivery count exceeded the threshold."


# States before other work may run.
_STEP: Final = 500


class DeadRecords(NamedTuple):
    """Records in state ARCHIVING, to be written to the dead-letter topic and then archived."""

    state: InFlightState
    cause: str


class StateChange:
    """Transitions that are persisted together.

    Attributes:
        batches: Their new states, as the persister stores them.
    """

    __slots__ = ("_partition", "_states", "batches")

    def __init__(self, partition: SharePartition) -> None:
        self._partition = partition
        # In transition, each with the cause of its dead letters.
        self._states: deque[tuple[InFlightState, str]] = deque()
        self.batches: list[StateBatch] = []

    def begin(
        self, state: InFlightState, new_state: RecordState, limits: ShareLimits, cause: str = ""
    ) -> bool:
        """Begin the transition of one state; return False if the state does not allow it.

        `cause` is that of dead letters; by default the delivery count is used up.
        """
        if not state.begin(
            new_state,
            limit=limits.delivery_count_limit,
            has_dead_letters=limits.has_dead_letters,
        ):
            return False
        self._states.append((state, cause or DELIVERY_COUNT_EXCEEDED))
        self.batches.append(persisted(state))
        self._partition.count_done(state)
        return True

    def commit(self) -> Steps[list[DeadRecords]]:
        """Complete the transitions, which are persisted; return the records that are dead now."""
        dead: list[DeadRecords] = []
        states, partition = self._states, self._partition
        while states:
            state, cause = states.popleft()
            state.complete()
            if state.state is RecordState.AVAILABLE:
                note_available(partition, state)
            elif state.state is RecordState.ARCHIVING:
                dead.append(DeadRecords(state, cause))
            if len(states) % _STEP == 0:
                yield
        return dead

    def roll_back(self, now_ms: Callable[[], float]) -> Steps[None]:
        """Restore the states before the transitions; closed early, do the rest immediately.

        Locks that have ended meanwhile are not restored. `now_ms` returns the time of locks, which
        passes between two steps.
        """
        states = self._states
        try:
            while states:
                self._undo(states.popleft()[0], now_ms())
                if len(states) % _STEP == 0:
                    yield
        finally:
            while states:
                self._undo(states.popleft()[0], now_ms())

    def _undo(self, state: InFlightState, now_ms: float) -> None:
        partition = self._partition
        was_done = state.state in TERMINAL
        state.undo(now_ms)
        if state.state is RecordState.AVAILABLE:
            note_available(partition, state)
        is_done = state.state in TERMINAL
        if is_done != was_done:
            count = partition.count_in_flight(state.first_offset, state.last_offset)
            partition.delivery_complete_count += count if is_done else -count


def persisted(state: InFlightState) -> StateBatch:
    """Return a state as the persister stores it."""
    return StateBatch(state.first_offset, state.last_offset, state.state, state.delivery_count)


def archive_dead(partition: SharePartition, dead: DeadRecords) -> StateBatch:
    """Archive records that are dead letters now, or could not be; return what to persist.

    Source: Kafka's SharePartition.initiateDLQAndArchive.
    """
    state = dead.state
    was_done = state.state in TERMINAL
    state.archive()
    if not was_done:
        partition.count_done(state)
    return persisted(state)
