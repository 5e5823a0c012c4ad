"""What Kafka has no config for."""

from __future__ import annotations

from typing import Final

from wirebroker.config.rows.forms import boolean, integer, items, long, text
from wirebroker.config.rows.releases import NEWEST_RELEASE, RELEASE_VERSION, RELEASES

ROWS: Final = (
    text(
        "wirebroker.durability",
        "os",
        "When records count as committed: os, once they are in the page cache, as in Apache "
        "Kafka (they survive the end of the process, not the loss of power); fsync, once they "
        "are on the disk.",
        choices=("os", "fsync"),
    ),
    text(
        "wirebroker.record.validation",
        "full",
        "What is looked at of a producer's batch: full, every record, as in Apache Kafka; "
        "header, its header and checksum alone, for producers that are trusted: a batch that "
        "can't be read is stored then, and stops its consumers.",
        choices=("full", "header"),
    ),
    text(
        "wirebroker.replica.id",
        None,
        "Cluster id of a new data directory (the environment's CLUSTER_ID); random if unset.",
    ),
    text(
        RELEASE_VERSION,
        NEWEST_RELEASE,
        "The release of Apache Kafka whose features a new cluster begins with (--release-version "
        "of Kafka's storage tool). Only a cluster of 4.3 can be read by Apache Kafka 4.3.",
        choices=tuple(RELEASES),
    ),
    long(
        "wirebroker.request.memory.bytes",
        256 << 20,
        "Memory for requests in flight, all connections together; beyond it reading waits.",
        1 << 20,
    ),
    integer(
        "wirebroker.frame.deadline.ms",
        30_000,
        "A request must have arrived whole this long after its first byte, and a second later "
        "for each 64 KiB; a peer that falls silent within one is closed after this.",
        1,
    ),
    integer(
        "wirebroker.authentication.deadline.ms",
        30_000,
        "A client of a listener with SASL must have authenticated this long after it connected.",
        1,
    ),
    text(
        "wirebroker.log.format",
        "text",
        "Form of the log lines on standard error.",
        choices=("text", "json"),
    ),
    text(
        "wirebroker.log.level",
        "info",
        "Least level that is logged.",
        choices=("debug", "info", "warning", "error"),
    ),
    boolean(
        "wirebroker.unprotected",
        False,
        "Run although protection was asked for that is not there: settings of TLS, ACLs without "
        "an authorizer. Whoever can connect may then do everything.",
    ),
    items(
        "org.apache.kafka.sasl.oauthbearer.allowed.urls",
        None,
        "Addresses of web servers (https://…) that keys and tokens of OAUTHBEARER may be read "
        "from. Unset: Kafka's property of the Java process (-D in KAFKA_OPTS).",
    ),
    integer(
        "wirebroker.open.files",
        32_768,
        "Data files held open at a time, if half of the process's limit of open files allows; "
        "the rest are reopened. A partition in use has 3.",
        16,
    ),
)
