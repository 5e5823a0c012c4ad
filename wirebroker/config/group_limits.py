"""Limits of a consumer group's times: the broker's minimum and maximum of each.

Source: Kafka's GroupCoordinatorConfig.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.config.rows.row import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from wirebroker.config.rows.row import ConfigValue
    from wirebroker.config.rows.settings import Settings

ASSIGNMENT_INTERVAL: Final = "group.consumer.assignment.interval.ms"
_HEARTBEAT_INTERVAL: Final = "group.consumer.heartbeat.interval.ms"
_SESSION_TIMEOUT: Final = "group.consumer.session.timeout.ms"


def limits_of(name: str) -> tuple[str, str]:
    """Return the configs of the minimum and maximum of `group.<kind>.<rest>`."""
    group, kind, rest = name.split(".", 2)
    return f"{group}.{kind}.min.{rest}", f"{group}.{kind}.max.{rest}"


def check_consumer_groups(config: Settings) -> None:
    """Check the times of consumer groups.

    Raises:
        ConfigError: One exceeds its limits, or the session is too short; with Kafka's text.
    """
    for is_valid, text in _requirements(config):
        if not is_valid:
            raise ConfigError(text)


def check_dynamic_interval(config: Settings, dynamic: Mapping[str, str]) -> None:
    """Check dynamic configs: a new interval between assignments must be within its limits.

    Raises:
        ConfigError: It is not.
    """
    if ASSIGNMENT_INTERVAL in dynamic:
        value = int(dynamic[ASSIGNMENT_INTERVAL])
        for is_valid, text in _within_limits(config, ASSIGNMENT_INTERVAL, value):
            if not is_valid:
                raise ConfigError(text)


def clamped_interval(values: Mapping[str, ConfigValue]) -> ConfigValue:
    """Return the interval between assignments within its limits.

    A dynamic config may exceed them if they have changed since.
    """
    value, at_least, at_most = (
        values[name] for name in (ASSIGNMENT_INTERVAL, *limits_of(ASSIGNMENT_INTERVAL))
    )
    assert isinstance(value, int)
    assert isinstance(at_least, int)
    assert isinstance(at_most, int)
    return max(at_least, min(value, at_most))


def _requirements(config: Settings) -> Iterator[tuple[bool, str]]:
    for name in (_HEARTBEAT_INTERVAL, _SESSION_TIMEOUT):
        yield from _within_limits(config, name, config.int(name))
    yield (
        config.int(_HEARTBEAT_INTERVAL) < config.int(_SESSION_TIMEOUT),
        f"{_HEARTBEAT_INTERVAL} must be less than {_SESSION_TIMEOUT}",
    )
    yield from _within_limits(config, ASSIGNMENT_INTERVAL, config.int(ASSIGNMENT_INTERVAL))


def _within_limits(config: Settings, name: str, value: int) -> Iterator[tuple[bool, str]]:
    at_least, at_most = limits_of(name)
    yield (
        config.int(at_most) >= config.int(at_least),
        f"{at_most} must be greater than or equal to {at_least}",
    )
    yield value >= config.int(at_least), f"{name} must be greater than or equal to {at_least}"
    yield value <= config.int(at_most), f"{name} must be less than or equal to {at_most}"
