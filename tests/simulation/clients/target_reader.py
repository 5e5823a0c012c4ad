"""A read_committed consumer of the target that runs through the whole storm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.clients.transactional_producer import Client
from tests.support.records.committed import committed_records_in, end_of_records
from wirebroker.base.clock import pause

if TYPE_CHECKING:
    from tests.simulation.clients.promises import Promises
    from tests.simulation.machine.loop import Process
    from tests.simulation.network.network import Network

TARGET = "out"
TARGET_PARTITIONS = 2
_READ_COMMITTED = 1
_LONGEST_PAUSE_S = 5.0
_BACKOFF_S = 0.5
_MOST_READS = 200


class TargetReader:
    """Reads each partition from its beginning.

    Attributes:
        seen: The committed values of each partition so far, in order.
    """

    def __init__(self, process: Process, network: Network, promises: Promises) -> None:
        self.process = process
        self.seen: list[list[bytes]] = [[] for _ in range(TARGET_PARTITIONS)]
        self.is_over = False
        self._client = Client(process, network, name=process.name)
        self._promises = promises
        self._positions = [0] * TARGET_PARTITIONS
        self._random = network.random

    async def run(self) -> None:
        while not self.is_over:
            await pause(self._random.uniform(0, _LONGEST_PAUSE_S))
            await self._read(self._random.randrange(TARGET_PARTITIONS))

    async def read_all(self) -> list[list[bytes]]:
        """Read to the ends, once all transactions have ended."""
        for index in range(TARGET_PARTITIONS):
            for _ in range(_MOST_READS):
                if await self._read(index):
                    break
                await pause(_BACKOFF_S)
            else:
                raise AssertionError(f"a transaction in {index} is never decided")
        return self.seen

    async def _read(self, index: int) -> bool:
        """Read once; return whether no record, decided or not, was left."""
        position = self._positions[index]
        (partition,) = await self._client.fetch(
            {(TARGET, index): position}, isolation=_READ_COMMITTED
        )
        if not partition.records:
            return bool(position == partition.high_watermark)
        values = [value for _, value in committed_records_in(partition)]
        self._promises.check_seen(values)
        self.seen[index] += values
        self._positions[index] = end_of_records(partition.records)
        return False
