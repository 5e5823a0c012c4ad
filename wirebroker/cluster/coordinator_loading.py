"""Reads a coordinator's partition from its start and replays it, without holding the loop.

Bytes are read in a thread; they are parsed on the loop in slices of a few milliseconds, with turns
for everybody else in between. A million commits, each a batch of its own, take some 3 s of them.

Source: Kafka's CoordinatorLoaderImpl.
"""

from __future__ import annotations

import asyncio
from itertools import islice, starmap
from typing import TYPE_CHECKING, Protocol

from wirebroker.clock import Slices
from wirebroker.codecs.coordinator_batches import BatchWalk
from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from wirebroker.clock import Clock
    from wirebroker.storage.log import Log

_READ_BYTES = 1 << 20
# Records between two looks at the clock: about 1 ms.
_RECORDS_AT_ONCE = 300


class Replayer(Protocol):
    """What takes over records."""

    def replay(self, key: bytes, value: bytes | None, producer_id: int = ..., /) -> None:
        """Take over a record that is in the log, decided or of a producer's open transaction."""
        ...

    def replay_end(self, producer_id: int, is_commit: bool, /) -> None:
        """Take over the end of a producer's transaction."""
        ...


async def load(log: Log, shard: Replayer, clock: Clock) -> int:
    """Replay a log into a shard; return how many records there were.

    Raises:
        KafkaError, MalformedFrameError: The log has what cannot be read.
        OSError: The disk failed.
    """
    slices = Slices(clock)
    loop = asyncio.get_running_loop()
    offset = log.log_start_offset
    count = 0
    while offset < log.log_end_offset:
        found = log.read(offset, _READ_BYTES, up_to_offset=log.log_end_offset, min_one=True)
        if found.slice is None:
            break
        walk = BatchWalk(
            await loop.run_in_executor(None, found.slice.read), offset, shard.replay_end
        )
        records = starmap(shard.replay, walk)
        while replayed := sum(1 for _ in islice(records, _RECORDS_AT_ONCE)):
            count += replayed
            await slices.turn()
        if walk.next_offset == offset:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"no whole batch at offset {offset}")
        offset = walk.next_offset
    return count
