"""A cluster as polls see it: a client whose time is counted, and the state that they change."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, TypeVar

from wirebroker.base.clock import Slices
from wirebroker.client.errors import ClientError
from wirebroker.console.model.cluster_state import ClusterState
from wirebroker.console.model.http_settings import NO_HTTP_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable

    from wirebroker.base.clock import Clock
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.console.model.http_settings import HttpSettings

_Answer = TypeVar("_Answer")

# An unreachable broker is not tried again for this time.
_PAUSE_S: Final = 15.0
# Seconds of a slice; the rest of a turn is for pages.
_SLICE_S: Final = 0.005


class PolledCluster:
    """A cluster with the time that its brokers worked.

    Attributes:
        http: The HTTP addresses of its brokers.
        spent_s: Seconds by broker since `take_spent`; -1 for requests to any broker. The time of
            the network is not counted: it is estimated as the time of the fastest response.
    """

    __slots__ = ("_fastest_s", "client", "clock", "http", "spent_s", "state")

    def __init__(
        self, client: KafkaClient, clock: Clock, http: HttpSettings = NO_HTTP_SETTINGS
    ) -> None:
        self.client = client
        self.clock = clock
        self.http = http
        self.state = ClusterState()
        self.spent_s: defaultdict[int, float] = defaultdict(float)
        self._fastest_s: dict[int, float] = {}

    def slices(self) -> Slices:
        """Return the slices for work on many values."""
        return Slices(self.clock, _SLICE_S)

    async def timed(self, work: Awaitable[_Answer], broker_id: int = -1) -> _Answer:
        """Await a request and count its time."""
        began = self.clock.monotonic()
        try:
            return await work
        finally:
            seconds = self.clock.monotonic() - began
            fastest_s = min(seconds, self._fastest_s.get(broker_id, seconds))
            self._fastest_s[broker_id] = fastest_s
            self.spent_s[broker_id] += seconds - fastest_s

    def take_spent(self) -> float:
        """Return the seconds that the busiest broker worked, and count again from 0."""
        seconds = max(self.spent_s.values(), default=0.0)
        self.spent_s.clear()
        return seconds

    async def on_each_broker(
        self,
        work: Callable[[int], Coroutine[Any, Any, None]],
        broker_ids: Iterable[int] | None = None,
    ) -> bool:
        """Do work for brokers concurrently; return whether all of them responded.

        Raises:
            ClientError: A broker refuses.
        """
        if broker_ids is None:
            broker_ids = [
                broker_id
                for broker_id, broker in self.state.brokers.items()
                if not broker.is_fenced
            ]
        results = await asyncio.gather(
            *(self._on_broker(broker_id, work) for broker_id in broker_ids)
        )
        return all(results)

    async def _on_broker(
        self, broker_id: int, work: Callable[[int], Coroutine[Any, Any, None]]
    ) -> bool:
        unreachable = self.state.unreachable
        if broker_id in unreachable:
            failed_at, _ = unreachable[broker_id]
            if self.clock.monotonic() - failed_at < _PAUSE_S:
                return False
        try:
            await work(broker_id)
        except ClientError as error:
            if error.code:
                raise
            unreachable[broker_id] = (self.clock.monotonic(), str(error))
            return False
        unreachable.pop(broker_id, None)
        return True
