"""Timeouts and intervals of a consumer or share group: its own configs, else the broker's.

A group's own value is clamped to the broker's current limits, which may be narrower than the
controller's.

Source: Kafka's GroupConfigManager and GroupConfig.evaluate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.coordinator.groups.own_configs import clamped as _clamped
from wirebroker.coordinator.groups.own_configs import own_number as _own

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


def share_session_timeout_ms(settings: GroupSettings, image: ClusterImage, group_id: str) -> int:
    """Return how long a member of the share group lives without a heartbeat."""
    own = _own(image, group_id, "share.session.timeout.ms")
    limits = settings.share_min_session_timeout_ms, settings.share_max_session_timeout_ms
    return _clamped(own, settings.share_session_timeout_ms, limits)


def share_heartbeat_interval_ms(settings: GroupSettings, image: ClusterImage, group_id: str) -> int:
    """Return the interval at which the share group's members send heartbeats."""
    own = _own(image, group_id, "share.heartbeat.interval.ms")
    limits = settings.share_min_heartbeat_interval_ms, settings.share_max_heartbeat_interval_ms
    return _clamped(own, settings.share_heartbeat_interval_ms, limits)


def share_assignment_interval_ms(
    settings: GroupSettings, image: ClusterImage, group_id: str
) -> int:
    """Return the minimum interval between two target assignments of the share group."""
    own = _own(image, group_id, "share.assignment.interval.ms")
    limits = settings.share_min_assignment_interval_ms, settings.share_max_assignment_interval_ms
    return _clamped(own, settings.share_assignment_interval_ms, limits)
