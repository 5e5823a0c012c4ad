"""A batch of in-flight records, tracked as a whole or by offset.

Kafka keeps one state per offset once members treat the records of a batch differently. Here
consecutive offsets with the same state share one object, so the costs depend on the differences and
not on the number of records.

Source: Kafka's InFlightBatch.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from wirebroker.coordinator.share_partitions.record_state import InFlightState, RecordState

if TYPE_CHECKING:
    from collections.abc import Iterator


def _first_offset(state: InFlightState) -> int:
    return state.first_offset


class InFlightBatch:
    """Records that were acquired together.

    Attributes:
        tracks_offsets: Whether records may have different states.
        states: In the order of offsets, without gaps; a single one unless `tracks_offsets`.
    """

    __slots__ = ("first_offset", "last_offset", "states", "tracks_offsets")

    def __init__(self, state: InFlightState) -> None:
        self.first_offset = state.first_offset
        self.last_offset = state.last_offset
        self.states = [state]
        self.tracks_offsets = False

    @property
    def state(self) -> InFlightState:
        """The state of the whole batch."""
        assert not self.tracks_offsets
        return self.states[0]

    @property
    def count(self) -> int:
        """The number of offsets."""
        return self.last_offset - self.first_offset + 1

    def is_within(self, first_offset: int, last_offset: int) -> bool:
        """Return whether all offsets are in a range."""
        return self.first_offset >= first_offset and self.last_offset <= last_offset

    def begins_before(self, offset: int) -> bool:
        """Return whether `offset` is in the batch, but not its first one."""
        return self.first_offset < offset <= self.last_offset

    def track_offsets(self) -> None:
        """Allow different states from now on."""
        self.tracks_offsets = True

    def extend(self, state: InFlightState) -> None:
        """Add the following records, with another state."""
        self.states.append(state)
        self.last_offset = state.last_offset
        self.tracks_offsets = True

    def index(self, offset: int) -> int:
        """Return the index of the state that holds `offset`."""
        return max(0, bisect_right(self.states, offset, key=_first_offset) - 1)

    def state_at(self, offset: int) -> InFlightState:
        """Return the state that holds `offset`."""
        return self.states[self.index(offset)]

    def among(self, first_offset: int, last_offset: int) -> Iterator[InFlightState]:
        """Yield the states with offsets in a range, divided at its ends.

        States that cannot be changed now are not divided.
        """
        index = self.index(first_offset)
        if self.states[index].first_offset < first_offset and self.states[index].is_divisible:
            self.states.insert(index + 1, self.states[index].split(first_offset))
            index += 1
        while index < len(self.states):
            state = self.states[index]
            if state.first_offset > last_offset:
                return
            if state.last_offset > last_offset and state.is_divisible:
                self.states.insert(index + 1, state.split(last_offset + 1))
            yield state
            index += 1

    def divide_acquired(self, offset: int) -> None:
        """Divide the state that holds `offset` there, if its records are acquired."""
        index = self.index(offset)
        state = self.states[index]
        if state.state is RecordState.ACQUIRED and state.first_offset < offset:
            self.tracks_offsets = True
            self.states.insert(index + 1, state.split(offset))

    def join(self) -> None:
        """Join neighbors whose states have become the same."""
        joined = self.states[:1]
        for state in self.states[1:]:
            last = joined[-1]
            if last.is_like(state):
                last.last_offset = state.last_offset
            else:
                joined.append(state)
        self.states = joined

    def check(self) -> None:
        """Assert the invariants above."""
        assert self.tracks_offsets or len(self.states) == 1
        expected = self.first_offset
        for state in self.states:
            assert state.first_offset == expected <= state.last_offset
            has_owner = bool(state.member_id)
            assert has_owner == (state.state is RecordState.ACQUIRED)
            expected = state.last_offset + 1
        assert expected == self.last_offset + 1
