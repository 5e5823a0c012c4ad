"""Long work for groups, in slices beside their shards.

    ResolveRegexes       search the topics, keep those that the member may describe, install them
    AssignInBackground   compute a large consumer group's target assignment, install it
    AssignShareGroup     the same for a share group
    AssignTasks          the same for a streams group
    HashTopics           hash the topics of a large group that was loaded
    InitializeShareState   see share_state_effects.py
    ServeDowngraded      begin to serve a group that has become classic; at once

A result is installed by an operation of the group's shard, and dropped if the shard was unloaded in
the meantime.

Source: Kafka's CoordinatorExecutorImpl, TopicRegexResolver.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.clock import Slices
from wirebroker.base.log_bound import about_group
from wirebroker.codecs.permissions import DESCRIBE_TOPIC
from wirebroker.coordination.share_state_effects import ShareStateEffects
from wirebroker.coordinator.groups.consumer import (
    background_assignment,
    downgrade,
    regexes,
    target_assignment,
)
from wirebroker.coordinator.groups.consumer.downgrade import ServeDowngraded
from wirebroker.coordinator.groups.consumer.regexes import ResolveRegexes
from wirebroker.coordinator.groups.consumer.subscriptions import ResolvedRegex
from wirebroker.coordinator.groups.consumer.target_assignment import AssignInBackground
from wirebroker.coordinator.groups.consumer.topic_regex import matching_topics
from wirebroker.coordinator.groups.shard import topic_lookup
from wirebroker.coordinator.groups.shard.topic_lookup import HashTopics
from wirebroker.coordinator.groups.share import share_assignment, share_background
from wirebroker.coordinator.groups.share.share_assignment import AssignShareGroup
from wirebroker.coordinator.groups.share.share_initialization import InitializeShareState
from wirebroker.coordinator.groups.streams import background_tasks, task_assignment
from wirebroker.coordinator.groups.streams.task_assignment import AssignTasks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from wirebroker.base.clock import Clock, Steps
    from wirebroker.coordination.share_state_effects import StateInitializer
    from wirebroker.coordinator.groups.shard.shard import GroupShard
    from wirebroker.engine.engine import Engine
    from wirebroker.quorum.image.metadata_follower import MetadataFollower

logger = logging.getLogger(__name__)

# Topics whose rights are looked up between two yields.
_CHECKS_PER_STEP = 64


class GroupEffects:
    """The running work of all shards of this node."""

    __slots__ = (
        "_clock",
        "_kinds",
        "_long_turn",
        "_metadata",
        "_tasks",
        "_turn",
    )

    def __init__(
        self,
        clock: Clock,
        metadata: MetadataFollower,
        persister: Callable[[], StateInitializer] | None,
    ) -> None:
        """Without a `persister`, share groups cannot be served."""
        self._clock = clock
        self._metadata = metadata
        share_state = ShareStateEffects(clock, persister)
        self._tasks: set[asyncio.Task[None]] = set()
        # One at a time, so that many groups do not fill each turn of the loop.
        self._turn = asyncio.Lock()
        # For assignments that take longer, so that small groups need not wait for them.
        self._long_turn = asyncio.Lock()
        # Work by kind of effect, with its name for the log.
        self._kinds: Mapping[type[Any], tuple[str, Callable[..., Awaitable[None]]]] = {
            ResolveRegexes: ("resolving regular expressions", self._resolve),
            AssignInBackground: ("the target assignment", self._assign),
            AssignShareGroup: ("the target assignment", self._assign),
            AssignTasks: ("the assignment of tasks", self._assign),
            HashTopics: ("hashing topics", self._hash_topics),
            InitializeShareState: ("initializing share state", share_state.initialize),
        }

    def begin(self, engine: Engine[GroupShard], effect: Any) -> None:
        """Do the work of an effect, or begin it."""
        if isinstance(effect, ServeDowngraded):
            engine.run(downgrade.begin, effect)
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
        work, perform = self._kinds[type(effect)]
        try:
            await perform(engine, effect)
        except Exception:  # the root of a task
            group_id = effect.group_id
            bounds = about_group(group_id)
            logger.exception(
                "group %s: %s failed; a heartbeat retries", group_id, work, extra=bounds
            )

    async def _hash_topics(self, engine: Engine[GroupShard], effect: HashTopics) -> None:
        async with self._turn:
            slices = Slices(self._clock, Slices.BESIDE_OTHERS_SECONDS)
            await slices.run(topic_lookup.look_up(engine.machine, effect.group_id))

    # -- regular expressions -----------------------------------------------------------------

    async def _resolve(self, engine: Engine[GroupShard], effect: ResolveRegexes) -> None:
        try:
            async with self._turn:
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
        for regex in resolved.values():
            await slices.run(engine.machine.topic_hashes.add(regex.topics))
        records = await slices.run(regexes.records_of(effect.group_id, resolved))
        if not engine.is_closed:
            engine.run(regexes.install, effect.group_id, records)

    # -- assignments -------------------------------------------------------------------------

    async def _assign(self, engine: Engine[GroupShard], effect: Any) -> None:
        work, _ = _ASSIGNMENTS[type(effect)]
        async with self._turn:
            job = work.begin(engine.machine, effect)
            if job is None:
                return
            if job.is_brief:
                await self._run(engine, effect, job)
                return
        try:
            async with self._long_turn:
                # The group has changed meanwhile.
                work.abandon(engine.machine, job)
                job = None if engine.is_closed else work.begin(engine.machine, effect)
                if job is not None:
                    await self._run(engine, effect, job)
        finally:
            if job is not None:
                work.abandon(engine.machine, job)

    async def _run(self, engine: Engine[GroupShard], effect: Any, job: Any) -> None:
        work, computation = _ASSIGNMENTS[type(effect)]
        try:
            await self._install(engine, work, computation.run_job(job), job)
        finally:
            work.abandon(engine.machine, job)

    async def _install(
        self, engine: Engine[GroupShard], work: Any, steps: Steps[Any], job: Any
    ) -> None:
        """Compute an assignment in slices, and append it in portions."""
        slices = Slices(self._clock, Slices.BESIDE_OTHERS_SECONDS)
        assignment = await slices.run(steps)
        changes = await slices.run(work.changes(job, assignment))
        for records in changes:
            await slices.turn()
            if engine.is_closed:
                return
            engine.run(partial(work.install, job=job, records=records))
        if not engine.is_closed:
            engine.run(partial(work.finish, job=job))


# The modules with the records of a kind's assignments, and with their computation.
_ASSIGNMENTS: Final[Mapping[type[Any], tuple[Any, Any]]] = {
    AssignInBackground: (background_assignment, target_assignment),
    AssignShareGroup: (share_background, share_assignment),
    AssignTasks: (background_tasks, task_assignment),
}


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
