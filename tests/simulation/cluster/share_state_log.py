"""A check of the log of a share coordinator: a small model of the persisted states.

The model keeps one state for each offset. Of two states of an offset, the one with the higher
delivery count remains, or the later one. A snapshot must repeat what the model knows. The start
offset falls only with a new state epoch, or when an initialization without effect is repeated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.codecs.records.coordinator_batches import KeyValueWalk
from wirebroker.codecs.share_state_records import (
    ShareStateKind,
    decode_share_state_key,
    decode_share_state_value,
)
from wirebroker.coordinator.share_state.state import SharePartitionKey

if TYPE_CHECKING:
    from wirebroker.coordinator.share_state.stored_state import StoredState

# Delivery state and delivery count.
OffsetState = tuple[int, int]


class PersistedOffsets:
    """One share partition.

    Attributes:
        start_offset: Everything below it is done.
        states: Those from the start offset on.
        last_states: The last state of each offset, including those below the start offset.
    """

    def __init__(self) -> None:
        self.state_epoch = -1
        self.start_offset = -1
        self.states: dict[int, OffsetState] = {}
        self.last_states: dict[int, OffsetState] = {}

    def snapshot(self, name: str, value: Any) -> None:
        states = _states(value)
        is_repeated = value.state_epoch == self.state_epoch and not self.last_states
        if value.state_epoch > self.state_epoch or is_repeated:
            self.state_epoch, self.start_offset = value.state_epoch, value.start_offset
            self.states = {}
        self._move(name, value.start_offset)
        for offset, known in self.states.items():
            new = states.get(offset)
            assert new is not None, f"a snapshot of {name} loses offset {offset}"
            assert new[1] >= known[1], f"the count of {offset} of {name} falls: {known}, {new}"
        self._merge(states)

    def update(self, name: str, value: Any) -> None:
        self._move(name, self.start_offset if value.start_offset < 0 else value.start_offset)
        self._merge(_states(value))

    def _move(self, name: str, start_offset: int) -> None:
        assert start_offset >= self.start_offset, f"the start offset of {name} falls"
        self.start_offset = start_offset
        self.states = {
            offset: state for offset, state in self.states.items() if offset >= start_offset
        }

    def _merge(self, states: dict[int, OffsetState]) -> None:
        for offset, state in states.items():
            self.last_states[offset] = max(
                state, self.last_states.get(offset, state), key=lambda each: each[1]
            )
            known = self.states.get(offset)
            if offset >= self.start_offset and (known is None or _wins(state, known)):
                self.states[offset] = state

    def check_same(self, name: str, stored: StoredState) -> None:
        """Check that a coordinator has the same state."""
        assert stored.start_offset == self.start_offset, f"another start offset of {name}"
        states = {
            offset: (batch.delivery_state, batch.delivery_count)
            for batch in stored.batches
            for offset in range(batch.first_offset, batch.last_offset + 1)
        }
        assert states == self.states, f"{name}: {states} instead of {self.states}"


def _wins(new: OffsetState, known: OffsetState) -> bool:
    return new[1] > known[1] or (new[1] == known[1] and new[0] >= known[0])


def _states(value: Any) -> dict[int, OffsetState]:
    return {
        offset: (batch.delivery_state, batch.delivery_count)
        for batch in value.state_batches
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }


def replay(log: bytes) -> dict[SharePartitionKey, PersistedOffsets]:
    """Return the states after all records of a partition's log."""
    found: dict[SharePartitionKey, PersistedOffsets] = {}
    walk = KeyValueWalk(log, 0, lambda _producer_id, _is_commit: None)
    for key_bytes, value_bytes, *_ in walk:
        decoded = decode_share_state_key(key_bytes)
        if decoded is None or value_bytes is None:
            continue
        key = SharePartitionKey(*decoded[1:])
        value = decode_share_state_value(decoded.kind, value_bytes)
        offsets = found.setdefault(key, PersistedOffsets())
        if decoded.kind is ShareStateKind.SHARE_SNAPSHOT:
            offsets.snapshot(str(key), value)
        else:
            offsets.update(str(key), value)
    return found
