"""The merge of a share partition's stored batches with newer ones.

For each offset the batch with the highest delivery count wins, then the one with the highest
delivery state. Offsets below the start offset are dropped, and adjacent equal batches are joined.
So a delivery count never falls.

Source: Kafka's PersisterStateBatchCombiner (KIP-932).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final

from wirebroker.coordinator.share_state.batch_sweep import LARGEST_OFFSET, sweep

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from wirebroker.coordinator.share_state.state import StateBatch

# A start offset that is not known: nothing is dropped.
NO_START_OFFSET: Final = -1


def merge_batches(
    stored: Sequence[StateBatch], newer: Sequence[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """Return the batches of a partition after a write.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR: a batch ends before its first offset, and there are others
            (as in Kafka, which stores a single such batch).
    """
    stored = _pruned(stored, start_offset)
    newer = _pruned(newer, start_offset)
    if len(stored) + len(newer) < 2:
        return (*stored, *newer)
    if is_ordered(stored) and is_ordered(newer):
        return tuple(_joined(_winners(stored, newer)))
    return tuple(_joined(sweep([*stored, *newer])))


def extend_batches(
    stored: Sequence[StateBatch], newer: Sequence[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """Do as `merge_batches`, if both are ordered and `stored` is the result of a merge.

    A partition may have thousands of batches, so only those near the newer ones are merged.
    """
    if start_offset != NO_START_OFFSET:
        stored = stored[bisect_left(stored, start_offset, key=_last_offset) :]
        stored = (*_pruned(stored[:1], start_offset), *stored[1:])
    newer = _pruned(newer, start_offset)
    if not newer:
        return tuple(stored)
    # Adjacent batches may be joined.
    begin = bisect_left(stored, newer[0].first_offset - 1, key=_last_offset)
    end = bisect_right(stored, newer[-1].last_offset + 1, key=_first_offset)
    merged = _joined(_winners(stored[begin:end], newer))
    return (*stored[:begin], *merged, *stored[end:])


def is_ordered(batches: Sequence[StateBatch]) -> bool:
    """Return whether batches are valid, in the order of their offsets, and do not overlap."""
    before: int | None = None
    for first_offset, last_offset, _, _ in batches:
        if first_offset > last_offset or (before is not None and first_offset <= before):
            return False
        before = last_offset
    return before != LARGEST_OFFSET  # the offset after it cannot be represented


def _first_offset(batch: StateBatch) -> int:
    return batch.first_offset


def _last_offset(batch: StateBatch) -> int:
    return batch.last_offset


def _pruned(batches: Sequence[StateBatch], start_offset: int) -> Sequence[StateBatch]:
    """Return the parts of batches from the start offset on."""
    if start_offset == NO_START_OFFSET:
        return batches
    if all(batch.first_offset >= start_offset <= batch.last_offset for batch in batches):
        return batches
    return [
        batch if batch.first_offset >= start_offset else batch._replace(first_offset=start_offset)
        for batch in batches
        if batch.last_offset >= start_offset
    ]


def _winners(stored: Sequence[StateBatch], newer: Sequence[StateBatch]) -> Iterator[StateBatch]:
    """Yield the winning parts of two sequences of ordered batches."""
    lefts, rights = iter(stored), iter(newer)
    left, right = next(lefts, None), next(rights, None)
    while left is not None and right is not None:
        if left.last_offset < right.first_offset:
            yield left
            left = next(lefts, None)
        elif right.last_offset < left.first_offset:
            yield right
            right = next(rights, None)
        elif left.first_offset < right.first_offset:
            yield left._replace(last_offset=right.first_offset - 1)
            left = left._replace(first_offset=right.first_offset)
        elif right.first_offset < left.first_offset:
            yield right._replace(last_offset=left.first_offset - 1)
            right = right._replace(first_offset=left.first_offset)
        else:
            left_wins = left[:1:-1] >= right[:1:-1]  # by delivery count, then delivery state
            winner = left if left_wins else right
            if left.last_offset == right.last_offset:
                yield winner
                left, right = next(lefts, None), next(rights, None)
            elif left.last_offset < right.last_offset:
                yield winner._replace(last_offset=left.last_offset)
                right = right._replace(first_offset=left.last_offset + 1)
                left = next(lefts, None)
            else:
                yield winner._replace(last_offset=right.last_offset)
                left = left._replace(first_offset=right.last_offset + 1)
                right = next(rights, None)
    if left is not None:
        yield left
        yield from lefts
    elif right is not None:
        yield right
        yield from rights


def _joined(batches: Iterable[StateBatch]) -> list[StateBatch]:
    """Return the batches; adjacent equal ones are one."""
    joined: list[StateBatch] = []
    next_offset = None
    for batch in batches:
        if batch.first_offset == next_offset and joined[-1][2:] == batch[2:]:
            joined[-1] = joined[-1]._replace(last_offset=batch.last_offset)
        else:
            joined.append(batch)
        next_offset = batch.last_offset + 1
    return joined
