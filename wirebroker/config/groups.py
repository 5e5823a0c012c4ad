"""Group configs: their rows and their validation.

Most take their default from the broker config `group.<name>`. Kafka validates all of a group's
configs after each change, by the limits of the controller's node.

Source: Kafka 4.4.0's GroupConfig.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from wirebroker.config.group_limits import limits_of
from wirebroker.config.rows.forms import CLUSTER_WIDE, boolean, text
from wirebroker.config.rows.row import ConfigError, ConfigType
from wirebroker.config.rows.texts import short_wish
from wirebroker.config.table import ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.config.rows.row import ConfigRow, ConfigValue
    from wirebroker.config.rows.settings import Settings

_TAGS: Final = "streams.rack.aware.assignment.tags"
_ASSIGNOR: Final = "streams.assignor.name"
_ASSIGNORS: Final = "group.streams.assignors"
_DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"
# The broker has a minimum and a maximum of each. In the order in which Kafka reports errors.
_LIMITED: Final = (
    "consumer.heartbeat.interval.ms",
    "consumer.session.timeout.ms",
    "consumer.assignment.interval.ms",
    "share.heartbeat.interval.ms",
    "share.session.timeout.ms",
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
    "share.assignment.interval.ms",
    "streams.heartbeat.interval.ms",
    "streams.session.timeout.ms",
    "streams.assignment.interval.ms",
)
_MINIMA: Final = {"streams.task.offset.interval.ms": "group.streams.min.task.offset.interval.ms"}
_MAXIMA: Final = {
    "streams.num.standby.replicas": "group.streams.max.standby.replicas",
    "streams.num.warmup.replicas": "group.streams.max.warmup.replicas",
}
_WITH_BROKER_DEFAULT: Final = (
    *_LIMITED,
    *_MINIMA,
    *_MAXIMA,
    "consumer.assignor.offload.enable",
    "share.assignor.offload.enable",
    "streams.acceptable.recovery.lag",
    "streams.assignor.offload.enable",
    "streams.initial.rebalance.delay.ms",
    _TAGS,
)
# A java.time.Duration.
_DURATION: Final = re.compile(
    r"(?P<sign>[+-]?)P(?:(?P<days>[+-]?[0-9]+)D)?(?:T(?=[-+0-9])"
    r"(?:(?P<hours>[+-]?[0-9]+)H)?(?:(?P<minutes>[+-]?[0-9]+)M)?"
    r"(?:(?P<seconds>[+-]?[0-9]+)(?:[.,](?P<part>[0-9]{0,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)
_UNIT_SECONDS: Final = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}


def _given(name: str, type_: ConfigType | None, giver: str) -> ConfigRow:
    row = ROWS[giver]
    return replace(row, name=name, type=type_ or row.type, at_most=None, synonyms=(giver,))


def _tags_wish(value: ConfigValue) -> str | None:
    assert isinstance(value, tuple)
    return "its items must not be empty" if "" in value else short_wish(",".join(value))


def _offset_reset_wish(value: ConfigValue) -> str | None:
    """Return what share.auto.offset.reset must be, unless it is valid."""
    if value in {"earliest", "latest"}:
        return None
    prefix, _, duration = str(value).partition(":")
    match = _DURATION.fullmatch(duration)
    if prefix == "by_duration" and match is not None and _is_valid(match):
        return None
    return "it must be earliest, latest or by_duration:<PnDTnHnMn.nS>"


def _is_valid(match: re.Match[str]) -> bool:
    """Return whether a duration has a unit, is not negative, and fits into Java's class."""
    has_unit = any(match[unit] is not None for unit in _UNIT_SECONDS)
    return has_unit and 0 <= _nanoseconds(match) < 10**9 << 63


def _nanoseconds(match: re.Match[str]) -> int:
    units = {unit: match[unit] for unit in _UNIT_SECONDS if match[unit] is not None}
    seconds = sum(int(number) * _UNIT_SECONDS[unit] for unit, number in units.items())
    part = int((match["part"] or "").ljust(9, "0")) * _sign(match["seconds"])
    return (seconds * 10**9 + part) * _sign(match["sign"])


