"""A search for an offset by timestamp, in a thread.

Requests whose search takes long, or reads pages that are not in memory, use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.special_offsets import MAX_TIMESTAMP
from wirebroker.storage.log.search_by_time import DetachedLog

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock, Steps
    from wirebroker.replica.partition import Partition
    from wirebroker.storage.log.log import Log
    from wirebroker.storage.log.time_search import TimestampedOffset

# A searching thread holds the GIL: the longest delay of the loop.
_PIECE_S: Final = 0.002
# A truncation is announced before and after its checkpoint. Searches end even if files are missing.
_MOST_REPEATS: Final = 4


async def search_in_thread(
    partition: Partition, timestamp_ms: int, *, up_to_offset: int, clock: Clock
) -> TimestampedOffset | None:
    """Return the first record at or after a time; for MAX_TIMESTAMP, the last in time.

    Segments that are removed or truncated meanwhile are searched again. Callers check afterwards
    whether the partition still leads.

    Raises:
        KafkaError: A file is damaged.
        OSError: The disk failed, or the partition's files were moved for deletion.
    """
    for _ in range(_MOST_REPEATS):
        log = partition.log
        cuts = log.cuts
        try:
            match = await _search(log, timestamp_ms, up_to_offset, clock)
        except FileNotFoundError:
            if partition.is_retired:
                raise
        except KafkaError:
            if log.cuts == cuts:
                raise
        else:
            if log.cuts == cuts:
                return match
    return await _search(partition.log, timestamp_ms, up_to_offset, clock)


async def _search(
    log: Log, timestamp_ms: int, up_to_offset: int, clock: Clock
) -> TimestampedOffset | None:
    detached = DetachedLog.of(log)
    if timestamp_ms == MAX_TIMESTAMP:
        steps = detached.offset_of_max_timestamp(up_to_offset=up_to_offset)
    else:
        steps = detached.offset_for_timestamp(timestamp_ms, up_to_offset=up_to_offset)
    try:
        while not (outcome := await in_thread(Work.SEARCHES, _take_some, steps, clock)):
            pass
    finally:
        detached.note_learned()
    return outcome[0]


def _take_some(
    steps: Steps[TimestampedOffset | None], clock: Clock
) -> tuple[TimestampedOffset | None] | None:
    """Continue a search for a while; return its result if it ends."""
    end = clock.monotonic() + _PIECE_S
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return (stop.value,)
        if clock.monotonic() >= end:
            return None
