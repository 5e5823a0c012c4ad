"""Topics that this node may have replicas of and cannot serve: those with segments elsewhere.

A cluster of Apache Kafka's may place a topic with `remote.storage.enable=true` here. What is in
remote storage cannot be read, and what is deleted locally would be gone; so such a partition is
offline, as if its disk had failed: its files are left as they are, one line names the topic, and
the controller is told that it lies in a directory that is lost, so that others lead it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from wirebroker.coordinator.controller.image.cluster_image import LOST_DIRECTORY
from wirebroker.disks.data_directory import DataDirectory

if TYPE_CHECKING:
    from wirebroker.config import TopicSettings
    from wirebroker.coordinator.controller.image.cluster_image import TopicImage

logger = logging.getLogger(__name__)


class UnservedTopics:
    """Says which they are, once each."""

    __slots__ = ("_directory", "_like", "_told")

    def __init__(self, like: DataDirectory) -> None:
        self._like = like
        self._directory: DataDirectory | None = None  # most nodes need none
        self._told: set[bytes] = set()

    @property
    def directory(self) -> DataDirectory:
        """Where their partitions are said to lie: of the files of another one, but lost."""
        if self._directory is None:
            self._directory = DataDirectory(self._like.files)
            self._directory.is_online = False
            self._directory.directory_id = LOST_DIRECTORY
        return self._directory

    def has(self, topic: TopicImage, settings: TopicSettings) -> bool:
        """Tell whether a topic cannot be served."""
        if not settings.remote_storage_enable:
            return False
        if topic.topic_id not in self._told:
            self._told.add(topic.topic_id)
            logger.error(
                "topic %s has remote.storage.enable=true, and there is no remote storage here: its"
                " partitions on this broker are offline; reassign them to other brokers",
                topic.name,
            )
        return True
