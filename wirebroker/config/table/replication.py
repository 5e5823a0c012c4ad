"""Replication between brokers."""

from __future__ import annotations

from typing import Final

from wirebroker.config.rows.forms import (
    CLUSTER_WIDE,
    PER_BROKER,
    boolean,
    integer,
    items,
    kept,
    long,
    text,
)

# Kafka's selector that is served; no other class is.
RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def _served_selector(value: object) -> str | None:
    return None if value in {"", RACK_AWARE} else f"only {RACK_AWARE} is served"


ROWS: Final = (
    boolean(
        "auto.leader.rebalance.enable",
        True,
        "Whether a controller that serves other brokers gives leaderships back to preferred "
        "replicas.",
    ),
    long(
        "leader.imbalance.check.interval.seconds",
        300,
        "How often it looks for leaderships to give back.",
        1,
    ),
    long(
        "unclean.leader.election.interval.ms",
        300_000,
        "How often a controller looks for partitions without a leader for which "
        "unclean.leader.election.enable was set meanwhile, to elect any replica.",
        1,
    ),
    integer(
        "num.replica.fetchers",
        1,
        "Connections by which a follower fetches from each leader; partitions are spread over "
        "them.",
        1,
        mutability=CLUSTER_WIDE,
        at_most_doubles=True,
    ),
    integer(
        "replica.fetch.backoff.ms",
        1_000,
        "Longest pause before a follower fetches a partition again that failed; after the first "
        "failure it is a twentieth, and doubles.",
        0,
    ),
    integer(
        "replica.fetch.max.bytes",
        1_048_576,
        "Most bytes of one partition in an answer to a follower; a batch that is larger comes "
        "whole all the same.",
        0,
    ),
    integer(
        "replica.fetch.min.bytes",
        1,
        "A leader answers a follower when it has as much, or replica.fetch.wait.max.ms have "
        "passed.",
    ),
    integer(
        "replica.fetch.response.max.bytes",
        10_485_760,
        "Most bytes of records in one answer to a follower.",
        0,
    ),
    integer(
        "replica.fetch.wait.max.ms",
        500,
        "How long a leader may wait for new records before it answers a follower.",
    ),
    long(
        "replica.lag.time.max.ms",
        30_000,
        "A follower that has not had all of its leader's log for this long leaves the in-sync "
        "replicas.",
    ),
    text(
        "replica.selector.class",
        None,
        "Which replica consumers with a client.rack are sent to: unset is the leader, "
        f"{RACK_AWARE} one in sync in their rack (KIP-392).",
        check=_served_selector,
    ),
    *(
        long(
            f"{side}.replication.throttled.rate",
            2**63 - 1,
            f"Bytes a second that the {side}s among throttled replicas copy at most (KIP-73).",
            0,
            mutability=CLUSTER_WIDE,
            internal=True,  # Kafka shows it where it is set
        )
        for side in ("leader", "follower")
    ),
    long(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        2**63 - 1,
        "Bytes a second that are copied between log directories at most (KIP-113).",
        0,
        mutability=CLUSTER_WIDE,
        internal=True,
    ),
    integer(
        "replication.quota.window.num",
        11,
        "Samples over which the copying of throttled replicas is measured.",
        1,
    ),
    integer(
        "replication.quota.window.size.seconds",
        1,
        "How long a sample of the copying of throttled replicas is.",
        1,
    ),
    integer(
        "replica.socket.timeout.ms",
        30_000,
        "How long a follower waits for an answer of its leader.",
    ),
    items(
        "cordoned.log.dirs",
        "",
        "Those of log.dirs that new replicas are kept out of, or * for all: then none are placed "
        "on this broker either. What lies there is served on.",
        mutability=PER_BROKER,
    ),
    integer(
        "alter.log.dirs.replication.quota.window.num",
        11,
        "Number of samples over which copying between log directories is measured.",
        1,
    ),
    integer(
        "alter.log.dirs.replication.quota.window.size.seconds",
        1,
        "Length of a sample of copying between log directories, in seconds.",
        1,
    ),
    *kept(
        "a broker with a failed log directory keeps running.",
        """
        log.dir.failure.timeout.ms long 30000 - read-only
        """,
    ),
    *kept(
        "up to as many replicas are moved at a time as there are log directories.",
        """
        num.replica.alter.log.dirs.threads int - - read-only
        """,
    ),
    *kept(
        "the operating system sizes the buffers of connections to other brokers.",
        """
        replica.socket.receive.buffer.bytes int 65536 - read-only
        """,
    ),
)
