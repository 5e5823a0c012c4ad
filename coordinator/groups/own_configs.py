"""The own configs of a group, as the config resource GROUP has them.

A value that this release cannot parse is ignored.

Source: Kafka's GroupConfigManager and GroupConfig.evaluate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.config.groups import GROUP_ROWS
from wirebroker.config.rows.row import ConfigError
from wirebroker.coordinator.controller.image.cluster_image import ResourceType

if TYPE_CHECKING:
    from wirebroker.config.rows.row import ConfigValue
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage


def own_value(image: ClusterImage, group_id: str, name: str) -> ConfigValue:
    """Return a group's own value; None without one."""
    text = image.config(ResourceType.GROUP, group_id).get(name)
    if text is None:
        return None
    try:
        return GROUP_ROWS[name].parse(text)
    except ConfigError:
        return None


def own_number(image: ClusterImage, group_id: str, name: str) -> int | None:
    """Return a group's own value of a number; None without one."""
    value = own_value(image, group_id, name)
    assert value is None or isinstance(value, int)
    return value


def clamped(own: int | None, of_broker: int, limits: tuple[int, int]) -> int:
    """Return a group's own value within the broker's limits; without one, the broker's value."""
    at_least, at_most = limits
    return of_broker if own is None else max(at_least, min(own, at_most))
