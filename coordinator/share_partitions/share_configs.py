"""The configs of a share group: its own ones, else the broker's.

A group's own value is clamped to the broker's current limits, which may be narrower than the
controller's. A value that this release cannot parse is ignored.

Source: Kafka's ShareGroupConfigProvider, GroupConfig.evaluate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.config.groups import GROUP_ROWS, reset_duration_ms
from wirebroker.config.rows.row import ConfigError
from wirebroker.coordinator.controller.image.cluster_image import ResourceType
from wirebroker.coordinator.share_partitions.share_partition import ShareLimits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.config import Config
    from wirebroker.config.rows.row import ConfigValue
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage

SHARE_VERSION: Final = "share.version"
_FIRST_WITH_DEAD_LETTERS: Final = 2
# Of groups whose configs are kept.
_MOST_GROUPS: Final = 10_000


class OffsetReset(NamedTuple):
    """Where a group begins to read a partition (share.auto.offset.reset)."""

    is_latest: bool = True
    # For by_duration.
    duration_ms: int | None = None


class ShareGroupConfigs(NamedTuple):
    """The configs of one group."""

    limits: ShareLimits
    is_read_committed: bool
    offset_reset: OffsetReset
    # Empty if the group has none.
    dead_letter_topic: str
    copies_dead_records: bool


class ShareConfigs:
    """The configs of all share groups.

    Attributes:
        config: The broker's configuration.
        image: The newest image.
    """

    __slots__ = ("_by_group", "config", "image")

    def __init__(self, config: Config, image: ClusterImage) -> None:
        self.config = config
        self.image = image
        self._by_group: dict[str, ShareGroupConfigs] = {}

    @property
    def is_enabled(self) -> bool:
        """Whether the cluster has share groups."""
        return self._share_version >= 1

    @property
    def _share_version(self) -> int:
        return self.image.features.get(SHARE_VERSION, 0)

    def use(self, config: Config, image: ClusterImage) -> None:
        """Apply a new configuration or image."""
        if config is not self.config or image is not self.image:
            self.config = config
            self.image = image
            self._by_group.clear()

    def of(self, group_id: str) -> ShareGroupConfigs:
        """Return the configs of a group."""
        found = self._by_group.get(group_id)
        if found is None:
            if len(self._by_group) >= _MOST_GROUPS:
                self._by_group.clear()
            found = self._by_group[group_id] = self._evaluated(group_id)
        return found

    def limits(self, group_id: str) -> ShareLimits:
        """Return the limits of a group's operations."""
        return self.of(group_id).limits

    def _evaluated(self, group_id: str) -> ShareGroupConfigs:
        own = self.image.config(ResourceType.GROUP, group_id)
        reset = str(_parsed(own, "share.auto.offset.reset"))
        topic = str(_parsed(own, "errors.deadletterqueue.topic.name"))
        limits = ShareLimits(
            delivery_count_limit=self._clamped(own, "delivery.count.limit"),
            max_record_locks=self._clamped(own, "partition.max.record.locks"),
            lock_duration_ms=self._clamped(own, "record.lock.duration.ms"),
            is_renew_enabled=bool(_parsed(own, "share.renew.acknowledge.enable")),
            has_dead_letters=bool(topic) and self._share_version >= _FIRST_WITH_DEAD_LETTERS,
        )
        return ShareGroupConfigs(
            limits,
            _parsed(own, "share.isolation.level") == "read_committed",
            OffsetReset(is_latest=reset == "latest", duration_ms=reset_duration_ms(reset)),
            topic,
            bool(_parsed(own, "errors.deadletterqueue.copy.record.enable")),
        )

    def _clamped(self, own: Mapping[str, str], name: str) -> int:
        value = _own(own, f"share.{name}")
        config = self.config
        if value is None:
            return config.int(f"group.share.{name}")
        assert isinstance(value, int)
        at_least = config.int(f"group.share.min.{name}")
        at_most = config.int(f"group.share.max.{name}")
        return max(at_least, min(value, at_most))


def _parsed(own: Mapping[str, str], name: str) -> ConfigValue:
    """Return a group's value of a config, or its default."""
    value = _own(own, name)
    if value is not None:
        return value
    row = GROUP_ROWS[name]
    assert row.default is not None
    return row.parse(row.default)


def _own(own: Mapping[str, str], name: str) -> ConfigValue | None:
    text = own.get(name)
    if text is None:
        return None
    try:
        return GROUP_ROWS[name].parse(text)
    except ConfigError:
        return None
