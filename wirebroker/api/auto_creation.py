"""Topics created because somebody asked for their metadata (auto.create.topics.enable).

As in Kafka the asker is told UNKNOWN_TOPIC_OR_PARTITION and asks again; the creation runs meanwhile
and a topic is under creation at most once. Source: Kafka's DefaultAutoTopicCreationManager.
"""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.cluster.metadata_log import MetadataLog
    from wirebroker.coordinator.controller import Controller

logger = logging.getLogger(__name__)

# Far more than a client's subscription; a request for more gets the rest when it asks again.
MAX_UNDER_CREATION = 1_000


class AutoCreation:
    """The topics that are being created."""

    __slots__ = ("_controller", "_metadata", "_names", "_tasks")

    def __init__(self, metadata: MetadataLog, controller: Controller) -> None:
        self._metadata = metadata
        self._controller = controller
        self._names: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def create(self, names: Iterable[str]) -> None:
        """Begin to create topics of these (valid) names with the broker's defaults."""
        wanted = [name for name in names if name not in self._names]
        wanted = wanted[: MAX_UNDER_CREATION - len(self._names)]
        if not wanted:
            return
        self._names.update(wanted)
        task = asyncio.get_running_loop().create_task(self._create(wanted))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _create(self, names: list[str]) -> None:
        topics = [
            SimpleNamespace(
                name=name, num_partitions=-1, replication_factor=-1, assignments=[], configs=[]
            )
            for name in names
        ]
        request = SimpleNamespace(topics=topics, validate_only=False)
        try:
            results = await self._metadata.submit(self._controller.create_topics(request))
        except KafkaError as error:
            logger.warning("auto-creation of %s failed: %s", ", ".join(names), error)
            return
        finally:
            self._names.difference_update(names)
        for result in results:
            code = ErrorCode(result.get("error_code", 0))
            if code == ErrorCode.NONE:
                logger.info("created topic %s because a client asked for it", result["name"])
            elif code != ErrorCode.TOPIC_ALREADY_EXISTS:
                logger.warning("auto-creation of %s failed: %s", result["name"], code.name)
