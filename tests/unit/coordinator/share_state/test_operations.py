"""The requests to one shard; tests/transcripts/share_group_state.txt compares them with Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.coordinators.share_state_kit import (
    OTHER_TOPIC,
    PARTITIONS,
    START_MS,
    TOPIC,
    ShareStates,
    batches,
    image_of,
    key_of,
)
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.share_state_records import (
    ShareStateKind,
    decode_share_state_key,
    decode_share_state_value,
)
from wirebroker.coordinator.share_state.errors import state_error
from wirebroker.coordinator.share_state.state import (
    PersistedState,
    SharePartitionKey,
    StateError,
    StateSummary,
)
from wirebroker.coordinator.share_state.upkeep import sweep_cold_partitions, sweep_deleted_topics

if TYPE_CHECKING:
    from collections.abc import Sequence

SNAPSHOT, UPDATE = ShareStateKind.SHARE_SNAPSHOT, ShareStateKind.SHARE_UPDATE
FENCED_LEADER = state_error(ErrorCode.FENCED_LEADER_EPOCH)
FENCED_STATE = state_error(ErrorCode.FENCED_STATE_EPOCH)
UNKNOWN = state_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def kinds(states: ShareStates) -> list[ShareStateKind | None]:
    """Return the kinds of the log's records; None for a deletion."""
    kinds: list[ShareStateKind | None] = []
    for _, record in states.log:
        key = decode_share_state_key(record.key)
        assert key is not None
        kinds.append(None if record.value is None else key.kind)
    return kinds


def test_initialized_state_is_read() -> None:
    states = ShareStates()
    assert states.initialize(3, 10) is None
    assert states.read() == PersistedState(3, 10, -1, ())
    assert states.summary() == StateSummary(3, 0, 10, 0)
    assert kinds(states) == [SNAPSHOT]


def test_unknown_start_offset_has_no_count() -> None:
    states = ShareStates()
    states.initialize(0, -1)
    assert states.summary() == StateSummary(0, 0, -1, -1)


def test_absent_state_has_an_empty_summary() -> None:
    assert ShareStates().summary() == StateSummary(0, 0, -1, -1)


def test_read_by_a_new_leader_is_recorded_once() -> None:
    states = ShareStates()
    states.initialize()
    assert states.read(4) == states.read(4)
    assert kinds(states) == [SNAPSHOT, UPDATE]
    assert states.read(3) == FENCED_LEADER
    assert states.summary() == StateSummary(0, 4, 0, 0)
    assert states.reloaded().read(3) == FENCED_LEADER


def test_write_is_fenced_by_leader_epoch_then_by_state_epoch() -> None:
    states = ShareStates()
    states.initialize(2)
    states.read(4)
    assert states.write(leader_epoch=3, state_epoch=1) == FENCED_LEADER
    assert states.write(leader_epoch=4, state_epoch=1) == FENCED_STATE
    assert states.write("0-9 s2 c1", leader_epoch=5, state_epoch=3) is None
    # A write records no epochs.
    assert states.summary() == StateSummary(2, 4, 0, 0)
    assert states.read(4) == PersistedState(2, 0, -1, batches("0-9 s2 c1"))


def test_initialization_with_an_older_state_epoch_is_fenced() -> None:
    states = ShareStates()
    states.initialize(2)
    assert states.initialize(1) == FENCED_STATE
    assert states.initialize(2, 7) is None
    assert states.read() == PersistedState(2, 7, -1, ())


def test_initialization_keeps_the_leader_fence_until_deletion() -> None:
    states = ShareStates()
    states.initialize()
    states.read(4)
    states.initialize(1)
    assert states.read(3) == FENCED_LEADER
    states.delete()
    states.initialize()
    assert states.read(0) == PersistedState(0, 0, -1, ())


@pytest.mark.parametrize(
    ("start_offset", "complete", "expected"),
    [
        pytest.param(12, 1, (12, 1), id="a higher start offset brings its count"),
        pytest.param(10, 9, (10, 9), id="at the same one the higher count"),
        pytest.param(10, 1, (10, 5), id="at the same one not the lower count"),
        pytest.param(8, 99, (10, 5), id="a lower start offset changes nothing"),
        pytest.param(-1, 99, (10, 5), id="none changes nothing"),
    ],
)
def test_start_offset_and_count(
    start_offset: int, complete: int, expected: tuple[int, int]
) -> None:
    states = ShareStates()
    states.initialize(0, 10)
    states.write(start_offset=10, complete=5)
    states.write(start_offset=start_offset, complete=complete)
    assert states.summary() == StateSummary(0, 0, *expected)


