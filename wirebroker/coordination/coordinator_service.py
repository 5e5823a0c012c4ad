"""The common part of a node's group, share and transaction coordinators.

    submit(name, operation) --> hash of the name --> partition of the internal topic --> its shard

The internal topic is created when a client first looks up a coordinator.

Source: Kafka's GroupCoordinatorService, TransactionCoordinator.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Generic

from wirebroker.base.clock import pause
from wirebroker.codecs.errors import KafkaError
from wirebroker.coordination.coordinator_partitions import CoordinatorPartitions, ShardT
from wirebroker.coordinator.groups.partitions import partition_for
from wirebroker.engine.waiter import Waiter
from wirebroker.storage.log.wall_clocks import WallClocks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from wirebroker.base.clock import Clock
    from wirebroker.codecs.errors import ErrorCode
    from wirebroker.coordination.internal_topic import InternalTopic
    from wirebroker.coordinator.outcome import Outcome
    from wirebroker.engine.engine import Engine
    from wirebroker.engine.waiter import Response
    from wirebroker.replica.leadership import Leaderships
    from wirebroker.storage.log.producers.verification import VerificationGuard
    from wirebroker.storage.log.wall_clocks import ClockReading

logger = logging.getLogger(__name__)


class CoordinatorService(Generic[ShardT]):
    """The coordinator of everything that one internal topic stores."""

    __slots__ = (
        "_clock",
        "_clocks",
        "_duties",
        "_is_following",
        "_leaderships",
        "_partitions",
        "_topic",
        "_work",
    )

    def __init__(
        self,
        topic: InternalTopic,
        partitions: CoordinatorPartitions[ShardT],
        leaderships: Leaderships,
        clock: Clock,
    ) -> None:
        self._topic = topic
        self._partitions = partitions
        self._leaderships = leaderships
        self._is_following = False
        self._clock = clock
        self._clocks = WallClocks(clock.now_ms(), clock.monotonic())
        self._duties: list[asyncio.Task[None]] = []
        self._work: list[Callable[[], Awaitable[None]]] = []

    def start(self) -> None:
        """Start to load the partitions that this node leads."""
        self._is_following = True
        self._leaderships.subscribe(self._partitions.follow)

    def repeat(self, name: str, interval_ms: int, duty: Callable[[], Awaitable[None]]) -> None:
        """Run a duty at an interval until the stop."""
        task = asyncio.create_task(_repeat(name, interval_ms, duty), name=name)
        self._duties.append(task)
        self._work.append(duty)

    async def catch_up(self) -> None:
        """Run everything that is due, after the clock was moved."""
        for duty in self._work:
            await duty()
        for engine in self._partitions.active():
            await engine.catch_up()

    async def stop(self) -> None:
        """Fail waiting requests and accept no more; a second call does nothing.

        Call it before connections close.
        """
        for task in self._duties:
            task.cancel()
        await asyncio.gather(*self._duties, return_exceptions=True)
        if self._is_following:
            self._is_following = False
            self._leaderships.unsubscribe(self._partitions.follow)
        await self._partitions.stop()
        await self._topic.stop()

    def submit(
        self,
        target: str | int,
        operation: Callable[..., Outcome],
        *arguments: Any,
        on_error: Callable[[ErrorCode], Response],
        finish: Callable[[dict[str, Any]], Response] | None = None,
        guard: VerificationGuard | None = None,
    ) -> Response | asyncio.Future[Response]:
        """Run `operation(shard, *arguments, token, now)`; return the response or a future of it.

        `target` is a group id or transactional id, or a partition of the internal topic. `on_error`
        makes the response for an error, `finish` converts the operation's response. `guard` is
        needed to begin a producer's transaction in the partition.
        """
        waiter = Waiter(on_error, finish)
        try:
            self._engine_of(target).run_with(operation, arguments, waiter, guard)
        except KafkaError as error:
            waiter.fail(error)
        return waiter.result()

    def _engine_of(self, target: str | int) -> Engine[ShardT]:
        """Return the engine of a name or a partition; raise as CoordinatorPartitions.at does."""
        index = target if isinstance(target, int) else self.partition_for(target)
        return self._partitions.at(index)

    def partition_for(self, name: str) -> int:
        """Return the partition of the internal topic that stores a name."""
        return partition_for(name, self._topic.partition_count)

    def create_topic(self) -> asyncio.Task[None]:
        """Return the task that creates the internal topic, started if necessary."""
        return self._topic.create()

    def _clocks_now(self) -> ClockReading:
        return self._clocks.moment(self._clock.now_ms(), self._clock.monotonic())


async def _repeat(name: str, interval_ms: int, duty: Callable[[], Awaitable[None]]) -> None:
    while True:
        await pause(interval_ms / 1000)
        try:
            await duty()
        except Exception:  # one bad record must not end the task
            logger.exception("%s failed; retrying", name)
