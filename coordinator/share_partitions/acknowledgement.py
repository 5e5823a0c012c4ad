"""Acknowledgements: accept, release, reject, renew, and gaps.

A request is checked first (`check_acknowledgements`), as a whole for each partition. Then its
batches change the states in order, and the first one that is refused rolls all of them back.

Source: Kafka's SharePartition.acknowledge, KafkaApis.validateAcknowledgementBatches; KIP-1222.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence  # noqa: TC003 - compiled tuples look for it
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.clock import finish
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.share_partitions.lock_timers import LockTimer
from wirebroker.coordinator.share_partitions.record_state import NO_DEADLINE, RecordState
from wirebroker.coordinator.share_partitions.state_change import CLIENT_REJECT, StateChange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.share_partitions.in_flight_batch import InFlightBatch
    from wirebroker.coordinator.share_partitions.record_state import InFlightState
    from wirebroker.coordinator.share_partitions.share_partition import ShareLimits, SharePartition

# States before other work may run.
_STEP: Final = 100
# Ranges with different states of one batch in flight. The share coordinator stores a share
# partition's states in one record, without a break.
MOST_STATES: Final = 10_000
# Equal types in a row.
_RUNS: Final = re.compile(rb"(.)\1*", re.DOTALL)
_TYPES_STEP: Final = 100_000


class AckType(IntEnum):
    """What a member says about a record."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


# Without and with renewals.
_ALLOWED_TYPES: Final = bytes(range(AckType.RENEW)), bytes(range(len(AckType)))
_NEW_STATES: Final = {
    AckType.GAP: RecordState.ARCHIVED,
    AckType.ACCEPT: RecordState.ACKNOWLEDGED,
    AckType.RELEASE: RecordState.AVAILABLE,
    AckType.REJECT: RecordState.ARCHIVED,
}


class Acknowledgement(NamedTuple):
    """A batch of a request: one type for all offsets, or one for each."""

    first_offset: int
    last_offset: int
    types: Sequence[int]

    def within(self, first_offset: int, last_offset: int) -> Acknowledgement:
        """Return the part for a range of offsets, which must overlap with the batch."""
        first = max(first_offset, self.first_offset)
        last = min(last_offset, self.last_offset)
        types = self.types
        if len(types) > 1:
            types = types[first - self.first_offset : last - self.first_offset + 1]
        return Acknowledgement(first, last, types)

    def segments(self) -> Iterator[tuple[int, int, int]]:
        """Yield (first offset, last offset, type) of consecutive offsets with the same type."""
        types = self.types
        if len(types) == 1:
            yield self.first_offset, self.last_offset, types[0]
            return
        offset = self.first_offset
        for run in _RUNS.finditer(bytes(types)):
            yield offset + run.start(), offset + run.end() - 1, types[run.start()]

    def counts(self) -> Iterator[tuple[int, int]]:
        """Yield (type, number of records) of each type except GAP."""
        if len(self.types) == 1:
            if self.types[0] != AckType.GAP:
                yield self.types[0], self.last_offset - self.first_offset + 1
            return
        types = bytes(self.types)
        for ack_type in range(AckType.ACCEPT, len(AckType)):
            count = types.count(ack_type)
            if count:
                yield ack_type, count


def types_of(values: Sequence[int]) -> Steps[bytes]:
    """Return acknowledgement types as bytes; negative ones become unknown ones."""
    types = bytearray()
    for start in range(0, len(values), _TYPES_STEP):
        types += array("b", values[start : start + _TYPES_STEP]).tobytes()
        if len(values) > _TYPES_STEP:
            yield
    return bytes(types)


def check_acknowledgements(
    batches: Sequence[Acknowledgement], *, knows_renew: bool, is_renew: bool
) -> Steps[bool]:
    """Return whether a request's batches of one partition are valid.

    Source: Kafka's KafkaApis.validateAcknowledgementBatches.
    """
    previous_end = -1
    allowed = _ALLOWED_TYPES[knows_renew and is_renew]
    for number, batch in enumerate(batches, 1):
        count = len(batch.types)
        if not previous_end <= batch.first_offset <= batch.last_offset or count == 0:
            return False
        if count > 1 and batch.last_offset - batch.first_offset != count - 1:
            return False
        if bytes(batch.types).translate(None, allowed):
            return False
        previous_end = batch.last_offset
        if number % _STEP == 0 or count > _TYPES_STEP:
            yield
    return True


def acknowledge(
    partition: SharePartition,
    member_id: str,
    batches: Sequence[Acknowledgement],
    limits: ShareLimits,
    now_ms: Callable[[], float],
) -> Steps[StateChange]:
    """Begin the state changes of a member's acknowledgements.

    `now_ms` returns the time of locks, some of which may end between two steps.

    Raises:
        KafkaError: INVALID_RECORD_STATE or INVALID_REQUEST; nothing has changed but renewed locks.
    """
    change = StateChange(partition)
    work = _Acknowledging(partition, member_id, limits, now_ms, change)
    try:
        for batch in batches:
            if batch.last_offset >= partition.start_offset:
                yield from work.apply(batch)
    except KafkaError:
        yield from change.roll_back(now_ms)
        raise
    except BaseException:
        finish(change.roll_back(now_ms))
        raise
    return change


