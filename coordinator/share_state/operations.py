"""The requests for one share partition: create, read, write and delete its state.

Each takes (shard, key, ..., token, now); the response is `{"result": value}`, and the value a
StateError if the request is refused. State epochs fence former initializations by the group
coordinator, leader epochs former leaders of the share partition.

Source: Kafka's ShareCoordinatorShard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.outcome import Outcome
from wirebroker.coordinator.share_state.batch_merge import NO_START_OFFSET, merge_batches
from wirebroker.coordinator.share_state.errors import state_error
from wirebroker.coordinator.share_state.records import snapshot_record, tombstone, update_record
from wirebroker.coordinator.share_state.state import (
    PersistedState,
    StateError,
    StateSummary,
    StateWrite,
)
from wirebroker.coordinator.share_state.stored_state import NO_COUNT, StoredState

if TYPE_CHECKING:
    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.outcome import Moment, Token
    from wirebroker.coordinator.share_state.shard import ShareStateShard
    from wirebroker.coordinator.share_state.state import SharePartitionKey

# Kafka's messages.
_NEGATIVE_PARTITION: Final = "The partition id cannot be a negative number."
_NEGATIVE_LEADER_EPOCH: Final = "The leader epoch cannot be a negative number."
_NEGATIVE_STATE_EPOCH: Final = "The state epoch cannot be a negative number."
_UNKNOWN_WRITE: Final = "Write operation on uninitialized share partition not allowed."
_UNKNOWN_READ: Final = "Read operation on uninitialized share partition not allowed."


def initialize(
    shard: ShareStateShard,
    key: SharePartitionKey,
    initial: tuple[int, int],
    token: Token,
    now: Moment,
) -> Outcome:
    """Create or replace the state of a partition; `initial` is a state epoch and start offset."""
    state_epoch, start_offset = initial
    error: StateError | None
    former = shard.recorded.get(key)
    if key.partition < 0:
        error = _invalid(_NEGATIVE_PARTITION)
    elif state_epoch < 0:
        error = _invalid(_NEGATIVE_STATE_EPOCH)
    elif former is not None and former.state_epoch > state_epoch:
        error = state_error(ErrorCode.FENCED_STATE_EPOCH)
    else:
        error = _absence(shard, key)
    if error is not None:
        return _response(token, error)
    state = StoredState(
        snapshot_epoch=0 if former is None else former.state.snapshot_epoch + 1,
        state_epoch=state_epoch,
        leader_epoch=0,
        start_offset=start_offset,
        delivery_complete_count=NO_COUNT if start_offset == NO_START_OFFSET else 0,
        batches=(),
        create_timestamp_ms=now.wall_ms,
        write_timestamp_ms=now.wall_ms,
        is_ordered=True,
    )
    return _response(token, None, snapshot_record(key, state))


def read(
    shard: ShareStateShard, key: SharePartitionKey, leader_epoch: int, token: Token, now: Moment
) -> Outcome:
    """Return the state of a partition to its leader; record the epoch of a new leader."""
    partition = shard.recorded.get(key)
    error: StateError | None
    if key.partition < 0:
        error = _invalid(_NEGATIVE_PARTITION)
    elif leader_epoch < 0:
        error = _invalid(_NEGATIVE_LEADER_EPOCH)
    elif partition is None:
        error = _invalid(_UNKNOWN_READ)
    elif partition.leader_epoch > leader_epoch:
        error = state_error(ErrorCode.FENCED_LEADER_EPOCH)
    else:
        error = _absence(shard, key)
    if error is not None:
        return _response(token, error)
    assert partition is not None, "it is known"
    state = partition.state
    # Without the count, which the response of the protocol lacks.
    result = PersistedState(state.state_epoch, state.start_offset, NO_COUNT, state.batches)
    if partition.leader_epoch == leader_epoch:
        return _response(token, result)
    written = StateWrite(
        state.state_epoch, leader_epoch, state.start_offset, state.delivery_complete_count, ()
    )
    return _response(token, result, _written(shard, key, written, now))


def write(
    shard: ShareStateShard, key: SharePartitionKey, written: StateWrite, token: Token, now: Moment
) -> Outcome:
    """Merge batches into the state of a partition, and move its start offset forward.

    Raises:
        KafkaError: As merge_batches.
    """
    partition = shard.recorded.get(key)
    error: StateError | None
    if key.partition < 0:
        error = _invalid(_NEGATIVE_PARTITION)
    elif written.leader_epoch < 0:
        error = _invalid(_NEGATIVE_LEADER_EPOCH)
    elif written.state_epoch < 0:
        error = _invalid(_NEGATIVE_STATE_EPOCH)
    elif partition is None:
        error = _invalid(_UNKNOWN_WRITE)
    elif partition.leader_epoch > written.leader_epoch:
        error = state_error(ErrorCode.FENCED_LEADER_EPOCH)
    elif partition.state_epoch > written.state_epoch:
        error = state_error(ErrorCode.FENCED_STATE_EPOCH)
    else:
        error = _absence(shard, key)
    if error is not None:
        return _response(token, error)
    assert partition is not None, "it is known"
    # As in Kafka, only a read changes the leader epoch.
    written = written._replace(leader_epoch=partition.state.leader_epoch)
    return _response(token, None, _written(shard, key, written, now))


def delete(shard: ShareStateShard, key: SharePartitionKey, token: Token, now: Moment) -> Outcome:
    """Delete the state of a partition, if there is any."""
    del now
    error = _invalid(_NEGATIVE_PARTITION) if key.partition < 0 else _absence(shard, key)
    if error is not None or key not in shard.recorded:
        return _response(token, error)
    return _response(token, None, tombstone(key))


def read_summary(
    shard: ShareStateShard, key: SharePartitionKey, token: Token, now: Moment
) -> Outcome:
    """Return the epochs and offsets of a partition, also if it has no state."""
    del now
    error = _invalid(_NEGATIVE_PARTITION) if key.partition < 0 else _absence(shard, key)
    if error is not None:
        return _response(token, error)
    partition = shard.recorded.get(key)
    if partition is None:
        return _response(token, StateSummary(0, 0, NO_START_OFFSET, NO_COUNT))
    state = partition.state
    summary = StateSummary(
        state.state_epoch, state.leader_epoch, state.start_offset, state.delivery_complete_count
    )
    return _response(token, summary)


def _written(
    shard: ShareStateShard, key: SharePartitionKey, written: StateWrite, now: Moment
) -> CoordinatorRecord:
    """Return the record of a write: an update, or a snapshot if enough updates precede it."""
    partition = shard.recorded[key]
    state = partition.state
    start_offset = max(written.start_offset, state.start_offset)
    target = state._replace(
        leader_epoch=written.leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=_complete_count(state, written),
    )
    if partition.update_count < shard.settings.updates_per_snapshot:
        batches = merge_batches((), written.batches, start_offset)
        state.check_merge(batches, start_offset)
        return update_record(key, target, batches)
    return snapshot_record(
        key,
        target._replace(
            snapshot_epoch=state.snapshot_epoch + 1,
            batches=state.merged(written.batches, start_offset)[0],
            create_timestamp_ms=now.wall_ms,
            write_timestamp_ms=now.wall_ms,
        ),
    )


def _complete_count(state: StoredState, written: StateWrite) -> int:
    """Return the count that belongs to the higher start offset."""
    if written.start_offset > state.start_offset:
        return written.delivery_complete_count
    if written.start_offset < state.start_offset:
        return state.delivery_complete_count
    return max(written.delivery_complete_count, state.delivery_complete_count)


def _absence(shard: ShareStateShard, key: SharePartitionKey) -> StateError | None:
    """Return the error of a partition that does not exist."""
    topic = shard.image.topics_by_id.get(key.topic_id)
    if topic is not None and key.partition < len(topic.partitions):
        return None
    return state_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _invalid(message: str) -> StateError:
    return state_error(ErrorCode.INVALID_REQUEST, message)


def _response(token: Token, value: Any, record: CoordinatorRecord | None = None) -> Outcome:
    outcome = Outcome() if record is None else Outcome([record])
    outcome.answer(token, {"result": value})
    return outcome
