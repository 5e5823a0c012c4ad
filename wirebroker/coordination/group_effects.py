"""Long work for consumer groups, in slices beside their shards.

    ResolveRegexes       search the topics, keep those that the member may describe, install them
    AssignInBackground   compute a large group's target assignment, install it
    ServeDowngraded      begin to serve a group that has become classic; at once

A result is installed by an operation of the group's shard, and dropped if the shard was unloaded in
the meantime.

Source: Kafka's CoordinatorExecutorImpl, TopicRegexResolver.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from wirebroker.base.clock import Slices
from wirebroker.codecs.permissions import DESCRIBE_TOPIC
from wirebroker.coordinator.groups.consumer import background_assignment, downgrade, regexes
from wirebroker.coordinator.groups.consumer.downgrade import ServeDowngraded
from wirebroker.coordinator.groups.consumer.regexes import ResolveRegexes
from wirebroker.coordinator.groups.consumer.subscriptions import ResolvedRegex
from wirebroker.coordinator.groups.consumer.target_assignment import run_job
from wirebroker.coordinator.groups.consumer.topic_regex import matching_topics

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock, Steps
    from wirebroker.coordinator.groups.consumer.target_assignment import (
        AssignInBackground,
        AssignmentJob,
    )
    from wirebroker.coordinator.groups.shard.shard import GroupShard
    from wirebroker.engine.engine import Engine
    from wirebroker.quorum.image.metadata_follower import MetadataFollower

logger = logging.getLogger(__name__)

# Topics whose rights are looked up between two yields.
_CHECKS_PER_STEP = 64


class GroupEffects:
    """The running work of all shards of this node."""

    __slots__ = ("_clock", "_metadata", "_tasks", "_turn")

    def __init__(self, clock: Clock, metadata: MetadataFollower) -> None:
        self._clock = clock
        self._metadata = metadata
        self._tasks: set[asyncio.Task[None]] = set()
        # One at a time, so that many groups do not fill each turn of the loop.
        self._turn = asyncio.Lock()

    def begin(self, engine: Engine[GroupShard], effect: Any) -> None:
        """Do the work of an effect, or begin it."""
        if isinstance(effect, ServeDowngraded):
            engine.run(downgrade.begin, effect.group_id, effect.rebalances)
            return
        task = asyncio.get_running_loop().create_task(self._perform(engine, effect))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Cancel all work."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _perform(self, engine: Engine[GroupShard], effect: Any) -> None:
        """Do the work of an effect; a failed one is due again with the next heartbeat."""
        is_search = isinstance(effect, ResolveRegexes)
        try:
            async with self._turn:
                await (self._resolve if is_search else self._assign)(engine, effect)
        except Exception:
            work = "resolving regular expressions" if is_search else "the target assignment"
            logger.exception("group %s: %s failed; a heartbeat retries", effect.group_id, work)

    # -- regular expressions -----------------------------------------------------------------

    async def _resolve(self, engine: Engine[GroupShard], effect: ResolveRegexes) -> None:
        try:
            await self._search(engine, effect)
        finally:
            regexes.abandon(engine.machine, effect.group_id)

    async def _search(self, engine: Engine[GroupShard], effect: ResolveRegexes) -> None:
        image = self._metadata.image
        began_ms = self._clock.now_ms()
        slices = Slices(self._clock, Slices.BESIDE_OTHERS_SECONDS)
        found = await slices.run(matching_topics(effect.regexes, tuple(image.topics)))
        if effect.context is not None:
            await slices.run(_keep_described(found, effect.context))
        resolved = {
            regex: ResolvedRegex(frozenset(topics), image.offset, began_ms)
            for regex, topics in found.items()
        }
        if not engine.is_closed:
            engine.run(regexes.install, effect.group_id, resolved)

    # -- assignments -------------------------------------------------------------------------

    async def _assign(self, engine: Engine[GroupShard], effect: AssignInBackground) -> None:
        job = background_assignment.begin(engine.machine, effect)
        if job is None:
            return
        try:
            await self._install(engine, job)
        finally:
            background_assignment.abandon(engine.machine, job)

    async def _install(self, engine: Engine[GroupShard], job: AssignmentJob) -> None:
        slices = Slices(self._clock, Slices.BESIDE_OTHERS_SECONDS)
        assignment = await slices.run(run_job(job))
        changes = await slices.run(background_assignment.changes(job, assignment))
        for records in changes:
            await slices.turn()
            if engine.is_closed:
                return
            engine.run(partial(background_assignment.install, job=job, records=records))
        if not engine.is_closed:
            engine.run(partial(background_assignment.finish, job=job))


def _keep_described(found: dict[str, set[str]], access: Any) -> Steps[None]:
    """Remove the topics that a member may not describe."""
    verdicts: dict[str, bool] = {}
    for topics in found.values():
        for name in tuple(topics):
            verdict = verdicts.get(name)
            if verdict is None:
                verdict = verdicts[name] = access.may(DESCRIBE_TOPIC, name, logs_denied=False)
                if len(verdicts) % _CHECKS_PER_STEP == 0:
                    yield
            if not verdict:
                topics.discard(name)
