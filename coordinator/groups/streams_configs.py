"""Times and settings of one streams group: its own configs, else the broker's.

A group's own value is clamped to the broker's current limits, which may be narrower than the
controller's.

Source: Kafka's GroupConfigManager and GroupConfig.evaluate,
GroupMetadataManager.streamsGroupAssignmentConfigs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.coordinator.groups.own_configs import clamped, own_number, own_value

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.groups.streams_settings import StreamsSettings

# The settings of the assignor, as a group's record names them.
STANDBY_REPLICAS: Final = "num.standby.replicas"
_RACK_TAGS: Final = "rack.aware.assignment.tags"
_NO_LIMIT: Final = 2**63 - 1


def session_timeout_ms(settings: StreamsSettings, image: ClusterImage, group_id: str) -> int:
    """Return how long a member of the group lives without a heartbeat."""
    own = own_number(image, group_id, "streams.session.timeout.ms")
    limits = settings.min_session_timeout_ms, settings.max_session_timeout_ms
    return clamped(own, settings.session_timeout_ms, limits)


def heartbeat_interval_ms(settings: StreamsSettings, image: ClusterImage, group_id: str) -> int:
    """Return the interval at which the group's members send heartbeats."""
    own = own_number(image, group_id, "streams.heartbeat.interval.ms")
    limits = settings.min_heartbeat_interval_ms, settings.max_heartbeat_interval_ms
    return clamped(own, settings.heartbeat_interval_ms, limits)


def assignment_interval_ms(settings: StreamsSettings, image: ClusterImage, group_id: str) -> int:
    """Return the minimum interval between two target assignments of the group."""
    own = own_number(image, group_id, "streams.assignment.interval.ms")
    limits = settings.min_assignment_interval_ms, settings.max_assignment_interval_ms
    return clamped(own, settings.assignment_interval_ms, limits)


def initial_rebalance_delay_ms(
    settings: StreamsSettings, image: ClusterImage, group_id: str
) -> int:
    """Return how long a group that was empty waits for further members."""
    own = own_number(image, group_id, "streams.initial.rebalance.delay.ms")
    return settings.initial_rebalance_delay_ms if own is None else own


def task_offset_interval_ms(settings: StreamsSettings, image: ClusterImage, group_id: str) -> int:
    """Return how often members report changelog offsets."""
    own = own_number(image, group_id, "streams.task.offset.interval.ms")
    limits = settings.min_task_offset_interval_ms, _NO_LIMIT
    return clamped(own, settings.task_offset_interval_ms, limits)


def acceptable_recovery_lag(settings: StreamsSettings, image: ClusterImage, group_id: str) -> int:
    """Return the lag at which a copy of state counts as complete."""
    own = own_number(image, group_id, "streams.acceptable.recovery.lag")
    return settings.acceptable_recovery_lag if own is None else own


def assignor_name(settings: StreamsSettings, image: ClusterImage, group_id: str) -> str:
    """Return the assignor of the group; a name that is not registered counts as unset."""
    own = own_value(image, group_id, "streams.assignor.name")
    return own if isinstance(own, str) and own in settings.assignors else settings.assignors[0]


def assignment_configs(
    settings: StreamsSettings, image: ClusterImage, group_id: str
) -> dict[str, str]:
    """Return the settings of the assignor; a change of them needs a new assignment."""
    own = own_number(image, group_id, "streams.num.standby.replicas")
    limits = 0, settings.max_standby_replicas
    configs = {STANDBY_REPLICAS: str(clamped(own, settings.num_standby_replicas, limits))}
    tags = own_value(image, group_id, "streams.rack.aware.assignment.tags")
    if not isinstance(tags, tuple):
        tags = settings.rack_aware_assignment_tags
    if tags:
        configs[_RACK_TAGS] = ",".join(tags)
    return configs


def missing_tags(configs: Mapping[str, str], tags: Container[str]) -> list[str]:
    """Return the client tags that a member should have and has not."""
    required = configs.get(_RACK_TAGS, "")
    return [tag for tag in required.split(",") if tag not in tags] if required else []
