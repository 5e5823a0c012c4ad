"""Checks over several configs.

Source: Kafka's KafkaConfig and LogConfig.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.config.group_limits import check_groups
from wirebroker.config.quorum import check_quorum
from wirebroker.config.rows.row import ConfigError
from wirebroker.config.rows.texts import text_of
from wirebroker.config.rows.topic import TOPIC_ROWS
from wirebroker.config.share_limits import check_share_limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.config.rows.row import ConfigValue
    from wirebroker.config.rows.settings import Settings


def check_together(config: Settings, topic_defaults: Mapping[str, ConfigValue]) -> None:
    """Check that the values are valid together; `topic_defaults` are in the topics' units.

    Raises:
        ConfigError: They are not.
    """
    if not config.log_directories or not all(config.log_directories):
        raise ConfigError("log.dirs is empty: name at least one directory")
    for name, value in topic_defaults.items():
        if value is None:
            continue
        try:
            TOPIC_ROWS[name].parse(text_of(value) or "")
        except ConfigError as error:
            names = ", ".join(TOPIC_ROWS[name].synonyms)
            raise ConfigError(f"{error} (set by {names})") from None
    if topic_defaults["retention.ms"] == 0:
        raise ConfigError("log.retention.ms=0 cannot be used: it must be -1 or at least 1")
    _check_cordoned(config)
    _check_numbers(config)
    check_groups(config)
    check_share_limits(config)
    if config.is_set("broker.id") and config.int("broker.id") != config.node_id:
        raise ConfigError("node.id and broker.id differ: set only one of them")
    check_quorum(config)


def _check_cordoned(config: Settings) -> None:
    cordoned = config.list("cordoned.log.dirs")
    if "*" in cordoned and len(cordoned) > 1:
        raise ConfigError("cordoned.log.dirs: * means all directories and must be the only item")
    for directory in cordoned:
        if directory not in {"*", *config.log_directories}:
            raise ConfigError(f"cordoned.log.dirs: {directory} is not one of log.dirs")


def _check_numbers(config: Settings) -> None:
    if config.int("log.cleaner.threads") < 1:
        raise ConfigError("log.cleaner.threads=0 cannot be used: it must be at least 1")
    if config.int("log.cleaner.dedupe.buffer.size") // config.int("log.cleaner.threads") <= 1 << 20:
        raise ConfigError(
            "log.cleaner.dedupe.buffer.size cannot be used: it must be more than 1048576 "
            "for each of log.cleaner.threads"
        )
    if config.int("max.connections.per.ip") == 0 and not config.str(
        "max.connections.per.ip.overrides"
    ):
        raise ConfigError(
            "max.connections.per.ip=0 cannot be used: without max.connections.per.ip.overrides "
            "no client could connect"
        )


def validate_topic_config(name: str, value: str) -> None:
    """Validate one config of a topic.

    Raises:
        ConfigError: It is unknown or invalid.
    """
    row = TOPIC_ROWS.get(name)
    if row is None:
        raise ConfigError(f"{name} is not a topic config")
    parsed = row.parse(value)
    if name == "remote.storage.enable" and parsed is True:
        raise ConfigError(
            "remote.storage.enable=true cannot be used: remote storage is not supported"
        )


def validate_topic_configs(config: Settings, overrides: Mapping[str, str]) -> None:
    """Validate a topic's overrides, alone and together with the broker's defaults.

    Raises:
        ConfigError: An override is invalid.
    """
    for name, value in overrides.items():
        validate_topic_config(name, value)
    settings = config.topic_settings(overrides)
    if settings.min_compaction_lag_ms > settings.max_compaction_lag_ms:
        raise ConfigError(
            f"min.compaction.lag.ms={settings.min_compaction_lag_ms} must not be greater than "
            f"max.compaction.lag.ms={settings.max_compaction_lag_ms}"
        )
