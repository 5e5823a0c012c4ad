"""A share coordinator's shard under random requests, loads, failed appends and pruned logs.

The reference keeps delivery counts and states offset by offset. So it is Kafka's rule in other
words: the highest delivery count wins, then the highest state, and offsets below the start offset
are forgotten.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.support.coordinators.share_state_kit import ShareStates, key_of
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.share_state.batch_merge import (
    NO_START_OFFSET,
    extend_batches,
    is_ordered,
    merge_batches,
)
from wirebroker.coordinator.share_state.state import PersistedState, StateBatch, StateError
from wirebroker.coordinator.share_state.upkeep import sweep_cold_partitions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LARGEST = 60
SELDOM = st.sampled_from([False] * 7 + [True])
PARTITION = st.integers(0, 1)
EPOCH = st.integers(0, 4)
OFFSET = st.integers(0, LARGEST)


@st.composite
def any_batch(draw: st.DrawFn) -> StateBatch:
    first = draw(OFFSET)
    last = min(first + draw(st.sampled_from([0, 0, 1, 3, 20])), LARGEST)
    return StateBatch(first, last, draw(st.sampled_from([0, 2, 4])), draw(st.integers(1, 3)))


BATCHES = st.lists(any_batch(), max_size=6)

# Delivery count and delivery state by offset.
ByOffset = dict[int, tuple[int, int]]


def by_offset(batches: Iterable[StateBatch], start_offset: int) -> ByOffset:
    merged: ByOffset = {}
    for first, last, state, count in batches:
        for offset in range(max(first, start_offset), last + 1):
            merged[offset] = max(merged.get(offset, (0, 0)), (count, state))
    return merged


@given(st.lists(any_batch(), max_size=12), BATCHES, st.integers(-1, LARGEST))
def test_merge_keeps_the_highest_of_each_offset(
    stored: list[StateBatch], newer: list[StateBatch], start_offset: int
) -> None:
    first = merge_batches((), stored, NO_START_OFFSET)
    merged = merge_batches(first, newer, start_offset)
    assert by_offset(merged, -1) == by_offset([*stored, *newer], start_offset)
    assert is_ordered(merged)
    for former, batch in pairwise(merged):
        is_adjacent = former.last_offset + 1 == batch.first_offset
        assert not (is_adjacent and former[2:] == batch[2:])
    ordered = merge_batches((), newer, NO_START_OFFSET)
    assert extend_batches(first, ordered, start_offset) == merged


class ShareStateMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.real = ShareStates()
        self.by_offset: dict[int, ByOffset] = {}
        self.start_offset: dict[int, int] = {}
        self.state_epoch: dict[int, int] = {}
        # The highest epoch of a read.
        self.leader_epoch: dict[int, int] = {}

    @initialize(updates=st.sampled_from([0, 1, 2, 500]))
    def begin(self, updates: int) -> None:
        self.real = ShareStates(updates_per_snapshot=updates, cold_snapshot_interval_ms=100)

    def ask(self, request: Callable[[], Any], *, fails: bool = False) -> Any:
        """Send a request; return its result, or None if the append failed."""
        self.real.fails_with = ErrorCode.NOT_COORDINATOR if fails else None
        length = len(self.real.log)
        result = request()
        self.real.fails_with = None
        if isinstance(result, StateError) and result.code is ErrorCode.NOT_COORDINATOR:
            assert len(self.real.log) == length
        return result

    @rule(partition=PARTITION, epoch=EPOCH, start=st.integers(-1, LARGEST), fails=SELDOM)
    def initialize_state(self, partition: int, epoch: int, start: int, *, fails: bool) -> None:
        result = self.ask(
            lambda: self.real.initialize(epoch, start, key_of(partition)), fails=fails
        )
        if epoch < self.state_epoch.get(partition, 0):
            assert result.code is ErrorCode.FENCED_STATE_EPOCH
        elif not fails:
            assert result is None
            self.by_offset[partition] = {}
            self.start_offset[partition] = start
            self.state_epoch[partition] = epoch

    @rule(partition=PARTITION, epoch=EPOCH)
    def read(self, partition: int, epoch: int) -> None:
        result = self.ask(lambda: self.real.read(epoch, key_of(partition)))
        if partition not in self.by_offset:
            assert result.code is ErrorCode.INVALID_REQUEST
        elif epoch < self.leader_epoch.get(partition, 0):
            assert result.code is ErrorCode.FENCED_LEADER_EPOCH
        else:
            self.leader_epoch[partition] = epoch
            self.check_state(partition, result)

    @rule(
        partition=PARTITION,
        batches=BATCHES,
        start=st.integers(-1, LARGEST),
        epochs=st.tuples(EPOCH, EPOCH),
        fails=SELDOM,
    )
    def write(
        self,
        partition: int,
        batches: list[StateBatch],
        start: int,
        epochs: tuple[int, int],
        *,
        fails: bool,
    ) -> None:
        leader_epoch, state_epoch = epochs
        result = self.ask(
            lambda: self.real.write(
                *batches,
                start_offset=start,
                leader_epoch=leader_epoch,
                state_epoch=state_epoch,
                key=key_of(partition),
            ),
            fails=fails,
        )
        if partition not in self.by_offset:
            assert result.code is ErrorCode.INVALID_REQUEST
        elif leader_epoch < self.leader_epoch.get(partition, 0):
            assert result.code is ErrorCode.FENCED_LEADER_EPOCH
        elif state_epoch < self.state_epoch[partition]:
            assert result.code is ErrorCode.FENCED_STATE_EPOCH
        elif not fails:
            assert result is None
            self.note_write(partition, batches, start)

    def note_write(self, partition: int, batches: list[StateBatch], start: int) -> None:
        start = self.start_offset[partition] = max(start, self.start_offset[partition])
        merged = {
            offset: known for offset, known in self.by_offset[partition].items() if offset >= start
        }
        for offset, newer in by_offset(batches, start).items():
            merged[offset] = max(merged.get(offset, newer), newer)
        self.by_offset[partition] = merged

    @rule(partition=PARTITION, fails=SELDOM)
    def delete(self, partition: int, *, fails: bool) -> None:
        was_known = partition in self.by_offset
        result = self.ask(lambda: self.real.delete(key_of(partition)), fails=fails)
        if not (fails and was_known):
            assert result is None
            for known in (self.by_offset, self.start_offset, self.state_epoch, self.leader_epoch):
                known.pop(partition, None)

    @rule(elapsed_ms=st.sampled_from([1, 100, 1_000]))
    def snapshot_cold_partitions(self, elapsed_ms: int) -> None:
        self.real.now_ms += elapsed_ms
        self.real.sweep(sweep_cold_partitions(self.real.shard, self.real.moment.wall_ms))

    @rule()
    def prune(self) -> None:
        self.real.prune()

    @rule()
    def load(self) -> None:
        loaded = self.real.reloaded()
        states = {key: known.state for key, known in self.real.shard.recorded.items()}
        assert {key: known.state for key, known in loaded.shard.recorded.items()} == states
        # A pruned log may have lost epochs that fence, as in Kafka.
        for key, known in loaded.shard.recorded.items():
            self.leader_epoch[key.partition] = known.leader_epoch
        self.real = loaded

    @invariant()
    def states_are_the_reference(self) -> None:
        assert {key.partition for key in self.real.shard.recorded} == set(self.by_offset)
        for partition in self.by_offset:
            state = self.real.shard.recorded[key_of(partition)].state
            assert by_offset(state.batches, -1) == self.by_offset[partition]
            assert state.start_offset == self.start_offset[partition]
            assert state.state_epoch == self.state_epoch[partition]

    def check_state(self, partition: int, result: Any) -> None:
        assert isinstance(result, PersistedState)
        assert by_offset(result.batches, -1) == self.by_offset[partition]
        assert result.start_offset == self.start_offset[partition]


TestShareStateMachine = ShareStateMachine.TestCase
TestShareStateMachine.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
