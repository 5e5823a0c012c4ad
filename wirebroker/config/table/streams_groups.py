"""Configs of streams groups (KIP-1071)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.config.rows.forms import CLUSTER_WIDE, INT_MAX, integer, items, kept, long

if TYPE_CHECKING:
    from wirebroker.config.rows.row import ConfigValue

# Kafka's assignor by name and by the name of its class.
STREAMS_ASSIGNORS: Final = {
    "sticky": "sticky",
    "org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor": "sticky",
}


def _assignors_wish(value: ConfigValue) -> str | None:
    assert isinstance(value, tuple)
    return None if len(value) == 1 else "it must name the one assignor once"


def _tags_wish(value: ConfigValue) -> str | None:
    assert isinstance(value, tuple)
    return None if len(set(value)) == len(value) else "it must name each tag once"


ROWS: Final = (
    items(
        "group.streams.assignors",
        "sticky",
        "Assignors of streams groups. Kafka has one, and this broker has no others.",
        choices=tuple(STREAMS_ASSIGNORS),
        check=_assignors_wish,
    ),
    integer(
        "group.streams.max.size",
        INT_MAX,
        "Maximum number of members of a streams group: the stream threads of an application.",
        1,
    ),
    integer(
        "group.streams.session.timeout.ms",
        45_000,
        "A member that sends no heartbeat for this long is removed from its streams group.",
        1,
    ),
    integer(
        "group.streams.min.session.timeout.ms",
        45_000,
        "Minimum of group.streams.session.timeout.ms, and of a group's own value.",
        1,
    ),
    integer(
        "group.streams.max.session.timeout.ms",
        60_000,
        "Maximum of group.streams.session.timeout.ms, and of a group's own value.",
        1,
    ),
    integer(
        "group.streams.heartbeat.interval.ms",
        5000,
        "Interval at which members of streams groups send heartbeats.",
        1,
    ),
    integer(
        "group.streams.min.heartbeat.interval.ms",
        5000,
        "Minimum of group.streams.heartbeat.interval.ms, and of a group's own value.",
        1,
    ),
    integer(
        "group.streams.max.heartbeat.interval.ms",
        15_000,
        "Maximum of group.streams.heartbeat.interval.ms, and of a group's own value.",
        1,
    ),
    integer(
        "group.streams.initial.rebalance.delay.ms",
        3000,
        "How long a streams group that was empty waits for more members before its first "
        "assignment.",
        0,
    ),
    integer(
        "group.streams.assignment.interval.ms",
        1000,
        "Minimum interval between two target assignments of a streams group. A dynamic value "
        "beyond the limits of a restarted broker is clamped to them.",
        0,
        mutability=CLUSTER_WIDE,
    ),
    integer(
        "group.streams.min.assignment.interval.ms",
        0,
        "Minimum of group.streams.assignment.interval.ms, and of a group's own value.",
        0,
    ),
    integer(
        "group.streams.max.assignment.interval.ms",
        15_000,
        "Maximum of group.streams.assignment.interval.ms, and of a group's own value.",
        0,
    ),
    integer(
        "group.streams.num.standby.replicas",
        0,
        "Standby tasks for each task with state.",
        0,
    ),
    integer(
        "group.streams.max.standby.replicas",
        2,
        "Maximum of group.streams.num.standby.replicas, and of a group's own value.",
        0,
    ),
    items(
        "group.streams.rack.aware.assignment.tags",
        "",
        "Client tags that members of streams groups should have. A member without one learns it; "
        "as in Kafka, tags have no effect on assignments.",
        check=_tags_wish,
    ),
    integer(
        "group.streams.task.offset.interval.ms",
        60_000,
        "Interval at which members of streams groups report the changelog offsets of their tasks.",
        1,
        internal=True,
    ),
    integer(
        "group.streams.min.task.offset.interval.ms",
        15_000,
        "Minimum of group.streams.task.offset.interval.ms, and of a group's own value.",
        1,
        internal=True,
    ),
    long(
        "group.streams.acceptable.recovery.lag",
        10_000,
        "Lag in offsets at which members of streams groups may consider a copy of a task's state "
        "complete.",
        0,
        internal=True,
    ),
    *kept(
        "large assignments are always computed in the background.",
        "group.streams.assignor.offload.enable boolean true - cluster-wide internal",
    ),
    *kept(
        "no warm-up tasks are assigned, as in Kafka 4.4.0.",
        """
        group.streams.max.warmup.replicas int 20 0.. read-only internal
        group.streams.num.warmup.replicas int 2 0.. read-only internal
        """,
    ),
    *kept(
        "Java plug-ins cannot be loaded.",
        "group.streams.topology.description.plugin.class class - - read-only",
    ),
)
