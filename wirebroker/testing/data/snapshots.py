"""Snapshots of a broker's data."""

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

_PATIENCE_S: Final = 20.0
# A try fails when retention or compaction renames files.
_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A copy of a broker's data at one moment.

    Its directory is a data directory for `Broker(snapshot=…)` and `wirebroker serve --data-dir`. It
    shares closed segments with the broker: do not write to them.
    """

    directory: Path

    def remove(self) -> None:
        """Delete the directory; a temporary one is deleted with its broker.

        >>> snapshot = broker.snapshot()
        >>> snapshot.remove()
        >>> snapshot.directory.exists()
        False
        """
        shutil.rmtree(self.directory)


async def take(broker: Broker, target: Path) -> None:
    """Copy a running broker's data without disturbing clients.

    Logs and producer states are flushed first: a start needs little recovery.

    Raises:
        ValueError: The data cannot be copied.
    """
    directories = broker.replicas.directories
    if len(directories) != 1:
        raise ValueError("a broker with several log.dirs does not support snapshots")
    (directory,) = directories
    try:
        async with asyncio.timeout(_PATIENCE_S):
            await _flush(broker)
            await directory.checkpoint(broker.clock)
            await _copy(broker, directory.path, target)
    except KafkaError as error:
        raise ValueError(f"cannot take a snapshot: {error.message or error}") from error
    except TimeoutError:
        raise ValueError(f"the broker was not idle within {_PATIENCE_S:.0f} s") from None


async def _flush(broker: Broker) -> None:
    for partition in tuple(broker.replicas):
        await partition.until_settled()
        producers = partition.log.producer_state
        if not partition.is_retired and producers.is_read:
            producers.take_snapshot()
    await asyncio.gather(
        *(partition.flush() for partition in broker.replicas if not partition.is_retired)
    )


async def _copy(broker: Broker, source: str, target: Path) -> None:
    for last in reversed(range(_TRIES)):
        while busy := [partition for partition in broker.replicas if partition.is_appending]:
            for partition in busy:
                await partition.until_settled()
        try:
            # On the loop: no record is appended between the copies of two logs.
            copy_data(Path(source), target)
        except FileNotFoundError:
            if not last:
                raise
        else:
            return
