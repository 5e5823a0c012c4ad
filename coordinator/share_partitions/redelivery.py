"""Acquisition of records that were delivered before, within one batch.

Records that members failed to process are throttled: from half of the delivery count limit on, each
delivery has at most half as many records of the batch, and the last delivery a single one. So one
bad record does not use up the deliveries of its neighbors (KIP-932, "throttled bad records").

Source: Kafka's SharePartition.acquireSubsetBatchRecords, shouldThrottleRecordsDelivery.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from wirebroker.coordinator.share_partitions.in_flight_batch import InFlightBatch
    from wirebroker.coordinator.share_partitions.record_state import InFlightState

_LEAST_THROTTLED: Final = 2
# With so few deliveries the last one is not special.
_FEW_DELIVERIES: Final = 2


def is_throttled(
    batch: InFlightBatch, first_offset: int, last_offset: int, delivery_count_limit: int
) -> bool:
    """Return whether available records of a range have been delivered too often."""
    threshold = _threshold(delivery_count_limit)
    if not batch.tracks_offsets:
        return batch.state.is_available and batch.state.delivery_count >= threshold
    first = max(first_offset, batch.first_offset)
    return any(
        state.is_available and state.delivery_count >= threshold
        for state in batch.states[batch.index(first) :]
        if first <= state.last_offset and state.first_offset <= last_offset
    )


def _threshold(delivery_count_limit: int) -> int:
    return max(_LEAST_THROTTLED, -(-delivery_count_limit // 2))


def acquire_states(
    batch: InFlightBatch,
    first_offset: int,
    last_offset: int,
    *,
    member_id: str,
    deadline_ms: float,
    delivery_count_limit: int,
    max_records: int | None,
    most_states: int,
) -> list[InFlightState]:
    """Acquire available records of a range for a member; return their states, in order.

    Without `max_records` the number of records is not limited, except by throttling.
    """
    batch.join()
    first = max(first_offset, batch.first_offset)
    acquired: list[InFlightState] = []
    limits = _Limits(batch.count, delivery_count_limit, max_records)
    for state in batch.among(first, last_offset):
        if not state.is_available:
            continue
        wanted = limits.next_count(state)
        if wanted == 0:
            break
        if wanted < state.count:
            end = state.first_offset + wanted - 1
            state = next(batch.among(state.first_offset, end))  # noqa: PLW2901 - its part
        state.acquire(member_id, deadline_ms)
        acquired.append(state)
        if limits.is_reached or len(acquired) == most_states:
            break
    return acquired


class _Limits:
    """The number of records that may still be acquired from a batch."""

    __slots__ = (
        "_batch_count",
        "_count",
        "_delivery_count_limit",
        "_max_records",
        "_max_throttled",
        "is_reached",
    )

    def __init__(
        self, batch_count: int, delivery_count_limit: int, max_records: int | None
    ) -> None:
        self._batch_count = batch_count
        self._delivery_count_limit = delivery_count_limit
        self._max_records = max_records
        # Set by the first throttled record.
        self._max_throttled: int | None = None
        self._count = 0
        self.is_reached = False

    def next_count(self, state: InFlightState) -> int:
        """Return how many records of a state may be acquired, and count them."""
        limit = self._delivery_count_limit
        is_last_delivery = limit > _FEW_DELIVERIES and state.delivery_count == limit - 1
        if is_last_delivery and self._count > 0:
            return 0
        threshold = _threshold(limit)
        if state.delivery_count >= threshold and self._max_throttled is None:
            halvings = state.delivery_count - threshold + 1
            self._max_throttled = max(1, self._batch_count >> halvings)
        wanted = 1 if is_last_delivery else state.count
        for most in (self._max_records, self._max_throttled):
            # As in Kafka, a limit that was exceeded before it was set has no effect.
            if most is not None and self._count < most:
                wanted = min(wanted, most - self._count)
        self._count += wanted
        reached = self._count in {self._max_records, self._max_throttled}
        self.is_reached = is_last_delivery or reached
        return wanted
