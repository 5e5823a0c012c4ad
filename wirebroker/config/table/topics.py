"""Topics as they are made, and producers' sequence numbers."""

from __future__ import annotations

from typing import Final

from wirebroker.config.rows.forms import CLUSTER_WIDE, boolean, integer

ROWS: Final = (
    integer(
        "producer.id.expiration.ms",
        86_400_000,
        "An idle idempotent producer's sequence numbers are forgotten after this.",
        1,
        mutability=CLUSTER_WIDE,
    ),
    integer(
        "producer.id.expiration.check.interval.ms",
        600_000,
        "How often idle producers are looked for.",
        1,
        internal=True,
    ),
    boolean(
        "auto.create.topics.enable",
        True,
        "Create a topic when a client asks for it.",
    ),
    boolean(
        "delete.topic.enable",
        True,
        "Let DeleteTopics delete.",
    ),
    integer(
        "num.partitions",
        1,
        "Partitions of a topic whose creator doesn't say.",
        1,
    ),
    integer(
        "default.replication.factor",
        1,
        "Replicas of a topic whose creator doesn't say; one node.",
    ),
)
