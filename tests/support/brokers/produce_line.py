"""A client of an in-process broker, without sockets, that counts requests on the fast path.

On a connection that is kept, a Produce request that repeats the previous one can take the fast path
(wirebroker/api/data/prepared_produce.py); on a new connection it cannot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.brokers.dispatch_line import CLOSING, DispatchLine
from tests.support.brokers.servers import broker_of
from wirebroker.api.data.produce import produce
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.net.dispatch import Dispatcher
from wirebroker.request.handlers import Registry
from wirebroker.request.request_admission import RequestAdmission

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from pathlib import Path

    from wirebroker.api.broker import Broker
    from wirebroker.broker.server import Server
    from wirebroker.net.bounds.memory_budget import MemoryBudget
    from wirebroker.replica.partition import Partition
    from wirebroker.request.request import Reply, Request


class FixedClock(SystemClock):
    """A clock whose wall time stays the same, so that two brokers write the same timestamps."""

    __slots__ = ("_now_ms",)

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms


class ProduceLine:
    """One client of one broker.

    Attributes:
        gate: The broker's request admission.
        is_closed: Whether the gate refuses all requests.
        short_count: How many requests took the fast path.
    """

    def __init__(self, server: Server, *, has_memory: bool = True) -> None:
        self._broker = broker_of(server)
        self.is_closed = False
        self.admission = RequestAdmission(lambda *_: [b"no"] if self.is_closed else None)
        registry = Registry()
        registry.handles_raw(ApiKey.PRODUCE)(self._produce)
        # How many requests took the regular path.
        self._whole_count = 0
        self._has_memory = has_memory
        self._line = DispatchLine(Dispatcher(self._broker, registry, admission=self.admission))
        self.short_count = 0

    async def exchange(self, frame: bytes) -> bytes:
        """Send a frame, including its size, and return the response; b"" for none."""
        if not self._has_memory:
            self._line.connect()
        before = self._whole_count
        answer = await self._line.exchange(frame)
        self.short_count += self._whole_count == before
        return answer

    @property
    def budget(self) -> MemoryBudget:
        return self._line.budget

    def disconnect(self) -> None:
        self._line.connection.close()

    def _produce(self, broker: Broker, request: Request) -> Reply | Awaitable[Reply]:
        self._whole_count += 1
        return produce(broker, request)

    async def outcome(self, frame: bytes) -> bytes | str:
        """Return the response, or the name of the error that closed the connection."""
        try:
            return await self.exchange(frame)
        except CLOSING as error:
            self._line.connect()
            return type(error).__name__

    @property
    def memo(self) -> object | None:
        return self._line.connection.session.prepared

    def partition(self, topic: str, index: int = 0) -> Partition:
        partitions, _ = self._broker.replicas.find(topic, b"", by_id=False)
        return partitions[index]


def logs_below(folder: Path) -> dict[str, bytes]:
    """Return the contents of the topics' segments, by path relative to the folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for directory in sorted(folder.iterdir())
        # Deleted partitions can disappear while they are read.
        if not (directory.name.startswith("__") or directory.name.endswith("-delete"))
        for path in sorted(directory.glob("*.log"))
    }