def test_every_few_updates_a_snapshot_follows() -> None:
    states = ShareStates(updates_per_snapshot=2)
    states.initialize()
    for offset in range(6):
        states.now_ms = offset
        states.write(f"{offset} s2 c1")
    assert kinds(states) == [SNAPSHOT, *([UPDATE, UPDATE, SNAPSHOT] * 2)]
    _, record = states.log[-1]
    assert record.value is not None
    value = decode_share_state_value(SNAPSHOT, record.value)
    assert value.snapshot_epoch == 2
    assert value.create_timestamp == value.write_timestamp == START_MS + 5
    assert [(batch.first_offset, batch.last_offset) for batch in value.state_batches] == [(0, 5)]


def test_without_updates_every_write_is_a_snapshot() -> None:
    states = ShareStates(updates_per_snapshot=0)
    states.initialize()
    states.write("0 s2 c1")
    states.write("1 s2 c1")
    assert kinds(states) == [SNAPSHOT] * 3


def test_update_has_only_its_own_merged_batches() -> None:
    states = ShareStates()
    states.initialize(0, 5)
    states.write("0-9 s0 c1", "8-12 s2 c2")
    states.write("20 s0 c1")
    _, record = states.log[1]
    assert record.value is not None
    value = decode_share_state_value(UPDATE, record.value)
    assert [(batch.first_offset, batch.last_offset) for batch in value.state_batches] == [
        (5, 7),
        (8, 12),
    ]
    state = states.read()
    assert isinstance(state, PersistedState)
    assert state.batches == batches("5-7 s0 c1", "8-12 s2 c2", "20 s0 c1")


