"""Configs of share groups on leaders: records, sessions, dead letters (KIP-932)."""

from __future__ import annotations

from typing import Final

from wirebroker.config.rows.forms import CLUSTER_WIDE, boolean, integer, text

ROWS: Final = (
    integer(
        "group.share.delivery.count.limit",
        5,
        "How often a record is delivered to a share group that does not accept it.",
        2,
        at_most=10,
    ),
    integer(
        "group.share.min.delivery.count.limit",
        2,
        "Minimum of group.share.delivery.count.limit, and of a group's own value.",
        2,
        at_most=5,
    ),
    integer(
        "group.share.max.delivery.count.limit",
        10,
        "Maximum of group.share.delivery.count.limit, and of a group's own value.",
        5,
        at_most=25,
    ),
    integer(
        "group.share.record.lock.duration.ms",
        30_000,
        "How long a member of a share group has a record; then other members may get it.",
        1000,
        at_most=3_600_000,
    ),
    integer(
        "group.share.min.record.lock.duration.ms",
        15_000,
        "Minimum of group.share.record.lock.duration.ms, and of a group's own value.",
        1000,
        at_most=30_000,
    ),
    integer(
        "group.share.max.record.lock.duration.ms",
        60_000,
        "Maximum of group.share.record.lock.duration.ms, and of a group's own value.",
        30_000,
        at_most=3_600_000,
    ),
    integer(
        "group.share.partition.max.record.locks",
        2000,
        "How many records of a partition are in flight in a share group.",
        100,
        at_most=10_000,
    ),
    integer(
        "group.share.min.partition.max.record.locks",
        100,
        "Minimum of group.share.partition.max.record.locks, and of a group's own value.",
        100,
        at_most=2000,
    ),
    integer(
        "group.share.max.partition.max.record.locks",
        4000,
        "Maximum of group.share.partition.max.record.locks, and of a group's own value.",
        2000,
        at_most=10_000,
    ),
    integer(
        "group.share.max.share.sessions",
        2000,
        "Maximum number of share sessions of this broker.",
        1,
    ),
    boolean(
        "errors.deadletterqueue.auto.create.topics.enable",
        False,
        "Whether the broker creates the dead-letter topic of a share group that has none.",
        mutability=CLUSTER_WIDE,
    ),
    text(
        "errors.deadletterqueue.topic.name.prefix",
        "dlq.",
        "How the names of dead-letter topics begin.",
        mutability=CLUSTER_WIDE,
    ),
)
