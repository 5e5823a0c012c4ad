"""Creates topics when a client requests their metadata (auto.create.topics.enable).

The client receives UNKNOWN_TOPIC_OR_PARTITION and retries meanwhile. Source: Kafka's
DefaultAutoTopicCreationManager.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from wirebroker.base.clock import next_turn
from wirebroker.base.log_bound import about
from wirebroker.base.text import few_of
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from wirebroker.config import Config
    from wirebroker.quorum.channel.controller_channel import ControllerChannel
    from wirebroker.request.session import Session

logger = logging.getLogger(__name__)

# Topics beyond these are created when the client retries.
MAX_UNDER_CREATION = 1_000
# In one request, which blocks the event loop for 40 us per topic.
_MOST_AT_ONCE = 100
_MOST_NAMES = 10  # in a log line
_CONTROLLERS_DEFAULT = -1  # in a CreateTopics request


class AutoCreation:
    """The topics that are being created, each at most once."""

    __slots__ = ("_controller", "_internal", "_names", "_tasks")

    def __init__(
        self,
        controller: ControllerChannel,
        internal: Mapping[str, Callable[[], asyncio.Task[None]]],
    ) -> None:
        """Create internal topics by the functions in `internal`, others by `controller`."""
        self._controller = controller
        self._internal = internal
        self._names: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def create(self, names: Iterable[str], config: Config, asker: Session) -> None:
        """Start to create topics with valid names.

        `config` is the broker's; the controller decides unset defaults. The address of `asker`
        limits the log lines about failures.
        """
        missing: list[str] = []
        for name in names:
            if name in self._internal:
                self._keep(self._internal[name]())
            elif name not in self._names:
                missing.append(name)
        missing = missing[: MAX_UNDER_CREATION - len(self._names)]
        if not missing:
            return
        self._names.update(missing)
        task = asyncio.get_running_loop().create_task(
            self._create(missing, _shape(config), about(asker.peer, asker.listener_name))
        )
        self._keep(task)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def until_made(self, *, timeout_s: float) -> bool:
        """Wait until all creations are over; return whether there were any."""
        if not self._tasks:
            return False
        await asyncio.wait(tuple(self._tasks), timeout=timeout_s)
        return True

    async def _create(
        self, names: list[str], shape: Mapping[str, int], bounds: Mapping[str, object]
    ) -> None:
        start = 0
        try:
            for start in range(0, len(names), _MOST_AT_ONCE):
                await self._create_some(names[start : start + _MOST_AT_ONCE], shape, bounds)
                await next_turn()
        except KafkaError as error:
            failed = few_of(names[start:], _MOST_NAMES)
            logger.warning("auto-creation of %s failed: %s", failed, error, extra=bounds)
        finally:
            self._names.difference_update(names)

    async def _create_some(
        self, names: list[str], shape: Mapping[str, int], bounds: Mapping[str, object]
    ) -> None:
        topics = [{"name": name, **shape} for name in names]
        answer = await self._controller.ask(ApiKey.CREATE_TOPICS, {"topics": topics})
        for result in answer.topics:
            code = ErrorCode(result.error_code)
            if code == ErrorCode.NONE:
                logger.info(
                    "created topic %s because a client requested it", result.name, extra=bounds
                )
            elif code != ErrorCode.TOPIC_ALREADY_EXISTS:
                failed = result.name, code.name
                logger.warning("auto-creation of %s failed: %s", *failed, extra=bounds)


def _shape(config: Config) -> dict[str, int]:
    fields = {
        "num_partitions": "num.partitions",
        "replication_factor": "default.replication.factor",
    }
    return {
        field: config.int(name) if config.is_set(name) else _CONTROLLERS_DEFAULT
        for field, name in fields.items()
    }
