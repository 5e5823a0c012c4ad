"""Loads a coordinator's partition without blocking the event loop.

A thread reads the log and decodes long values; the loop parses the rest in slices. A million
commits, each in its own batch, take 3 s.

Source: Kafka's CoordinatorLoaderImpl.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from wirebroker.base.clock import Slices
from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import NO_PRODUCER_ID
from wirebroker.codecs.records.coordinator_batches import KeyValueWalk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.storage.log.log import Log

_READ_BYTES = 1 << 20
# Values up to this size are decoded on the loop: 1 ms.
_LONGEST_ON_LOOP_BYTES = 16 << 10


class Replayer(Protocol):
    """The target of a replay."""

    def replay(self, key: bytes, value: bytes | None, producer_id: int = ..., /) -> None:
        """Apply a record, decided or of a producer's open transaction."""
        ...

    def replay_end(self, producer_id: int, is_commit: bool, /) -> None:
        """Commit or discard the records of a producer's open transaction."""
        ...


async def load(
    log: Log,
    shard: Replayer,
    clock: Clock,
    on_walk: Callable[[KeyValueWalk], None] | None = None,
    decode: Callable[[bytes, bytes], Any] | None = None,
) -> int:
    """Replay a log into a shard; return the number of records.

    Args:
        log: The log.
        shard: The target.
        clock: The clock of the slices.
        on_walk: Called with each walk over a piece of the log before its records are replayed.
        decode: Decodes a long value in a thread, given its key; `shard.replay` gets the result.

    Raises:
        KafkaError, MalformedFrameError: The log is unreadable.
        OSError: The disk failed.
    """
    # In shorter slices, because several partitions load at once.
    slices = Slices(clock, Slices.BESIDE_OTHERS_SECONDS)
    offset = log.log_start_offset
    count = 0
    # Of transactions that end before the next record.
    ends: list[tuple[int, bool]] = []

    def note_end(producer_id: int, is_commit: bool) -> None:
        ends.append((producer_id, is_commit))

    while offset < log.log_end_offset:
        log_read = log.read(offset, _READ_BYTES, up_to_offset=log.log_end_offset, min_one=True)
        if log_read.slice is None:
            break
        data = await in_thread(Work.LOADING, log_read.slice.read)
        walk = KeyValueWalk(data, offset, note_end)
        if on_walk is not None:
            on_walk(walk)
        for record in walk:
            if ends:
                await _replay_ends(ends, shard, slices)
            value = record[1]
            if decode is None or value is None or len(value) <= _LONGEST_ON_LOOP_BYTES:
                shard.replay(*record)  # pyright: ignore[reportArgumentType] - one of two tuples
            else:
                await _replay_long(shard, decode, record)
            count += 1
            # A record of a transaction with 10,000 partitions takes some milliseconds.
            if slices.is_over:
                await slices.turn()
        if ends:
            await _replay_ends(ends, shard, slices)
        if walk.next_offset == offset:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"no complete batch at offset {offset}")
        offset = walk.next_offset
    return count


async def _replay_long(
    shard: Any, decode: Callable[[bytes, bytes], Any], record: Sequence[Any]
) -> None:
    key, value, *rest = record
    known = await in_thread(Work.LOADING, decode, key, value)
    shard.replay(key, value, *(rest or [NO_PRODUCER_ID]), known)


async def _replay_ends(ends: list[tuple[int, bool]], shard: Replayer, slices: Slices) -> None:
    """Replay and clear `ends`; each may have 10,000 partitions."""
    for producer_id, is_commit in ends:
        await slices.turn()
        shard.replay_end(producer_id, is_commit)
    ends.clear()
    await slices.turn()
