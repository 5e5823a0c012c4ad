"""Configs of topic creation and producers' sequence numbers."""

from __future__ import annotations

from typing import Final

from wirebroker.config.rows.forms import CLUSTER_WIDE, boolean, integer

ROWS: Final = (
    integer(
        "producer.id.expiration.ms",
        86_400_000,
        "Time after which the sequence numbers of an idle idempotent producer are removed.",
        1,
        mutability=CLUSTER_WIDE,
    ),
    integer(
        "producer.id.expiration.check.interval.ms",
        600_000,
        "Interval at which the state of idle producers is removed.",
        1,
        internal=True,
    ),
    boolean(
        "auto.create.topics.enable",
        True,
        "Create a missing topic when a client requests it.",
    ),
    boolean(
        "delete.topic.enable",
        True,
        "Allow DeleteTopics.",
    ),
    integer(
        "num.partitions",
        1,
        "Partitions of a topic that is created without their number.",
        1,
    ),
    integer(
        "default.replication.factor",
        1,
        "Replicas of a topic that is created without their number.",
    ),
)
