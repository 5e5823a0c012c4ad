"""Creates the logs of partitions, with the settings of their topics.

Topics with the same overrides share one settings object, so 10,000 topics need only a few.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from wirebroker.coordinator.controller.image.cluster_image import LOST_DIRECTORY
from wirebroker.disks.data_directory import DataDirectory
from wirebroker.storage.log.log import Log

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.config import Config, TopicSettings
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage, TopicImage
    from wirebroker.storage.files import Files

logger = logging.getLogger(__name__)

# Cached settings objects.
MOST_SETTINGS = 256


class TopicLogs:
    """Creates logs."""

    __slots__ = ("_config", "_files", "_on_roll", "_settings")

    def __init__(self, files: Files, config: Config, *, on_roll: Callable[[Log], None]) -> None:
        """Create logs; `on_roll` is called for each closed segment, in any thread."""
        self._files = files
        self._config = config
        self._on_roll = on_roll
        self._settings: dict[frozenset[tuple[str, str]], TopicSettings] = {}

    def __len__(self) -> int:
        return len(self._settings)

    @property
    def producer_id_expiration_ms(self) -> int:
        """How long idle producers are remembered."""
        return self._config.int("producer.id.expiration.ms")

    def use_config(self, config: Config) -> None:
        """Use changed topic defaults."""
        self._config = config
        self._settings.clear()

    def settings(self, image: ClusterImage, topic: TopicImage) -> TopicSettings:
        """Return a topic's defaults and overrides."""
        overrides = image.topic_config(topic.name)
        key = frozenset(overrides.items())
        settings = self._settings.get(key)
        if settings is None:
            if len(self._settings) >= MOST_SETTINGS:
                self._settings.clear()  # most belong to earlier topics or overrides
            settings = self._settings[key] = self._config.topic_settings(overrides)
        return settings

    def make(self, path: str, topic: TopicImage, index: int, settings: TopicSettings) -> Log:
        """Return the log at `path`, not loaded yet."""
        log = Log(
            path,
            self._files,
            topic=topic.name,
            partition=index,
            topic_id=topic.topic_id,
            settings=settings,
            producer_id_expiration_ms=self.producer_id_expiration_ms,
            walks_records=self._config.str("wirebroker.record.validation") == "full",
        )
        log.on_roll = self._on_roll
        return log


class UnservedTopics:
    """Finds topics with segments in remote storage, which this node cannot serve; logs each once.

    Apache Kafka may place a topic with `remote.storage.enable=true` here. Its partitions are
    offline as after a disk failure: the files stay, and other brokers lead them.
    """

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
