"""Configs of the members of share groups, and of their assignments (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.config.rows.forms import CLUSTER_WIDE, integer, items

if TYPE_CHECKING:
    from wirebroker.config.rows.row import ConfigValue

# Kafka's assignor by name and by the name of its class.
SHARE_ASSIGNORS: Final = {
    "simple": "simple",
    "org.apache.kafka.coordinator.group.assignor.SimpleAssignor": "simple",
}


def _assignors_wish(value: ConfigValue) -> str | None:
    assert isinstance(value, tuple)
    return None if len(value) == 1 else "it must name exactly one assignor"


ROWS: Final = (
    items(
        "group.share.assignors",
        "simple",
        "The assignor of share groups.",
        choices=tuple(SHARE_ASSIGNORS),
        check=_assignors_wish,
    ),
    integer(
        "group.share.max.size",
        200,
        "Maximum number of members of a share group.",
        1,
        at_most=1000,
    ),
    integer(
        "group.share.session.timeout.ms",
        45_000,
        "A member that sends no heartbeat for this long is removed from its share group.",
        1,
    ),
    integer(
        "group.share.min.session.timeout.ms",
        45_000,
        "Minimum of group.share.session.timeout.ms, and of a group's own value.",
        1,
    ),
    integer(
        "group.share.max.session.timeout.ms",
        60_000,
        "Maximum of group.share.session.timeout.ms, and of a group's own value.",
        1,
    ),
    integer(
        "group.share.heartbeat.interval.ms",
        5000,
        "Interval at which members of share groups send heartbeats.",
        1,
    ),
    integer(
        "group.share.min.heartbeat.interval.ms",
        5000,
        "Minimum of group.share.heartbeat.interval.ms, and of a group's own value.",
        1,
    ),
    integer(
        "group.share.max.heartbeat.interval.ms",
        15_000,
        "Maximum of group.share.heartbeat.interval.ms, and of a group's own value.",
        1,
    ),
    integer(
        "group.share.assignment.interval.ms",
        1000,
        "Minimum interval between two target assignments of a share group. A dynamic value beyond "
        "the limits of a restarted broker is clamped to them.",
        0,
        mutability=CLUSTER_WIDE,
    ),
    integer(
        "group.share.min.assignment.interval.ms",
        0,
        "Minimum of group.share.assignment.interval.ms, and of a group's own value.",
        0,
    ),
    integer(
        "group.share.max.assignment.interval.ms",
        15_000,
        "Maximum of group.share.assignment.interval.ms, and of a group's own value.",
        0,
    ),
    integer(
        "group.share.initialize.retry.interval.ms",
        30_000,
        "How long to wait for the share state of new partitions before it is requested again; at "
        "least offsets.commit.timeout.ms.",
        1,
        internal=True,
    ),
)
