"""Settings of streams groups: the broker's, and a group's own within the broker's limits."""

from __future__ import annotations

import pytest

from tests.support.coordinators.kit import one_broker
from wirebroker.config import Config
from wirebroker.config.rows.row import ConfigError
from wirebroker.coordinator.controller.image.cluster_image import ResourceType, config_record
from wirebroker.coordinator.groups import streams_configs
from wirebroker.coordinator.groups.streams_settings import StreamsSettings

NUMBERS = {
    "session.timeout.ms": (streams_configs.session_timeout_ms, 45_000),
    "heartbeat.interval.ms": (streams_configs.heartbeat_interval_ms, 5_000),
    "assignment.interval.ms": (streams_configs.assignment_interval_ms, 1_000),
    "initial.rebalance.delay.ms": (streams_configs.initial_rebalance_delay_ms, 3_000),
    "task.offset.interval.ms": (streams_configs.task_offset_interval_ms, 60_000),
    "acceptable.recovery.lag": (streams_configs.acceptable_recovery_lag, 10_000),
}
STICKY = "org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor"


def own(**configs: str):
    """Return the metadata with a group's own configs; underscores mean dots."""
    records = [
        config_record(ResourceType.GROUP, "g", f"streams.{name.replace('_', '.')}", value)
        for name, value in configs.items()
    ]
    return one_broker(*records)


def test_defaults_equal_those_of_the_table():
    assert StreamsSettings.from_config(Config()) == StreamsSettings()


def test_settings_of_the_broker():
    config = Config(
        {
            "group.streams.assignors": STICKY,
            "group.streams.max.size": "9",
            "group.streams.session.timeout.ms": "8000",
            "group.streams.min.session.timeout.ms": "7000",
            "group.streams.max.session.timeout.ms": "9000",
            "group.streams.heartbeat.interval.ms": "300",
            "group.streams.min.heartbeat.interval.ms": "200",
            "group.streams.max.heartbeat.interval.ms": "400",
            "group.streams.assignment.interval.ms": "20",
            "group.streams.min.assignment.interval.ms": "10",
            "group.streams.max.assignment.interval.ms": "30",
            "group.streams.initial.rebalance.delay.ms": "5",
            "group.streams.num.standby.replicas": "1",
            "group.streams.max.standby.replicas": "3",
            "group.streams.acceptable.recovery.lag": "77",
            "group.streams.task.offset.interval.ms": "50000",
            "group.streams.min.task.offset.interval.ms": "40000",
            "group.streams.rack.aware.assignment.tags": "zone, cluster",
        }
    )
    assert StreamsSettings.from_config(config) == StreamsSettings(
        ("sticky",), 9, 8000, 7000, 9000, 300, 200, 400, 20, 10, 30, 5, 1, 3, 77, 50000, 40000,
        ("zone", "cluster"),
    )  # fmt: skip


def test_interval_changes_with_the_dynamic_config():
    config = Config({}, cluster_wide={"group.streams.assignment.interval.ms": "77"})
    assert StreamsSettings().with_dynamic(config).assignment_interval_ms == 77
    beyond = Config({}, cluster_wide={"group.streams.assignment.interval.ms": "99999"})
    assert StreamsSettings().with_dynamic(beyond).assignment_interval_ms == 15_000


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"group.streams.assignors": "mine"}, "group.streams.assignors"),
        ({"group.streams.assignors": f"sticky,{STICKY}"}, "must name the one assignor once"),
        ({"group.streams.num.standby.replicas": "3"}, "must be less than or equal to"),
        ({"group.streams.task.offset.interval.ms": "9"}, "must be greater than or equal to"),
        ({"group.streams.rack.aware.assignment.tags": "a,a"}, "must name each tag once"),
        ({"group.streams.heartbeat.interval.ms": "4999"}, "must be greater than or equal to"),
        ({"group.streams.session.timeout.ms": "60001"}, "must be less than or equal to"),
    ],
)
def test_contradictory_settings_are_refused(settings, text):
    with pytest.raises(ConfigError, match=text):
        Config(settings)


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("text", ["soon", "-1", "9223372036854775808"])
def test_value_that_cannot_be_read_does_not_count(name, text):
    read, default = NUMBERS[name]
    image = own(**{name.replace(".", "_"): text})
    assert read(StreamsSettings(), image, "g") == default
    assert read(StreamsSettings(), image, "absent") == default


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("session.timeout.ms", "50000", 50_000),
        ("session.timeout.ms", "44999", 45_000),
        ("session.timeout.ms", "60001", 60_000),
        ("heartbeat.interval.ms", "15001", 15_000),
        ("assignment.interval.ms", "0", 0),
        ("assignment.interval.ms", "15001", 15_000),
        ("initial.rebalance.delay.ms", "0", 0),
        ("task.offset.interval.ms", "14999", 15_000),
        ("task.offset.interval.ms", "900000", 900_000),
        ("acceptable.recovery.lag", "5", 5),
    ],
)
def test_own_value_counts_within_the_limits(name, text, value):
    read, _ = NUMBERS[name]
    assert read(StreamsSettings(), own(**{name.replace(".", "_"): text}), "g") == value


def test_settings_of_the_assignor():
    settings = StreamsSettings(num_standby_replicas=1, rack_aware_assignment_tags=("zone", "rack"))
    configs = streams_configs.assignment_configs(settings, one_broker(), "g")
    assert configs == {"num.standby.replicas": "1", "rack.aware.assignment.tags": "zone,rack"}
    assert streams_configs.missing_tags(configs, {"rack": "r"}) == ["zone"]
    own_image = own(num_standby_replicas="3", rack_aware_assignment_tags="")
    configs = streams_configs.assignment_configs(settings, own_image, "g")
    assert configs == {"num.standby.replicas": "2"}
    assert streams_configs.missing_tags(configs, {}) == []


@pytest.mark.parametrize("name", ["sticky", "another"])
def test_assignor_is_one_that_is_registered(name):
    image = own(assignor_name=name)
    assert streams_configs.assignor_name(StreamsSettings(), image, "g") == "sticky"