class _Acknowledging:
    """The acknowledgements of one member in progress."""

    __slots__ = (
        "_change",
        "_limits",
        "_member_id",
        "_now_ms",
        "_partition",
        "_state_count",
        "_time_ms",
    )

    def __init__(
        self,
        partition: SharePartition,
        member_id: str,
        limits: ShareLimits,
        now_ms: Callable[[], float],
        change: StateChange,
    ) -> None:
        self._partition = partition
        self._member_id = member_id
        self._limits = limits
        self._now_ms = now_ms
        self._change = change
        self._state_count = 0
        # Of this step.
        self._time_ms = 0.0

    def apply(self, acknowledgement: Acknowledgement) -> Steps[None]:
        """Begin the changes of one batch of the request."""
        self._time_ms = self._now_ms()
        for batch in self._batches(acknowledgement):
            if batch.last_offset < self._partition.start_offset:
                continue
            if not batch.tracks_offsets:
                self._check_owner(batch)
            if self._takes_whole(batch, acknowledgement):
                ack_type = acknowledgement.types[0]
                self._change_state(batch.state, ack_type)
                if self._is_step_over():
                    yield
                    self._time_ms = self._now_ms()
            else:
                yield from self._apply_by_offset(batch, acknowledgement)

    def _is_step_over(self) -> bool:
        self._state_count += 1
        return self._state_count % _STEP == 0

    def _batches(self, acknowledgement: Acknowledgement) -> list[InFlightBatch]:
        partition = self._partition
        first_offset, last_offset, _ = acknowledgement
        records = partition.records
        floor = records.floor(first_offset)
        if floor is None and first_offset < partition.start_offset <= last_offset:
            floor = records.floor(partition.start_offset)
        if floor is None:
            raise _invalid_state(
                "Batch record not found. The request batch offsets are not found in the cache."
            )
        batches = records.between(floor.first_offset, last_offset)
        for offset, name in ((first_offset, "first"), (last_offset, "last")):
            if batches[-1].last_offset < offset:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"Batch record not found. The {name} offset in request is past acquired "
                    "records.",
                )
        return batches

    def _check_owner(self, batch: InFlightBatch) -> None:
        state = batch.state
        if not state.member_id:
            raise _invalid_state(_NOT_ACQUIRED)
        if state.member_id != self._member_id:
            raise _invalid_state("Member is not the owner of batch record")
        self._check_lock(state)

    def _takes_whole(self, batch: InFlightBatch, acknowledgement: Acknowledgement) -> bool:
        return (
            not batch.tracks_offsets
            and len(acknowledgement.types) == 1
            and batch.is_within(acknowledgement.first_offset, acknowledgement.last_offset)
            and not batch.begins_before(self._partition.start_offset)
        )

    def _apply_by_offset(
        self, batch: InFlightBatch, acknowledgement: Acknowledgement
    ) -> Steps[None]:
        batch.track_offsets()
        part = acknowledgement.within(batch.first_offset, batch.last_offset)
        for first_offset, last, ack_type in part.segments():
            # Between two steps the start offset may move, and states may be divided.
            first = max(first_offset, self._partition.start_offset)
            while first <= last:
                if len(batch.states) > MOST_STATES:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, _TOO_MANY)
                for state in batch.among(first, last):
                    self._check_offset(state)
                    self._change_state(state, ack_type)
                    first = state.last_offset + 1
                    if self._is_step_over():
                        break
                else:
                    break
                yield
                self._time_ms = self._now_ms()

    def _check_offset(self, state: InFlightState) -> None:
        if state.state is not RecordState.ACQUIRED:
            raise _invalid_state("The offset cannot be acknowledged. The offset is not acquired.")
        if state.member_id != self._member_id:
            raise _invalid_state("Member is not the owner of offset")
        self._check_lock(state)

    def _check_lock(self, state: InFlightState) -> None:
        """Refuse records whose lock has ended; its timer may be late, as after a long pause."""
        if NO_DEADLINE != state.deadline_ms <= self._time_ms:
            raise _invalid_state(_NOT_ACQUIRED)

    def _change_state(self, state: InFlightState, ack_type: int) -> None:
        if ack_type == AckType.RENEW:
            self._renew(state)
            return
        new_state = _NEW_STATES[AckType(ack_type)]
        cause = ""
        if ack_type == AckType.REJECT and self._limits.has_dead_letters:
            new_state, cause = RecordState.ARCHIVING, CLIENT_REJECT
        if not self._change.begin(state, new_state, self._limits, cause):
            raise _invalid_state("Unable to acknowledge records for the batch")

    def _renew(self, state: InFlightState) -> None:
        if not self._limits.is_renew_enabled:
            raise _invalid_state("Renewing acquisition locks is not enabled for the group.")
        state.deadline_ms = self._now_ms() + self._limits.lock_duration_ms
        timer = LockTimer(state.deadline_ms, state.first_offset, state.last_offset)
        self._partition.timers.add(timer, self._partition.records)


_TOO_MANY: Final = f"The batch has more than {MOST_STATES} ranges with different states."
_NOT_ACQUIRED: Final = "The batch cannot be acknowledged. The batch is not in the acquired state."


def _invalid_state(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD_STATE, message)
