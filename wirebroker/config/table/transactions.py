"""Configs of transactions and their topic."""

from __future__ import annotations

from typing import Final

from wirebroker.config.rows.forms import CLUSTER_WIDE, boolean, integer, kept, short

ROWS: Final = (
    integer(
        "transaction.max.timeout.ms",
        900_000,
        "Longest transaction timeout that a producer may request.",
        1,
    ),
    integer(
        "transactional.id.expiration.ms",
        604_800_000,
        "Time without use after which a transactional id is removed.",
        1,
    ),
    integer(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        10_000,
        "Interval at which timed-out transactions are aborted.",
        1,
    ),
    integer(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        3_600_000,
        "Interval at which expired transactional ids are removed.",
        1,
    ),
    boolean(
        "transaction.partition.verification.enable",
        True,
        "Verify with the coordinator that the first batch of a transaction belongs to it "
        "(KIP-890).",
        mutability=CLUSTER_WIDE,
    ),
    integer(
        "add.partitions.to.txn.retry.backoff.ms",
        20,
        "Delay between two attempts to add a partition while the previous transaction is "
        "completed.",
        1,
    ),
    integer(
        "add.partitions.to.txn.retry.backoff.max.ms",
        100,
        "How long the broker retries adding a partition before the producer has to retry.",
        0,
    ),
    integer(
        "transaction.state.log.num.partitions",
        50,
        "Partitions of __transaction_state when it is created.",
        1,
    ),
    short(
        "transaction.state.log.replication.factor",
        3,
        "Replicas of __transaction_state when it is created.",
        1,
        profile="1",
    ),
    integer(
        "transaction.state.log.min.isr",
        2,
        "min.insync.replicas of __transaction_state when it is created.",
        1,
        profile="1",
    ),
    integer(
        "transaction.state.log.segment.bytes",
        104_857_600,
        "Segment size of __transaction_state when it is created.",
        1,
    ),
    *kept(
        "the transaction log is read in chunks of a fixed size.",
        """
        transaction.state.log.load.buffer.size int 5242880 - read-only
        """,
    ),
    *kept(
        "two-phase commit (KIP-939) is not served.",
        """
        transaction.two.phase.commit.enable boolean false - read-only
        """,
    ),
)
