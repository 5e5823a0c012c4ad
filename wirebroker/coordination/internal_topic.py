"""An internal topic, created when it is first needed.

Source: Kafka's DefaultAutoTopicCreationManager.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from wirebroker.base.log_bound import about_topic
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.quorum.channel.controller_channel import ControllerChannel
    from wirebroker.quorum.image.metadata_follower import MetadataFollower

logger = logging.getLogger(__name__)


class InternalTopic:
    """One internal topic."""

    __slots__ = (
        "_configs",
        "_controller",
        "_creation",
        "_metadata",
        "_partition_count",
        "_replication_factor",
        "name",
    )

    def __init__(
        self,
        name: str,
        *,
        partition_count: int,
        replication_factor: int,
        configs: Mapping[str, str],
        metadata: MetadataFollower,
        controller: ControllerChannel,
    ) -> None:
        self.name = name
        self._partition_count = partition_count
        self._replication_factor = replication_factor
        self._configs = configs
        self._metadata = metadata
        self._controller = controller
        self._creation: asyncio.Task[None] | None = None

    @property
    def partition_count(self) -> int:
        """The number of its present or future partitions."""
        topic = self._metadata.image.topics.get(self.name)
        return self._partition_count if topic is None else len(topic.partitions)

    def create(self) -> asyncio.Task[None]:
        """Return the task that creates the topic, started if necessary."""
        if self._creation is None or self._creation.done():
            self._creation = asyncio.create_task(self._create(), name=f"create {self.name}")
        return self._creation

    async def stop(self) -> None:
        """Cancel the creation."""
        if self._creation is not None:
            self._creation.cancel()
            await asyncio.gather(self._creation, return_exceptions=True)

    async def _create(self) -> None:
        topic = {
            "name": self.name,
            "num_partitions": self._partition_count,
            "replication_factor": self._replication_factor,
            "configs": [{"name": name, "value": value} for name, value in self._configs.items()],
        }
        try:
            answer = await self._controller.ask(ApiKey.CREATE_TOPICS, {"topics": [topic]})
        except KafkaError as error:
            bounds = about_topic(self.name)
            logger.warning("cannot create %s: %s", self.name, error, extra=bounds)
            return
        for result in answer.topics:
            code = ErrorCode(result.error_code)
            if code not in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
                logger.warning(
                    "cannot create %s: %s: %s",
                    self.name,
                    code.name,
                    result.error_message,
                    extra=about_topic(self.name),
                )
