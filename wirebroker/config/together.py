"""What no row can check by itself: values that only fit, or don't, together.

A leaf.  Source: Kafka's KafkaConfig and LogConfig.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.config.quorum import check_quorum
from wirebroker.config.rows.row import ConfigError
from wirebroker.config.rows.texts import text_of
from wirebroker.config.rows.topic import TOPIC_ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.config.rows.row import ConfigValue
    from wirebroker.config.values import Config


def check_together(config: Config, topic_defaults: Mapping[str, ConfigValue]) -> None:
    """Check what no single row can.

    Args:
        config: All values, each read by its row.
        topic_defaults: What the broker gives topics, in their units.

    Raises:
        ConfigError: They can't be used together.
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
    if config.is_set("broker.id") and config.int("broker.id") != config.node_id:
        raise ConfigError("node.id and broker.id differ: give one of them")
    check_quorum(config)


def _check_cordoned(config: Config) -> None:
    cordoned = config.list("cordoned.log.dirs")
    if "*" in cordoned and len(cordoned) > 1:
        raise ConfigError("cordoned.log.dirs: * stands for all directories, and alone")
    for directory in cordoned:
        if directory not in {"*", *config.log_directories}:
            raise ConfigError(f"cordoned.log.dirs: {directory} is not one of log.dirs")


def _check_numbers(config: Config) -> None:
    """Check numbers that only fit, or don't, together."""
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
            "nobody could connect"
        )


def validate_topic_config(name: str, value: str) -> None:
    """Check one config of a topic.

    Raises:
        ConfigError: The name is unknown or the value can't be used.
    """
    row = TOPIC_ROWS.get(name)
    if row is None:
        raise ConfigError(f"{name} is not a topic config")
    parsed = row.parse(value)
    if name == "remote.storage.enable" and parsed is True:
        raise ConfigError("remote.storage.enable=true cannot be used: there is no remote storage")


def validate_topic_configs(config: Config, overrides: Mapping[str, str]) -> None:
    """Check all overrides of a topic, each for itself and together with the broker's defaults.

    Raises:
        ConfigError: The first thing that is wrong.
    """
    for name, value in overrides.items():
        validate_topic_config(name, value)
    settings = config.topic_settings(overrides)
    if settings.min_compaction_lag_ms > settings.max_compaction_lag_ms:
        raise ConfigError(
            f"min.compaction.lag.ms={settings.min_compaction_lag_ms} is greater than "
            f"max.compaction.lag.ms={settings.max_compaction_lag_ms}"
        )
