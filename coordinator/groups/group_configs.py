"""Timeouts and intervals of a consumer group: its own configs, else the broker's.

A group's own value is clamped to the broker's current limits, which may be narrower than the
controller's. A value that this release cannot parse is ignored.

Source: Kafka's GroupConfigManager and GroupConfig.evaluate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.config.groups import GROUP_ROWS
from wirebroker.config.rows.row import ConfigError
from wirebroker.coordinator.controller.image.cluster_image import ResourceType

if TYPE_CHECKING:
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.groups.settings import GroupSettings


def consumer_session_timeout_ms(settings: GroupSettings, image: ClusterImage, group_id: str) -> int:
    """Return how long a member of the group lives without a heartbeat."""
    own = _own(image, group_id, "consumer.session.timeout.ms")
    limits = settings.consumer_min_session_timeout_ms, settings.consumer_max_session_timeout_ms
    return _clamped(own, settings.consumer_session_timeout_ms, limits)


def consumer_heartbeat_interval_ms(
    settings: GroupSettings, image: ClusterImage, group_id: str
) -> int:
    """Return the interval at which the group's members send heartbeats."""
    own = _own(image, group_id, "consumer.heartbeat.interval.ms")
    at_least = settings.consumer_min_heartbeat_interval_ms
    limits = at_least, settings.consumer_max_heartbeat_interval_ms
    return _clamped(own, settings.consumer_heartbeat_interval_ms, limits)


def consumer_assignment_interval_ms(
    settings: GroupSettings, image: ClusterImage, group_id: str
) -> int:
    """Return the minimum interval between two target assignments of the group."""
    own = _own(image, group_id, "consumer.assignment.interval.ms")
    at_least = settings.consumer_min_assignment_interval_ms
    limits = at_least, settings.consumer_max_assignment_interval_ms
    return _clamped(own, settings.consumer_assignment_interval_ms, limits)


def _clamped(own: int | None, of_broker: int, limits: tuple[int, int]) -> int:
    at_least, at_most = limits
    return of_broker if own is None else max(at_least, min(own, at_most))


def _own(image: ClusterImage, group_id: str, name: str) -> int | None:
    text = image.config(ResourceType.GROUP, group_id).get(name)
    if text is None:
        return None
    try:
        value = GROUP_ROWS[name].parse(text)
    except ConfigError:
        return None
    assert isinstance(value, int)
    return value