def reset_duration_ms(value: str) -> int | None:
    """Return the duration of a valid share.auto.offset.reset, or None."""
    match = _DURATION.fullmatch(value.removeprefix("by_duration:"))
    return None if match is None else -(-_nanoseconds(match) // 1_000_000)


def _sign(text: str | None) -> int:
    return -1 if (text or "").startswith("-") else 1


_ALL: Final = (
    *(_given(name, None, f"group.{name}") for name in _WITH_BROKER_DEFAULT),
    # Takes the first item of the broker's list.
    replace(_given(_ASSIGNOR, ConfigType.STRING, _ASSIGNORS), check=short_wish, choices=()),
    boolean(
        "errors.deadletterqueue.copy.record.enable",
        False,
        "Whether dead letters contain the keys and values of their records.",
        mutability=CLUSTER_WIDE,
    ),
    text(
        _DEAD_LETTERS,
        "",
        "The topic of the group's dead letters: records that were rejected, or delivered too often "
        "(KIP-1191). Without it they are dropped.",
        mutability=CLUSTER_WIDE,
    ),
    text(
        "share.auto.offset.reset",
        "latest",
        "Where the group begins to read a partition: `latest`, `earliest`, or "
        "`by_duration:<PnDTnHnMn.nS>`, so long before the present.",
        mutability=CLUSTER_WIDE,
    ),
    text(
        "share.isolation.level",
        "read_uncommitted",
        "Whether the group gets records of open and aborted transactions.",
        choices=("read_committed", "read_uncommitted"),
        mutability=CLUSTER_WIDE,
    ),
    boolean(
        "share.renew.acknowledge.enable",
        True,
        "Whether members may renew the locks of their records (KIP-1222).",
        mutability=CLUSTER_WIDE,
    ),
)
_CHECKS: Final = {
    _TAGS: _tags_wish,
    _DEAD_LETTERS: short_wish,
    "share.auto.offset.reset": _offset_reset_wish,
}
GROUP_ROWS: Final = {row.name: replace(row, check=_CHECKS.get(row.name, row.check)) for row in _ALL}


def validate_group_configs(config: Settings, overrides: Mapping[str, str]) -> None:
    """Validate all configs of a group.

    Raises:
        ConfigError: One is unknown or invalid; with Kafka's text, except for types and ranges that
            do not depend on the broker.
    """
    for name in overrides:
        if name not in GROUP_ROWS:
            raise ConfigError(f"Unknown group config name: {name}")
    tags = overrides.get(_TAGS, "").strip()
    if tags and len(items := re.split(r"\s*,\s*", tags)) != len(set(items)):
        raise ConfigError(f"{_TAGS} must not contain duplicate tag keys.")
    values = {name: GROUP_ROWS[name].parse(text) for name, text in overrides.items()}
    _check_limits(config, values)
    assignors = config.set_or_default(_ASSIGNORS)
    assert isinstance(assignors, tuple)
    if _ASSIGNOR in values and values[_ASSIGNOR] not in assignors:
        raise ConfigError(
            f"{_ASSIGNOR} '{values[_ASSIGNOR]}' is not a registered task assignor. "
            f"Registered assignors are: [{', '.join(assignors)}]."
        )
    for kind in ("consumer", "share", "streams"):
        _check_session(config, values, kind)
    if str(values.get(_DEAD_LETTERS, "")).startswith("__"):
        raise ConfigError(f"{_DEAD_LETTERS}: DLQ topic name must not start with '__'")


def _check_limits(config: Settings, values: Mapping[str, ConfigValue]) -> None:
    for name in _LIMITED:
        if name in values:
            at_least, at_most = (_number(config, limit) for limit in limits_of(f"group.{name}"))
            if not at_least <= _as_number(values[name]) <= at_most:
                raise ConfigError(f"{name} must be in the range {at_least} to {at_most} inclusive.")
    for name, limit in _MINIMA.items():
        if name in values and _as_number(values[name]) < _number(config, limit):
            raise ConfigError(f"{name} must be greater than or equal to {_number(config, limit)}")
    for name, limit in _MAXIMA.items():
        if name in values and _as_number(values[name]) > _number(config, limit):
            raise ConfigError(f"{name} must be less than or equal to {_number(config, limit)}")


def _check_session(config: Settings, values: Mapping[str, ConfigValue], kind: str) -> None:
    names = (f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms")
    if not values.keys().isdisjoint(names):
        session_ms, heartbeat_ms = (
            _as_number(values[name]) if name in values else _number(config, f"group.{name}")
            for name in names
        )
        if session_ms <= heartbeat_ms:
            raise ConfigError(f"{names[0]} must be greater than {names[1]}")


def _number(config: Settings, name: str) -> int:
    return _as_number(config.set_or_default(name))


def _as_number(value: ConfigValue) -> int:
    assert isinstance(value, int)
    return value