def test_backwards_batch_changes_nothing_if_it_cannot_be_merged() -> None:
    states = ShareStates()
    states.initialize()
    states.write("0-9 s0 c1")
    before = states.read()
    assert states.write("8-4 s0 c2") == state_error(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert states.write("8-4 s0 c2", "12 s0 c1") == state_error(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert states.read() == before
    assert states.reloaded().read() == before


def test_failed_append_changes_nothing() -> None:
    states = ShareStates()
    states.initialize()
    states.fails_with = ErrorCode.NOT_COORDINATOR
    assert states.write("0 s2 c1") == state_error(ErrorCode.NOT_COORDINATOR)
    states.fails_with = None
    assert states.read() == PersistedState(0, 0, -1, ())


def test_deletion_of_an_absent_state_succeeds_without_a_record() -> None:
    states = ShareStates()
    assert states.delete() is None
    assert kinds(states) == []
    states.initialize()
    assert states.delete() is None
    assert kinds(states) == [SNAPSHOT, None]
    assert states.delete() is None
    assert not states.reloaded().shard.recorded


@pytest.mark.parametrize(
    "key", [key_of(PARTITIONS), key_of(topic_id=b"x" * 16)], ids=["partition", "topic"]
)
def test_absent_partition(key: SharePartitionKey) -> None:
    states = ShareStates()
    assert states.initialize(key=key) == UNKNOWN
    assert states.delete(key) == UNKNOWN
    assert states.summary(key) == UNKNOWN
    for result in (states.read(key=key), states.write(key=key)):
        assert isinstance(result, StateError)
        assert result.code is ErrorCode.INVALID_REQUEST


def test_state_of_a_partition_that_is_gone() -> None:
    states = ShareStates()
    states.initialize()
    states.shard.image = image_of()
    assert states.read() == UNKNOWN
    assert states.write() == UNKNOWN
    assert states.write(state_epoch=-1) != UNKNOWN


def test_negative_numbers_are_invalid() -> None:
    states = ShareStates()
    states.initialize()
    refused = [
        states.initialize(key=key_of(-1)),
        states.initialize(-1),
        states.read(-1),
        states.read(key=key_of(-1)),
        states.write(leader_epoch=-1),
        states.write(state_epoch=-1),
        states.write(key=key_of(-1)),
        states.delete(key_of(-1)),
        states.summary(key_of(-1)),
    ]
    codes = {result.code for result in refused if isinstance(result, StateError)}
    assert codes == {ErrorCode.INVALID_REQUEST}
    assert all(isinstance(result, StateError) for result in refused)


def test_update_without_a_snapshot_is_loaded() -> None:
    states = ShareStates()
    states.initialize(3, 10)
    states.read(2)
    states.write("10 s2 c1", start_offset=10, leader_epoch=2, state_epoch=3)
    loaded = ShareStates(log=states.log[1:])
    assert loaded.read(2) == PersistedState(0, 10, -1, batches("10 s2 c1"))
    assert loaded.write(state_epoch=0, leader_epoch=2) is None


def test_keys_of_other_kinds_are_ignored() -> None:
    states = ShareStates()
    states.shard.replay(b"\x00\x07other", b"")
    assert not states.shard.recorded


def test_redundant_prefix_ends_at_the_oldest_last_snapshot() -> None:
    states = ShareStates(updates_per_snapshot=1)
    assert states.redundant_end() == 0
    states.initialize(key=key_of(0))  # 0
    states.initialize(key=key_of(1))  # 1
    assert states.redundant_end() == 0
    states.write("0 s2 c1", key=key_of(0))  # 2
    states.write("1 s2 c1", key=key_of(0))  # 3, a snapshot
    assert states.redundant_end() == 1
    states.delete(key_of(1))  # 4
    assert states.redundant_end() == 3
    states.delete(key_of(0))  # 5
    assert states.redundant_end() == 5
    assert states.reloaded().redundant_end() == 5


def test_pruned_log_loads_the_same_state() -> None:
    states = ShareStates(updates_per_snapshot=1)
    for partition in range(PARTITIONS):
        states.initialize(key=key_of(partition))
        for offset in range(3):
            states.write(f"{offset} s2 c1", key=key_of(partition))
    expected = [states.read(key=key_of(partition)) for partition in range(PARTITIONS)]
    length = len(states.log)
    states.prune()
    assert len(states.log) < length
    loaded = states.reloaded()
    assert [loaded.read(key=key_of(partition)) for partition in range(PARTITIONS)] == expected


def test_cold_partitions_get_a_snapshot() -> None:
    states = ShareStates(cold_snapshot_interval_ms=100)
    states.initialize(key=key_of(0))
    states.write("0 s2 c1", key=key_of(0))
    states.now_ms = 60
    states.initialize(key=key_of(1))
    states.now_ms = 100
    before = states.read(key=key_of(0))
    assert states.sweep(sweep_cold_partitions(states.shard, states.moment.wall_ms)) == 1
    assert states.read(key=key_of(0)) == before
    state = states.shard.recorded[key_of(0)].state
    assert state.snapshot_epoch == 1
    assert (state.create_timestamp_ms, state.write_timestamp_ms) == (START_MS, START_MS + 100)
    states.now_ms = 160
    assert states.sweep(sweep_cold_partitions(states.shard, states.moment.wall_ms)) == 1
    # Once all are cold, nothing is written any further.
    states.now_ms = 10_000
    assert states.sweep(sweep_cold_partitions(states.shard, states.moment.wall_ms)) == 0
    states.initialize(key=key_of(2))
    states.now_ms = 20_000
    assert states.sweep(sweep_cold_partitions(states.shard, states.moment.wall_ms)) == 3


def test_states_of_deleted_topics_are_deleted() -> None:
    states = ShareStates()
    for topic_id in (TOPIC, OTHER_TOPIC):
        for group_id in "gh":
            states.initialize(key=key_of(0, topic_id, group_id))
    assert states.sweep(sweep_deleted_topics(states.shard, {TOPIC})) == 2
    assert set(states.shard.recorded) == {key_of(0, OTHER_TOPIC, "g"), key_of(0, OTHER_TOPIC, "h")}
    assert states.reloaded().shard.recorded.keys() == states.shard.recorded.keys()


TEXT = "AAAAAAAAAAAAAAAAAAAAAA"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"g:{TEXT}:7", ("g", 7)),
        (f"a:b::{TEXT}:+1", ("a:b:", 1)),
        (f"g:{TEXT}:-2147483648::", ("g", -(1 << 31))),
    ],
)
def test_key_is_parsed(text: str, expected: Sequence[object]) -> None:
    group_id, partition = expected
    key = SharePartitionKey.parse(text)
    assert key == (group_id, bytes(16), partition)
    assert SharePartitionKey.parse(str(key)) == key


@pytest.mark.parametrize(
    "text",
    [
        *("", ":", "g", f"{TEXT}:0", f" :{TEXT}:0", f"g:{TEXT}:x", f"g:{TEXT}: 1", f"g:{TEXT}:1_0"),
        *(f"g:{TEXT}:2147483648", f"g:{TEXT[1:]}:0", f"g:{TEXT}:{'1' * 5_000}"),
    ],
)
def test_text_that_is_no_key(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        SharePartitionKey.parse(text)
