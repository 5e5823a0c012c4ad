"""Configs of the delivery service (docs/delivery.md), which runs in a separate process."""

from __future__ import annotations

from typing import Final

from wirebroker.config.rows.forms import integer, items, long, short, text

_DAY_MS: Final = 86_400_000
# A hundred years: due times stay within what Kafka's tools print.
_MOST_DELAY_MS: Final = 100 * 366 * _DAY_MS

ROWS: Final = (
    items(
        "wirebroker.delivery.topics",
        "deliver",
        "Topics of scheduled records. Missing ones are created.",
    ),
    items(
        "wirebroker.delivery.retry.topics",
        "retry",
        "Topics of records to retry. Missing ones are created.",
    ),
    items(
        "wirebroker.delivery.targets",
        None,
        "Topics to which the delivery service may write; a name that ends with * is a prefix. "
        "Without it every topic is allowed, except those that begin with __ and the service's own. "
        "If the cluster has an authorizer it must be set, because every client that may write to "
        "the input topics uses the service's rights on these topics.",
    ),
    text(
        "wirebroker.delivery.group",
        "wirebroker-delivery",
        "Consumer group of the delivery service. It is also the prefix of its transactional ids "
        "(GROUP-INSTANCE, GROUP-INSTANCE-1 and -2), and its pending records are in the topic "
        "__GROUP.",
    ),
    text(
        "wirebroker.delivery.directory",
        "./delivery",
        "Directory of one instance of the delivery service: its id, and an index of pending "
        "records that is rebuilt if it is missing.",
    ),
    integer(
        "wirebroker.delivery.partitions",
        8,
        "Partitions of the topics that the delivery service creates; at most this many instances "
        "share the work. The number of the pending topic must not change later.",
        1,
        at_most=1_000,
    ),
    short(
        "wirebroker.delivery.replication.factor",
        -1,
        "Replicas of the topics that the delivery service creates; -1 for the cluster's default.",
        -1,
    ),
    long(
        "wirebroker.delivery.max.delay.ms",
        366 * _DAY_MS,
        "How far ahead a record may be due; others become dead letters.",
        0,
        at_most=_MOST_DELAY_MS,
    ),
    integer(
        "wirebroker.delivery.max.attempts",
        100,
        "How many attempts a retried record may ask for; others become dead letters.",
        0,
    ),
    integer(
        "wirebroker.delivery.transaction.records",
        1_000,
        "About how many received and how many due records a transaction contains at most.",
        1,
        at_most=100_000,
    ),
    integer(
        "wirebroker.delivery.transaction.timeout.ms",
        15_000,
        "After this time the cluster aborts the transaction of an instance that failed.",
        1_000,
    ),
    integer(
        "wirebroker.delivery.session.timeout.ms",
        10_000,
        "After this time another instance takes over the partitions of one that failed.",
        1_000,
    ),
    integer(
        "wirebroker.delivery.metrics.port",
        0,
        "Port on 127.0.0.1 for the delivery service's /metrics; 0 for none.",
        0,
        at_most=65_535,
    ),
)
