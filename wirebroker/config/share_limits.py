"""Limits of share groups that refer to other configs.

Source: Kafka's ShareGroupConfig.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.config.rows.row import ConfigError

if TYPE_CHECKING:
    from wirebroker.config.rows.settings import Settings

# Each is at least as large as the next one. In the order in which Kafka reports errors.
_NOT_LESS: Final = (
    ("group.share.max.delivery.count.limit", "group.share.delivery.count.limit"),
    ("group.share.delivery.count.limit", "group.share.min.delivery.count.limit"),
    ("group.share.max.partition.max.record.locks", "group.share.partition.max.record.locks"),
    ("group.share.partition.max.record.locks", "group.share.min.partition.max.record.locks"),
    ("group.share.record.lock.duration.ms", "group.share.min.record.lock.duration.ms"),
    ("group.share.max.record.lock.duration.ms", "group.share.record.lock.duration.ms"),
    ("group.share.max.share.sessions", "group.share.max.size"),
)


def check_share_limits(config: Settings) -> None:
    """Check the limits of share groups.

    Raises:
        ConfigError: One contradicts another; with Kafka's text.
    """
    for larger, smaller in _NOT_LESS:
        if _number(config, larger) < _number(config, smaller):
            raise ConfigError(f"{larger} must be greater than or equal to {smaller}")


def _number(config: Settings, name: str) -> int:
    value = config.set_or_default(name)
    assert isinstance(value, int)
    return value
