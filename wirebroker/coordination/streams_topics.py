"""Creates the internal topics of streams groups: repartition and changelog topics (KIP-1071).

A heartbeat reports which are missing; they are created in the name of its client. A failure is
reported by later heartbeats, and the topic is tried again when the report has expired.

Source: Kafka's DefaultAutoTopicCreationManager.createStreamsInternalTopics, ExpiringErrorCache.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.clock import next_turn
from wirebroker.base.log_bound import about_topic
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.messages import decode_request, encode_request, request_message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.coordinator.controller.requests.request import Requester
    from wirebroker.coordinator.groups.topologies.topology import TopologyTopic
    from wirebroker.quorum.channel.controller_channel import ControllerChannel

logger = logging.getLogger(__name__)

# Topics beyond these are created after a later heartbeat.
MOST_UNDER_CREATION: Final = 1_000
MOST_FAILURES: Final = 1_000
# In one request, which blocks the event loop for 40 us per topic.
_MOST_AT_ONCE: Final = 25
_TIMEOUT_MS: Final = 30_000


class StreamsTopics:
    """The internal topics that are being created, each at most once, and recent failures."""

    __slots__ = ("_clock", "_controller", "_failures", "_names", "_tasks")

    def __init__(self, clock: Clock, controller: ControllerChannel) -> None:
        self._clock = clock
        self._controller = controller
        self._names: set[str] = set()
        # Reason and end of its report by topic, the oldest first.
        self._failures: dict[str, tuple[str, float]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def create(
        self, topics: Sequence[TopologyTopic], requester: Requester, *, kept_ms: int
    ) -> None:
        """Start to create topics.

        Args:
            topics: With the partition counts that they are to have.
            requester: The client that needs them.
            kept_ms: How long a failure is reported and not tried again.
        """
        room = MOST_UNDER_CREATION - len(self._names)
        failed = self.failures(topic.name for topic in topics)
        wanted = [
            topic for topic in topics if topic.name not in self._names and topic.name not in failed
        ][:room]
        if not wanted:
            return
        self._names.update(topic.name for topic in wanted)
        task = asyncio.get_running_loop().create_task(self._create(wanted, requester, kept_ms))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def failures(self, names: Iterable[str]) -> dict[str, str]:
        """Return the reasons why topics could not be created lately."""
        now = self._clock.monotonic()
        found: dict[str, str] = {}
        for name in names:
            reason, end = self._failures.get(name, ("", now))
            if end > now:
                found[name] = reason
        return found

    async def stop(self) -> None:
        """Cancel all creations."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _create(
        self, topics: Sequence[TopologyTopic], requester: Requester, kept_ms: int
    ) -> None:
        try:
            for start in range(0, len(topics), _MOST_AT_ONCE):
                await self._create_some(topics[start : start + _MOST_AT_ONCE], requester, kept_ms)
                await next_turn()
        finally:
            self._names.difference_update(topic.name for topic in topics)

    async def _create_some(
        self, topics: Sequence[TopologyTopic], requester: Requester, kept_ms: int
    ) -> None:
        try:
            results = await self._ask(topics, requester)
        except KafkaError as error:
            for topic in topics:
                self._note(topic.name, error.message or error.code.name, kept_ms)
            return
        for result in results:
            code = ErrorCode(result.get("error_code", ErrorCode.NONE))
            if code is ErrorCode.NONE:
                logger.info(
                    "created topic %s for a streams group",
                    result["name"],
                    extra=about_topic(result["name"]),
                )
            else:
                self._note(result["name"], result.get("error_message") or code.name, kept_ms)

    async def _ask(
        self, topics: Sequence[TopologyTopic], requester: Requester
    ) -> Sequence[Mapping[str, Any]]:
        from wirebroker.coordinator.groups.topologies.configured_topology import (  # noqa: PLC0415 - lazy
            creatable_topic,
        )

        key = ApiKey.CREATE_TOPICS
        version = request_message(key).versions[-1]
        request = {"topics": list(map(creatable_topic, topics)), "timeout_ms": _TIMEOUT_MS}
        body = decode_request(key, version, encode_request(key, version, request))
        response = await self._controller.forward(key, version, body, requester)
        created: Sequence[Mapping[str, Any]] = response["topics"]
        return created

    def _note(self, name: str, reason: str, kept_ms: int) -> None:
        logger.warning(
            "the internal topic %s of a streams group: %s", name, reason, extra=about_topic(name)
        )
        self._failures.pop(name, None)
        if len(self._failures) >= MOST_FAILURES:
            del self._failures[next(iter(self._failures))]
        self._failures[name] = reason, self._clock.monotonic() + kept_ms / 1000
