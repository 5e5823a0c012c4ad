"""Limits of the times of groups: the broker's minimum and maximum of each.

Source: Kafka's GroupCoordinatorConfig.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.config.rows.row import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from wirebroker.config.rows.row import ConfigValue
    from wirebroker.config.rows.settings import Settings

# The kinds of groups whose limits are enforced.
_KINDS: Final = ("consumer", "share", "streams")
ASSIGNMENT_INTERVALS: Final = tuple(f"group.{kind}.assignment.interval.ms" for kind in _KINDS)


def limits_of(name: str) -> tuple[str, str]:
    """Return the configs of the minimum and maximum of `group.<kind>.<rest>`."""
    group, kind, rest = name.split(".", 2)
    return f"{group}.{kind}.min.{rest}", f"{group}.{kind}.max.{rest}"


def check_groups(config: Settings) -> None:
    """Check the times of groups.

    Raises:
        ConfigError: One exceeds its limits, or the session is too short; with Kafka's text.
    """
    for kind in _KINDS:
        for is_valid, text in _requirements(config, kind):
            if not is_valid:
                raise ConfigError(text)
    for is_valid, text in _of_streams_groups(config):
        if not is_valid:
            raise ConfigError(text)


def check_dynamic_interval(config: Settings, dynamic: Mapping[str, str]) -> None:
    """Check dynamic configs: a new interval between assignments must be within its limits.

    Raises:
        ConfigError: It is not.
    """
    for name in ASSIGNMENT_INTERVALS:
        if name in dynamic:
            for is_valid, text in _within_limits(config, name, int(dynamic[name])):
                if not is_valid:
                    raise ConfigError(text)


def clamped_interval(name: str, values: Mapping[str, ConfigValue]) -> ConfigValue:
    """Return the interval between assignments within its limits.

    A dynamic config may exceed them if they have changed since.
    """
    value, at_least, at_most = (values[name] for name in (name, *limits_of(name)))
    assert isinstance(value, int)
    assert isinstance(at_least, int)
    assert isinstance(at_most, int)
    return max(at_least, min(value, at_most))


def _requirements(config: Settings, kind: str) -> Iterator[tuple[bool, str]]:
    heartbeat, session = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
    for name in (heartbeat, session):
        yield from _within_limits(config, name, config.int(name))
    is_shorter = config.int(heartbeat) < config.int(session)
    yield is_shorter, f"{heartbeat} must be less than {session}"
    interval = f"group.{kind}.assignment.interval.ms"
    yield from _within_limits(config, interval, config.int(interval))


def _of_streams_groups(config: Settings) -> Iterator[tuple[bool, str]]:
    name, at_most = "group.streams.num.standby.replicas", "group.streams.max.standby.replicas"
    is_valid = config.int(name) <= config.int(at_most)
    yield is_valid, f"{name} must be less than or equal to {at_most}"
    name = "group.streams.task.offset.interval.ms"
    at_least = "group.streams.min.task.offset.interval.ms"
    is_valid = config.int(name) >= config.int(at_least)
    yield is_valid, f"{name} must be greater than or equal to {at_least}"


def _within_limits(config: Settings, name: str, value: int) -> Iterator[tuple[bool, str]]:
    at_least, at_most = limits_of(name)
    yield (
        config.int(at_most) >= config.int(at_least),
        f"{at_most} must be greater than or equal to {at_least}",
    )
    yield value >= config.int(at_least), f"{name} must be greater than or equal to {at_least}"
    yield value <= config.int(at_most), f"{name} must be less than or equal to {at_most}"
