"""Times of consumer and share groups: own configs within the limits, else the broker's."""

from __future__ import annotations

import pytest

from tests.support.coordinators.kit import one_broker
from wirebroker.coordinator.controller.image.cluster_image import ResourceType, config_record
from wirebroker.coordinator.groups.group_configs import (
    consumer_assignment_interval_ms,
    consumer_heartbeat_interval_ms,
    consumer_session_timeout_ms,
    share_assignment_interval_ms,
    share_heartbeat_interval_ms,
    share_session_timeout_ms,
)
from wirebroker.coordinator.groups.settings import GroupSettings

TIMES = {
    "consumer.session.timeout.ms": (consumer_session_timeout_ms, 45_000),
    "consumer.heartbeat.interval.ms": (consumer_heartbeat_interval_ms, 5_000),
    "consumer.assignment.interval.ms": (consumer_assignment_interval_ms, 1_000),
    "share.session.timeout.ms": (share_session_timeout_ms, 45_000),
    "share.heartbeat.interval.ms": (share_heartbeat_interval_ms, 5_000),
    "share.assignment.interval.ms": (share_assignment_interval_ms, 1_000),
}
SETTINGS = GroupSettings(
    consumer_min_assignment_interval_ms=500, share_min_assignment_interval_ms=500
)


def own(name: str, text: str) -> int:
    """Return the time of a group whose config has this text."""
    read, _ = TIMES[name]
    image = one_broker(config_record(ResourceType.GROUP, "g", name, text))
    return read(SETTINGS, image, "g")


@pytest.mark.parametrize("name", TIMES)
def test_group_without_the_config_has_the_brokers_value(name):
    read, default = TIMES[name]
    others = [other for other in TIMES if other != name]
    records = [config_record(ResourceType.GROUP, "g", other, "7000") for other in others]
    image = one_broker(*records, config_record(ResourceType.GROUP, "other", name, "12000"))
    assert read(SETTINGS, image, "g") == default
    assert read(SETTINGS, image, "absent") == default


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("consumer.session.timeout.ms", "50000", 50_000),
        ("consumer.session.timeout.ms", "44999", 45_000),
        ("consumer.session.timeout.ms", "60001", 60_000),
        ("consumer.heartbeat.interval.ms", " 6000 ", 6_000),
        ("consumer.heartbeat.interval.ms", "4999", 5_000),
        ("consumer.heartbeat.interval.ms", "15001", 15_000),
        ("consumer.assignment.interval.ms", "600", 600),
        ("consumer.assignment.interval.ms", "499", 500),
        ("consumer.assignment.interval.ms", "15001", 15_000),
        ("share.session.timeout.ms", "44999", 45_000),
        ("share.session.timeout.ms", "60001", 60_000),
        ("share.heartbeat.interval.ms", "4999", 5_000),
        ("share.heartbeat.interval.ms", "15001", 15_000),
        ("share.assignment.interval.ms", "600", 600),
        ("share.assignment.interval.ms", "499", 500),
        ("share.assignment.interval.ms", "15001", 15_000),
    ],
)
def test_own_value_counts_within_the_limits(name, text, value):
    assert own(name, text) == value


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("text", ["soon", "", "-1", "2147483648"])
def test_value_that_cannot_be_read_does_not_count(name, text):
    _, default = TIMES[name]
    assert own(name, text) == default
