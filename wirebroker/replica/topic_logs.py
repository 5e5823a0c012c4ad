"""Creates the logs of partitions, with the settings of their topics.

Topics with the same overrides share one settings object, so 10,000 topics need only a few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.storage.log.log import Log

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.config import Config, TopicSettings
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage, TopicImage
    from wirebroker.storage.files import Files

# Cached settings objects.
MOST_SETTINGS = 256


class TopicLogs:
    """Creates logs."""

    __slots__ = ("_config", "_files", "_on_roll", "_settings")

    def __init__(self, files: Files, config: Config, *, on_roll: Callable[[Log], None]) -> None:
        """Create logs on `files`; `on_roll` is called for each closed segment, in any thread."""
        self._files = files
        self._config = config
        self._on_roll = on_roll
        self._settings: dict[frozenset[tuple[str, str]], TopicSettings] = {}

    def __len__(self) -> int:
        """Return the number of cached settings."""
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
        """Return the settings of a topic: defaults and overrides."""
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
