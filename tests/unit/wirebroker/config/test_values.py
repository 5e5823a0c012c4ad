"""Layers, synonyms, topic defaults, and the output of DescribeConfigs."""

from __future__ import annotations

import pytest

from wirebroker.config import (
    Config,
    ConfigError,
    ConfigSource,
    Synonym,
    TopicSettings,
    validate_topic_configs,
)
from wirebroker.config.table import BROKER_ROWS, ONE_NODE_PROFILE

DEFAULT = ConfigSource.DEFAULT_CONFIG
STATIC = ConfigSource.STATIC_BROKER_CONFIG


def described(config: Config, name: str, overrides: dict[str, str] | None = None):
    rows = config.describe_broker() if overrides is None else config.describe_topic(overrides)
    return next(row for row in rows if row.name == name)


def test_defaults_equal_topic_settings_defaults():
    assert Config().topic_settings({}) == TopicSettings()


def test_dynamic_values_override_static_and_broker_overrides_cluster():
    static = Config({"log.retention.ms": "1"})
    wide = static.with_dynamic(cluster_wide={"log.retention.ms": "2"}, this_broker={})
    both = static.with_dynamic(
        cluster_wide={"log.retention.ms": "2"}, this_broker={"log.retention.ms": "3"}
    )
    retention_times = [config.topic_settings({}).retention_ms for config in (static, wide, both)]
    assert retention_times == [1, 2, 3]


@pytest.mark.parametrize(
    ("settings", "retention_ms"),
    [
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        (
            {
                "log.retention.hours": "2",
                "log.retention.minutes": "3",
                "log.retention.ms": "4",
            },
            4,
        ),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.minutes": "-7"}, -1),
    ],
)
def test_finest_retention_unit_wins(settings, retention_ms):
    assert Config(settings).topic_settings({}).retention_ms == retention_ms


def test_topic_config_overrides_the_broker_config():
    config = Config({"message.max.bytes": "10", "log.roll.hours": "1"})
    settings = config.topic_settings({"max.message.bytes": "20"})
    assert settings.max_message_bytes == 20
    assert settings.segment_ms == 3_600_000


def test_the_flush_interval_falls_back_to_the_schedulers():
    assert Config({"log.flush.scheduler.interval.ms": "5"}).topic_settings({}).flush_ms == 5


def test_internal_segment_bytes_may_be_below_the_minimum():
    assert Config().topic_settings({"internal.segment.bytes": "300"}).segment_bytes == 300


def test_topic_config_of_a_newer_kafka_is_ignored():
    assert Config().topic_settings({"of.kafka.9": "x"}) == TopicSettings()


def test_compacted_log_rolls_after_max_compaction_lag():
    settings = Config().topic_settings({"cleanup.policy": "compact", "max.compaction.lag.ms": "9"})
    assert settings.is_compacted
    assert not settings.is_deleted_by_retention
    assert settings.max_segment_ms == 9
    assert TopicSettings(max_compaction_lag_ms=9).max_segment_ms == TopicSettings().segment_ms


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"num.partitions": "0"}, "num.partitions"),
        ({"log.retention.ms": "0"}, "log.retention.ms"),
        ({"log.roll.ms": "0"}, "log.roll.ms"),
        ({"log.dirs": " ", "log.dir": " "}, "log.dirs"),
        ({"log.dirs": "/a,,/b"}, "log.dirs"),
        ({"node.id": "1", "broker.id": "2"}, "broker.id"),
        ({"process.roles": "broker"}, "process.roles"),
        ({"controller.quorum.voters": "1@a"}, "controller.quorum.voters"),
    ],
)
def test_unusable_setting_is_refused_by_name(settings, word):
    with pytest.raises(ConfigError, match=word):
        Config(settings)


def test_older_name_of_the_node_id_is_accepted():
    assert Config({"broker.id": "7"}).node_id == 7
    assert Config({"node.id": "7"}).int("broker.id") == 7
    assert Config().node_id == 1


def test_names_without_effect_and_unknown_names_give_one_warning_each():
    config = Config({"num.io.threads": "8", "background.threads": "1", "typo": "secret"})
    assert config.warnings() == (
        "these Kafka configs have no effect in wirebroker: background.threads, num.io.threads",
        "unknown configs are ignored: typo",
    )
    assert Config().warnings() == ()


def test_one_node_profile_changes_at_most_ten_configs():
    assert len(ONE_NODE_PROFILE) <= 10
    assert ONE_NODE_PROFILE.keys() <= BROKER_ROWS.keys()


def test_lists_and_directories_are_split_at_commas():
    config = Config({"log.dirs": "/a , /b"})
    assert config.log_directories == ("/a", "/b")
    assert Config({"log.dir": "/c"}).log_directories == ("/c",)
    assert config.optional_str("broker.rack") is None


def test_a_topic_default_shows_the_broker_config_as_its_synonym():
    row = described(Config(), "max.message.bytes", {})
    assert row.value == "1048588"
    assert row.config_source is DEFAULT
    assert row.synonyms == (Synonym("message.max.bytes", "1048588", DEFAULT),)
    assert not row.read_only


def test_topic_config_is_the_first_synonym():
    row = described(
        Config({"message.max.bytes": "7"}), "max.message.bytes", {"max.message.bytes": "+9"}
    )
    assert row.value == "9"
    assert row.synonyms == (
        Synonym("max.message.bytes", "9", ConfigSource.DYNAMIC_TOPIC_CONFIG),
        Synonym("message.max.bytes", "7", STATIC),
        Synonym("message.max.bytes", "1048588", DEFAULT),
    )


def test_default_retention_hours_is_described_without_synonyms():
    row = described(Config({"log.retention.hours": "48"}), "retention.ms", {})
    assert (row.value, row.config_source, row.synonyms) == ("172800000", DEFAULT, ())


def test_retention_ms_lists_retention_hours_as_synonym():
    row = described(Config({"log.retention.ms": "5"}), "retention.ms", {})
    assert row.config_source is STATIC
    assert row.synonyms == (
        Synonym("log.retention.ms", "5", STATIC),
        Synonym("log.retention.hours", "168", DEFAULT),
    )


def test_internal_config_is_described_only_if_set():
    names = {row.name for row in Config().describe_topic({})}
    assert "internal.segment.bytes" not in names
    assert (
        described(Config(), "internal.segment.bytes", {"internal.segment.bytes": "9"}).value == "9"
    )


def test_unknown_configs_are_described_without_a_value():
    row = described(Config({"typo": "secret"}), "typo")
    assert (row.value, row.is_sensitive, row.config_type) == (None, True, 0)


def test_cluster_wide_defaults_are_described_alone():
    config = Config().with_dynamic(cluster_wide={"min.insync.replicas": "1"}, this_broker={})
    (row,) = config.describe_cluster_default()
    assert row.config_source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    assert described(config, "min.insync.replicas").config_source == row.config_source
    assert described(config, "min.insync.replicas", {}).config_source == row.config_source


def test_topic_configs_are_checked_together():
    validate_topic_configs(Config(), {"min.compaction.lag.ms": "5"})
    with pytest.raises(ConfigError, match="greater"):
        validate_topic_configs(
            Config(), {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}
        )
    with pytest.raises(ConfigError, match="remote"):
        validate_topic_configs(Config(), {"remote.storage.enable": "true"})


def test_reading_a_config_outside_the_table_is_a_programming_error():
    with pytest.raises(AssertionError, match="not a row"):
        Config().int("num.io.threads")
