"""What a broker holds at a moment, kept: `broker.snapshot()`, and how it is taken while it runs."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import KafkaError
from wirebroker.testing.data.data_copies import copy_data

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker

# Logs that threads never stop appending to.
_PATIENCE_S: Final = 20.0
# Files that are renamed meanwhile (retention, compaction) make a try void.
_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a broker held at a moment, in a directory.

    It is a data directory: brokers begin with it (`Broker(snapshot=…)`), and `wirebroker serve
    --data-dir` starts on it.

    Attributes:
        directory: Where it lies. Closed segments are shared with the broker: don't write to them.
    """

    directory: Path

    def remove(self) -> None:
        """Remove it; one that was not given a directory goes with its broker anyway.

        >>> snapshot = broker.snapshot()
        >>> snapshot.remove()
        >>> snapshot.directory.exists()
        False
        """
        shutil.rmtree(self.directory)


async def take(broker: Broker, target: Path) -> None:
    """Copy what a running broker holds, without disturbing its clients.

    What was acknowledged before is in it, as one moment has it. All is flushed before, with
    producers' states, so that a start on the copy has next to nothing to recover.

    Args:
        broker: Which runs.
        target: Where there is nothing yet, or an empty directory.

    Raises:
        ValueError: It cannot be taken; the text says why.
        OSError: The disk failed.
    """
    directories = broker.replicas.directories
    if len(directories) != 1:
        raise ValueError("a broker with several log.dirs has no snapshots")
    (directory,) = directories
    try:
        async with asyncio.timeout(_PATIENCE_S):
            await _flush(broker)
            await directory.checkpoint(broker.clock)
            await _copy(broker, directory.path, target)
    except KafkaError as error:
        raise ValueError(f"no snapshot can be taken: {error.message or error}") from error
    except TimeoutError:
        raise ValueError(f"the broker is not at rest within {_PATIENCE_S:.0f} s") from None


async def _flush(broker: Broker) -> None:
    for partition in tuple(broker.replicas):
        await partition.until_settled()
        producers = partition.log.producer_state
        if not partition.is_retired and producers.is_read:
            producers.take_snapshot()
    await asyncio.gather(*(each.flush() for each in broker.replicas if not each.is_retired))


async def _copy(broker: Broker, source: str, target: Path) -> None:
    for last in reversed(range(_TRIES)):
        while busy := [each for each in broker.replicas if each.is_appending]:
            for partition in busy:
                await partition.until_settled()
        try:
            # On the loop: no record comes between one log's copy and another's.
            copy_data(Path(source), target)
        except FileNotFoundError:
            if not last:
                raise
        else:
            return
