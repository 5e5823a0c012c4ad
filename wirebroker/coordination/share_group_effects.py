"""Long work for share groups, beside their shards.

    InitializeShareState   have the persister create the state of new partitions, note the result
    AssignShareGroup       compute a large group's target assignment in slices, install it

A result is noted by an operation of the group's shard, and dropped if the shard was unloaded in the
meantime.

Source: Kafka's GroupCoordinatorService.persisterInitialize, handlePersisterInitializeResponse.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias

from wirebroker.base.clock import Slices
from wirebroker.coordinator.groups.share import share_background, share_initialization
from wirebroker.coordinator.groups.share.share_assignment import AssignShareGroup, run_job
from wirebroker.coordinator.groups.share.share_initialization import InitializeShareState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.base.clock import Clock, Steps
    from wirebroker.coordinator.groups.shard.shard import GroupShard
    from wirebroker.coordinator.groups.share.share_assignment import ShareAssignmentJob
    from wirebroker.coordinator.share_state.state import StateError
    from wirebroker.engine.engine import Engine

logger = logging.getLogger(__name__)

ShareEffect: TypeAlias = InitializeShareState | AssignShareGroup


class StateInitializer(Protocol):
    """The part of a Persister that groups need; the room of persisters imports this one."""

    async def initialize(
        self, group_id: str, partitions: Mapping[tuple[bytes, int], tuple[int, int]]
    ) -> dict[tuple[bytes, int], StateError | None]:
        """See Persister."""
        ...


class ShareGroupEffects:
    """The running work of all share groups of this node.

    Attributes:
        persister: Set before groups are served.
    """

    __slots__ = ("_clock", "_tasks", "_turn", "persister")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.persister: StateInitializer | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        # One assignment at a time, so that many groups do not fill each turn of the loop.
        self._turn = asyncio.Lock()

    def begin(self, engine: Engine[GroupShard], effect: ShareEffect) -> None:
        """Begin the work of an effect."""
        task = asyncio.get_running_loop().create_task(self._perform(engine, effect))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Cancel all work."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _perform(self, engine: Engine[GroupShard], effect: ShareEffect) -> None:
        """Do the work of an effect; a failed one is due again with a later heartbeat."""
        try:
            if isinstance(effect, InitializeShareState):
                await self._initialize(engine, effect)
            else:
                async with self._turn:
                    await self._assign(engine, effect)
        except Exception:
            logger.exception(
                "share group %s: %s failed; a heartbeat retries",
                effect.group_id,
                type(effect).__name__,
            )

    # -- share state -------------------------------------------------------------------------

    async def _initialize(self, engine: Engine[GroupShard], effect: InitializeShareState) -> None:
        assert self.persister is not None, "groups have a persister before they are served"
        slices = Slices(self._clock, Slices.BESIDE_OTHERS_SECONDS)
        wanted = await slices.run(_state_of(effect))
        results = await self.persister.initialize(effect.group_id, wanted)
        error = next((error for error in results.values() if error is not None), None)
        if error is not None:
            logger.error(
                "share group %s: cannot initialize its share state (%s); a heartbeat retries",
                effect.group_id,
                error.message or error.code.name,
            )
        partitions = {topic_id: indexes for topic_id, (indexes, _) in effect.topics.items()}
        done = share_initialization.initialized if error is None else share_initialization.failed
        if not engine.is_closed:
            engine.run(done, effect.group_id, partitions)

    # -- assignments -------------------------------------------------------------------------

    async def _assign(self, engine: Engine[GroupShard], effect: AssignShareGroup) -> None:
        job = share_background.begin(engine.machine, effect)
        if job is None:
            return
        try:
            await self._install(engine, job)
        finally:
            share_background.abandon(engine.machine, job)

    async def _install(self, engine: Engine[GroupShard], job: ShareAssignmentJob) -> None:
        slices = Slices(self._clock, Slices.BESIDE_OTHERS_SECONDS)
        assignment = await slices.run(run_job(job))
        changes = await slices.run(share_background.changes(job, assignment))
        for records in changes:
            await slices.turn()
            if engine.is_closed:
                return
            engine.run(partial(share_background.install, job=job, records=records))
        if not engine.is_closed:
            engine.run(partial(share_background.finish, job=job))


def _state_of(
    effect: InitializeShareState,
) -> Steps[dict[tuple[bytes, int], tuple[int, int]]]:
    """Return the state epoch and the start offset of each partition."""
    wanted: dict[tuple[bytes, int], tuple[int, int]] = {}
    for topic_id, (indexes, start_offset) in effect.topics.items():
        for index in indexes:
            wanted[topic_id, index] = effect.state_epoch, start_offset
            yield
    return wanted
