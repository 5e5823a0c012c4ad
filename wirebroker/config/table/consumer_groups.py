"""Configs of consumer groups of the consumer protocol (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.config.rows.forms import CLUSTER_WIDE, INT_MAX, integer, items, text

if TYPE_CHECKING:
    from wirebroker.config.rows.row import ConfigValue

# Kafka's assignors by name and by the names of their classes.
ASSIGNORS: Final = {
    "uniform": "uniform",
    "range": "range",
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}
MIGRATION_POLICIES: Final = ("bidirectional", "upgrade", "downgrade", "disabled")


def _assignors_wish(value: ConfigValue) -> str | None:
    assert isinstance(value, tuple)
    if not value:
        return "it must not be empty"
    if len({ASSIGNORS[name] for name in value}) < len(value):
        return "it must name each assignor once"
    return None


def _policy_wish(value: ConfigValue) -> str | None:
    if str(value).lower() in MIGRATION_POLICIES:
        return None
    return "it must be one of " + ", ".join(MIGRATION_POLICIES)


# `share` has no effect in Kafka either: share groups depend on their feature alone.
_PROTOCOLS: Final = ("classic", "consumer", "share", "streams")

ROWS: Final = (
    items(
        "group.coordinator.rebalance.protocols",
        "classic,consumer,streams",
        "Group protocols that the broker accepts. Only `consumer` and `streams` have an effect: "
        "classic groups are always served, share groups if share.version allows them.",
        choices=_PROTOCOLS,
    ),
    items(
        "group.consumer.assignors",
        "uniform,range",
        "Assignors that members of consumer groups may request. The first one is used if a group's "
        "members request none.",
        choices=tuple(ASSIGNORS),
        check=_assignors_wish,
    ),
    text(
        "group.consumer.migration.policy",
        "bidirectional",
        "Which groups with members may change their protocol. `upgrade`: a classic group, when a "
        "member of the consumer protocol joins. `downgrade`: a consumer group, when its last such "
        "member leaves or is replaced. `bidirectional`: both. `disabled`: none. An empty group "
        "takes the protocol of the next member.",
        check=_policy_wish,
    ),
    integer(
        "group.consumer.max.size",
        INT_MAX,
        "Maximum number of members of a consumer group; group.max.size is that of classic groups.",
        1,
    ),
    integer(
        "group.consumer.session.timeout.ms",
        45_000,
        "A member that sends no heartbeat for this long is removed from its consumer group.",
        1,
    ),
    integer(
        "group.consumer.min.session.timeout.ms",
        45_000,
        "Minimum of group.consumer.session.timeout.ms, and of a group's own value.",
        1,
    ),
    integer(
        "group.consumer.max.session.timeout.ms",
        60_000,
        "Maximum of group.consumer.session.timeout.ms, and of a group's own value.",
        1,
    ),
    integer(
        "group.consumer.heartbeat.interval.ms",
        5000,
        "Interval at which members of consumer groups send heartbeats.",
        1,
    ),
    integer(
        "group.consumer.min.heartbeat.interval.ms",
        5000,
        "Minimum of group.consumer.heartbeat.interval.ms, and of a group's own value.",
        1,
    ),
    integer(
        "group.consumer.max.heartbeat.interval.ms",
        15_000,
        "Maximum of group.consumer.heartbeat.interval.ms, and of a group's own value.",
        1,
    ),
    integer(
        "group.consumer.assignment.interval.ms",
        1000,
        "Minimum interval between two target assignments of a consumer group. A dynamic value "
        "beyond the limits of a restarted broker is clamped to them.",
        0,
        mutability=CLUSTER_WIDE,
    ),
    integer(
        "group.consumer.min.assignment.interval.ms",
        0,
        "Minimum of group.consumer.assignment.interval.ms, and of a group's own value.",
        0,
    ),
    integer(
        "group.consumer.max.assignment.interval.ms",
        15_000,
        "Maximum of group.consumer.assignment.interval.ms, and of a group's own value.",
        0,
    ),
    integer(
        "group.consumer.regex.refresh.interval.ms",
        600_000,
        "Interval at which the topics that match the subscriptions of consumer groups by regular "
        "expression are searched.",
        10_000,
        internal=True,
    ),
)
