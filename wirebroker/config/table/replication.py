"""Replication between brokers."""

from __future__ import annotations

from typing import Final

from wirebroker.config.forms import kept, named

ROWS: Final = (
    *kept(
        "Nothing is copied between brokers or directories, and no directory is closed to new logs.",
        """
        cordoned.log.dirs list "" - per-broker
        follower.replication.throttled.rate long - 0.. cluster-wide
        leader.replication.throttled.rate long - 0.. cluster-wide
        replica.alter.log.dirs.io.max.bytes.per.second long - 0.. cluster-wide
        """,
    ),
    *named("""
        alter.log.dirs.replication.quota.window.num
        alter.log.dirs.replication.quota.window.size.seconds
        auto.leader.rebalance.enable
        leader.imbalance.check.interval.seconds
        log.dir.failure.timeout.ms
        num.replica.alter.log.dirs.threads
        replica.fetch.backoff.ms
        replica.fetch.max.bytes
        replica.fetch.min.bytes
        replica.fetch.response.max.bytes
        replica.fetch.wait.max.ms
        replica.lag.time.max.ms
        replica.selector.class
        replica.socket.receive.buffer.bytes
        replica.socket.timeout.ms
        replication.quota.window.num
        replication.quota.window.size.seconds
        unclean.leader.election.interval.ms
    """),
)
