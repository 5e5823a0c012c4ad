"""The merge of batches in any order, also of invalid ones.

Source: Kafka's PersisterStateBatchCombiner.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.share_state.state import StateBatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LARGEST_OFFSET: Final = (1 << 63) - 1
_SMALLEST_OFFSET: Final = -(1 << 63)

# The negated delivery count and delivery state of a batch: the lowest wins.
_Priority = tuple[int, int]


def sweep(batches: Sequence[StateBatch]) -> Iterator[StateBatch]:
    """Yield the winner of each range between two ends of batches.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR: a batch ends before it begins.
    """
    # How many batches of a priority contain the present offset; priorities may stay in the heap
    # after their last batch.
    active: dict[_Priority, int] = {}
    heap: list[_Priority] = []
    since = _SMALLEST_OFFSET
    for offset, is_begin, priority in _ends(batches):
        if offset > since:
            while heap and not active[heap[0]]:
                heappop(heap)
            if heap:
                count, state = heap[0]
                yield StateBatch(since, offset - 1, -state, -count)
            since = offset
        count = active.get(priority, 0)
        if is_begin:
            if not count:
                heappush(heap, priority)
            active[priority] = count + 1
        elif count:
            active[priority] = count - 1
        else:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a batch ends before it begins")


def _ends(batches: Sequence[StateBatch]) -> list[tuple[int, bool, _Priority]]:
    """Return the ends of all batches in order, with whether one begins there."""
    ends: list[tuple[int, bool, _Priority]] = []
    for first_offset, last_offset, delivery_state, delivery_count in batches:
        priority = -delivery_count, -delivery_state
        # As in Java, where the largest number plus 1 is the smallest.
        after = _SMALLEST_OFFSET if last_offset == LARGEST_OFFSET else last_offset + 1
        ends += (first_offset, True, priority), (after, False, priority)
    ends.sort()
    return ends
