"""Configs of consumer and share groups, compared with KafkaConfig of Kafka 4.4.0."""

from __future__ import annotations

import pytest

from wirebroker.config import Config, ConfigError
from wirebroker.config.sources.dynamic import check_change, with_usable

PREFIX = "group.consumer."
INTERVAL = "group.consumer.assignment.interval.ms"
CLASS = "org.apache.kafka.coordinator.group.assignor."


def config(**values: str) -> Config:
    return Config({PREFIX + name.replace("_", "."): value for name, value in values.items()})


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"heartbeat_interval_ms": "1"}, "heartbeat: at least min"),
        ({"heartbeat_interval_ms": "20000"}, "heartbeat: at most max"),
        ({"min_heartbeat_interval_ms": "20000"}, "max.heartbeat: at least min"),
        ({"min_heartbeat_interval_ms": "9999"}, "heartbeat: at least min"),
        ({"max_heartbeat_interval_ms": "1"}, "max.heartbeat: at least min"),
        ({"session_timeout_ms": "20000"}, "session: at least min"),
        ({"session_timeout_ms": "70000"}, "session: at most max"),
        ({"min_session_timeout_ms": "70000"}, "max.session: at least min"),
        ({"max_session_timeout_ms": "20000"}, "max.session: at least min"),
        ({"assignment_interval_ms": "20000"}, "assignment: at most max"),
        ({"min_assignment_interval_ms": "9999"}, "assignment: at least min"),
        ({"min_assignment_interval_ms": "20000"}, "max.assignment: at least min"),
        ({"max_assignment_interval_ms": "0"}, "assignment: at most max"),
    ],
    ids=str,
)
def test_times_beyond_their_limits_are_refused_with_kafkas_text(values, text):
    name, _, relation = text.partition(": ")
    short = name.removeprefix("max.")
    rest = {
        "heartbeat": "heartbeat.interval.ms",
        "session": "session.timeout.ms",
        "assignment": "assignment.interval.ms",
    }[short]
    words, _, limit = relation.rpartition(" ")
    words = {"at least": "greater than or equal to", "at most": "less than or equal to"}[words]
    first = PREFIX + name.replace(short, rest)
    with pytest.raises(ConfigError) as caught:
        config(**values)
    assert str(caught.value) == f"{first} must be {words} {PREFIX}{limit}.{rest}"


def test_a_session_is_longer_than_the_heartbeat_interval():
    most = {"max_heartbeat_interval_ms": "50000"}
    config(heartbeat_interval_ms="44999", **most)
    text = f"{PREFIX}heartbeat.interval.ms must be less than {PREFIX}session.timeout.ms"
    with pytest.raises(ConfigError, match=text):
        config(heartbeat_interval_ms="45000", **most)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("assignors", ""),
        ("assignors", "uniform,"),
        ("assignors", "Range"),
        ("assignors", "simple"),
        ("assignors", f"uniform,{CLASS}UniformAssignor"),
        ("migration_policy", "both"),
        ("migration_policy", ""),
        ("max_size", "0"),
        ("session_timeout_ms", "0"),
        ("min_session_timeout_ms", "0"),
        ("max_session_timeout_ms", "0"),
        ("heartbeat_interval_ms", "0"),
        ("min_heartbeat_interval_ms", "0"),
        ("max_heartbeat_interval_ms", "0"),
        ("assignment_interval_ms", "-1"),
        ("min_assignment_interval_ms", "-1"),
        ("max_assignment_interval_ms", "-1"),
        ("regex_refresh_interval_ms", "9999"),
    ],
)
def test_invalid_value_is_refused(name, value):
    with pytest.raises(ConfigError, match="cannot be used: it must"):
        config(**{name: value})


@pytest.mark.parametrize("value", ["20000", "499"])
def test_a_dynamic_interval_beyond_the_limits_is_refused(value):
    limited = config(min_assignment_interval_ms="500")
    with pytest.raises(ConfigError, match=f"{INTERVAL} must be"):
        check_change(limited, cluster_wide={INTERVAL: value}, this_broker={}, is_default=True)
    check_change(limited, cluster_wide={INTERVAL: " 15000"}, this_broker={}, is_default=True)


@pytest.mark.parametrize(("value", "used"), [("20000", 15_000), ("499", 500), ("600", 600)])
def test_a_stored_interval_beyond_the_limits_is_clamped(value, used):
    limited = config(min_assignment_interval_ms="500")
    for wide, own in (({INTERVAL: value}, {}), ({INTERVAL: "700"}, {INTERVAL: value})):
        usable, problems = with_usable(limited, cluster_wide=wide, this_broker=own)
        assert usable.int(INTERVAL) == used
        assert problems == []


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("heartbeat.interval.ms", "1", "greater than or equal to group.share.min"),
        ("session.timeout.ms", "70000", "less than or equal to group.share.max"),
        ("max.assignment.interval.ms", "0", "less than or equal to group.share.max"),
        ("max.session.timeout.ms", "1", "greater than or equal to group.share.min"),
        ("assignors", "simple,simple,range", "it must"),
        ("assignors", "", "exactly one assignor"),
        ("max.size", "1001", "cannot be used"),
    ],
)
def test_invalid_configs_of_share_groups_are_refused(name, value, text):
    with pytest.raises(ConfigError, match=text):
        Config({f"group.share.{name}": value})


def test_the_dynamic_interval_of_share_groups_has_limits():
    name = "group.share.assignment.interval.ms"
    limited = Config({"group.share.min.assignment.interval.ms": "500"})
    with pytest.raises(ConfigError, match=f"{name} must be"):
        check_change(limited, cluster_wide={name: "499"}, this_broker={}, is_default=True)
    usable, problems = with_usable(limited, cluster_wide={name: "20000"}, this_broker={})
    assert (usable.int(name), problems) == (15_000, [])
