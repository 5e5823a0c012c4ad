"""Settings of the group coordinator from the broker's configuration."""

from __future__ import annotations

import pytest

from wirebroker.config import Config
from wirebroker.coordinator.groups.settings import GroupSettings, MigrationPolicy

CLASS = "org.apache.kafka.coordinator.group.assignor."


def test_defaults_equal_those_of_the_table():
    assert GroupSettings.from_config(Config()) == GroupSettings()


@pytest.mark.parametrize(
    ("kind", "limits"), [("session.timeout.ms", (7, 9)), ("heartbeat.interval.ms", (2, 4))]
)
def test_times_of_consumer_groups(kind, limits):
    other = "session.timeout.ms" if kind == "heartbeat.interval.ms" else "heartbeat.interval.ms"
    least, most = limits
    settings = GroupSettings.from_config(
        Config(
            {
                f"group.consumer.{kind}": str(least + 1),
                f"group.consumer.min.{kind}": str(least),
                f"group.consumer.max.{kind}": str(most),
                f"group.consumer.{other}": "6" if other.startswith("s") else "1",
                f"group.consumer.min.{other}": "1",
            }
        )
    )
    field = kind.replace(".", "_")
    assert getattr(settings, f"consumer_{field}") == least + 1
    assert getattr(settings, f"consumer_min_{field}") == least
    assert getattr(settings, f"consumer_max_{field}") == most


def test_other_settings_of_consumer_groups():
    settings = GroupSettings.from_config(
        Config(
            {
                "group.consumer.assignors": f" {CLASS}RangeAssignor , uniform ",
                "group.consumer.migration.policy": "UPGRADE",
                "group.consumer.max.size": "9",
                "group.consumer.assignment.interval.ms": "20",
                "group.consumer.min.assignment.interval.ms": "10",
                "group.consumer.max.assignment.interval.ms": "30",
                "group.consumer.regex.refresh.interval.ms": "10000",
            }
        )
    )
    assert settings.consumer_assignors == ("range", "uniform")
    assert settings.consumer_migration_policy is MigrationPolicy.UPGRADE
    assert settings.consumer_max_size == 9
    assert settings.consumer_assignment_interval_ms == 20
    assert settings.consumer_min_assignment_interval_ms == 10
    assert settings.consumer_max_assignment_interval_ms == 30
    assert settings.consumer_regex_refresh_interval_ms == 10_000


def test_settings_of_share_groups():
    configs = {
        "assignors": f"{CLASS}SimpleAssignor",
        "max.size": "9",
        "session.timeout.ms": "8",
        "min.session.timeout.ms": "7",
        "max.session.timeout.ms": "9",
        "heartbeat.interval.ms": "3",
        "min.heartbeat.interval.ms": "2",
        "max.heartbeat.interval.ms": "4",
        "assignment.interval.ms": "20",
        "min.assignment.interval.ms": "10",
        "max.assignment.interval.ms": "30",
        "initialize.retry.interval.ms": "6000",
    }
    settings = GroupSettings.from_config(
        Config({f"group.share.{name}": value for name, value in configs.items()})
    )
    assert settings.share_assignor == "simple"
    for name in configs.keys() - {"assignors"}:
        field = f"share_{name.replace('.', '_')}"
        assert getattr(settings, field) == int(configs[name]), name


def test_the_retry_interval_is_at_least_the_timeout_of_commits():
    config = Config({"group.share.initialize.retry.interval.ms": "1"})
    assert GroupSettings.from_config(config).share_initialize_retry_interval_ms == 5_000


def test_repeated_assignors_count_once():
    config = Config({"group.consumer.assignors": "range,range"})
    assert GroupSettings.from_config(config).consumer_assignors == ("range",)


@pytest.mark.parametrize(
    ("policy", "upgrade", "downgrade"),
    [
        ("bidirectional", True, True),
        ("upgrade", True, False),
        ("downgrade", False, True),
        ("disabled", False, False),
    ],
)
def test_migration_policies(policy, upgrade, downgrade):
    assert MigrationPolicy(policy).allows_upgrade is upgrade
    assert MigrationPolicy(policy).allows_downgrade is downgrade


def test_the_interval_between_assignments_can_change():
    config = Config(
        cluster_wide={
            "group.consumer.assignment.interval.ms": "7",
            "group.share.assignment.interval.ms": "8",
        }
    )
    settings = GroupSettings(max_size=3).with_dynamic(config)
    assert settings == GroupSettings(
        max_size=3, consumer_assignment_interval_ms=7, share_assignment_interval_ms=8
    )
