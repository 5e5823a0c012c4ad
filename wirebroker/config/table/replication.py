"""Configs of replication between brokers."""

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

# The only supported selector.
RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def _served_selector(value: object) -> str | None:
    return None if value in {"", RACK_AWARE} else f"only {RACK_AWARE} is supported"


ROWS: Final = (
    boolean(
        "auto.leader.rebalance.enable",
        True,
        "Whether a controller that serves other brokers returns leadership to preferred replicas.",
    ),
    long(
        "leader.imbalance.check.interval.seconds",
        300,
        "Interval at which the controller checks for leadership to return to preferred replicas.",
        1,
    ),
    long(
        "unclean.leader.election.interval.ms",
        300_000,
        "Interval at which the controller elects leaders for partitions without one for which "
        "unclean.leader.election.enable was set meanwhile.",
        1,
    ),
    integer(
        "num.replica.fetchers",
        1,
        "Connections over which a follower fetches from each leader; partitions are distributed "
        "over them.",
        1,
        mutability=CLUSTER_WIDE,
        at_most_doubles=True,
    ),
    integer(
        "replica.fetch.backoff.ms",
        1_000,
        "Longest delay before a follower fetches a failed partition again; the first delay is a "
        "twentieth of it, and doubles.",
        0,
    ),
    integer(
        "replica.fetch.max.bytes",
        1_048_576,
        "Maximum bytes of one partition in a response to a follower; a larger batch is sent whole.",
        0,
    ),
    integer(
        "replica.fetch.min.bytes",
        1,
        "A leader responds to a follower when it has this many bytes, or after "
        "replica.fetch.wait.max.ms.",
    ),
    integer(
        "replica.fetch.response.max.bytes",
        10_485_760,
        "Maximum bytes of records in one response to a follower.",
        0,
    ),
    integer(
        "replica.fetch.wait.max.ms",
        500,
        "How long a leader may wait for new records before it responds to a follower.",
    ),
    long(
        "replica.lag.time.max.ms",
        30_000,
        "Time after which a follower that has not caught up with its leader leaves the in-sync "
        "replicas.",
    ),
    text(
        "replica.selector.class",
        None,
        "Replica that serves consumers with a client.rack: the leader if unset; with "
        f"{RACK_AWARE} an in-sync replica in their rack (KIP-392).",
        check=_served_selector,
    ),
    *(
        long(
            f"{side}.replication.throttled.rate",
            2**63 - 1,
            f"Maximum bytes per second that throttled {side} replicas copy (KIP-73).",
            0,
            mutability=CLUSTER_WIDE,
            internal=True,  # Kafka shows it only if it is set
        )
        for side in ("leader", "follower")
    ),
    long(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        2**63 - 1,
        "Maximum bytes per second that are copied between log directories (KIP-113).",
        0,
        mutability=CLUSTER_WIDE,
        internal=True,
    ),
    integer(
        "replication.quota.window.num",
        11,
        "Number of samples over which the replication of throttled replicas is measured.",
        1,
    ),
    integer(
        "replication.quota.window.size.seconds",
        1,
        "Length of a sample of the replication of throttled replicas, in seconds.",
        1,
    ),
    integer(
        "replica.socket.timeout.ms",
        30_000,
        "How long a follower waits for a response from its leader.",
    ),
    items(
        "cordoned.log.dirs",
        "",
        "Directories of log.dirs that get no new replicas, or * for all: then this broker gets "
        "no new replicas. Existing replicas are still served.",
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
        "at most as many replicas are moved at a time as there are log directories.",
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
