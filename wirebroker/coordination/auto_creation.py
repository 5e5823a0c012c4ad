"""Topics created because somebody asked for their metadata (auto.create.topics.enable).

As in Kafka the asker is told UNKNOWN_TOPIC_OR_PARTITION and asks again; the creation runs meanwhile
and a topic is under creation at most once. Source: Kafka's DefaultAutoTopicCreationManager.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from wirebroker.base.clock import next_turn
from wirebroker.base.log_bound import about
from wirebroker.base.wording import few_of
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from wirebroker.config import Config
    from wirebroker.quorum.channel.controller_channel import ControllerChannel
    from wirebroker.request.session import Session

logger = logging.getLogger(__name__)

# Far more than a client's subscription; a request for more gets the rest when it asks again.
MAX_UNDER_CREATION = 1_000
# In one request: the event loop is held while it and its answer are made, some 40 us for each.
_MOST_AT_ONCE = 100
_MOST_NAMES = 10  # in a line of the log
_CONTROLLERS_DEFAULT = -1  # in a CreateTopics request


class AutoCreation:
    """The topics that are being created."""

    __slots__ = ("_controller", "_internal", "_names", "_tasks")

    def __init__(
        self,
        controller: ControllerChannel,
        internal: Mapping[str, Callable[[], asyncio.Task[None]]],
    ) -> None:
        """Initialize without any creation under way.

        Args:
            controller: The controller that creates topics.
            internal: For each internal topic, the function that creates it with its own
                partitions, replicas and configs.
        """
        self._controller = controller
        self._internal = internal
        self._names: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def create(self, names: Iterable[str], config: Config, asker: Session) -> None:
        """Start creating topics with these (valid) names.

        Args:
            names: Of topics that do not exist.
            config: The broker's. Its partitions and replicas apply, except to internal topics;
                where it sets none, the controller's configuration applies.
            asker: Whose request it was: lines of what fails are bounded by his address.
        """
        wanted: list[str] = []
        for name in names:
            if name in self._internal:
                self._keep(self._internal[name]())
            elif name not in self._names:
                wanted.append(name)
        wanted = wanted[: MAX_UNDER_CREATION - len(self._names)]
        if not wanted:
            return
        self._names.update(wanted)
        task = asyncio.get_running_loop().create_task(
            self._create(wanted, _shape(config), about(asker.peer, asker.listener_name))
        )
        self._keep(task)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def until_made(self, *, timeout_s: float) -> bool:
        """Wait until what was begun is over, made or failed; say whether there was anything.

        Args:
            timeout_s: No longer than so many seconds.
        """
        if not self._tasks:
            return False
        await asyncio.wait(tuple(self._tasks), timeout=timeout_s)
        return True

    async def _create(
        self, names: list[str], shape: Mapping[str, int], bounds: Mapping[str, object]
    ) -> None:
        begun = 0
        try:
            for begun in range(0, len(names), _MOST_AT_ONCE):
                await self._create_some(names[begun : begun + _MOST_AT_ONCE], shape, bounds)
                await next_turn()
        except KafkaError as error:
            failed = few_of(names[begun:], _MOST_NAMES)
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
                logger.info("created topic %s because a client asked for it", result.name)
            elif code != ErrorCode.TOPIC_ALREADY_EXISTS:
                failed = result.name, code.name
                logger.warning("auto-creation of %s failed: %s", *failed, extra=bounds)


def _shape(config: Config) -> dict[str, int]:
    """Return the partition count and the replication factor that a CreateTopics request names."""
    fields = {
        "num_partitions": "num.partitions",
        "replication_factor": "default.replication.factor",
    }
    return {
        field: config.int(name) if config.is_set(name) else _CONTROLLERS_DEFAULT
        for field, name in fields.items()
    }
