"""Topics that this node cannot serve because they have segments in remote storage.

A cluster of Apache Kafka may place a topic with `remote.storage.enable=true` here. Its partitions
are offline as after a disk failure: the files stay, and the controller receives a lost directory,
so that other brokers lead them.
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
    """Finds these topics and logs each once."""

    __slots__ = ("_directory", "_like", "_logged")

    def __init__(self, like: DataDirectory) -> None:
        self._like = like
        self._directory: DataDirectory | None = None  # created on demand
        self._logged: set[bytes] = set()

    @property
    def directory(self) -> DataDirectory:
        """An offline directory for their partitions, with the files of a real one."""
        if self._directory is None:
            self._directory = DataDirectory(self._like.files)
            self._directory.is_online = False
            self._directory.directory_id = LOST_DIRECTORY
        return self._directory

    def has(self, topic: TopicImage, settings: TopicSettings) -> bool:
        """Return whether a topic cannot be served."""
        if not settings.remote_storage_enable:
            return False
        if topic.topic_id not in self._logged:
            self._logged.add(topic.topic_id)
            logger.error(
                "topic %s has remote.storage.enable=true, but this broker has no remote storage:"
                " its partitions here are offline; reassign them to other brokers",
                topic.name,
            )
        return True
