"""Configs that Kafka does not have."""

from __future__ import annotations

from typing import Final

from wirebroker.config.rows.forms import boolean, integer, items, long, text
from wirebroker.config.rows.releases import NEWEST_RELEASE, RELEASE_VERSION, RELEASES

ROWS: Final = (
    text(
        "wirebroker.durability",
        "os",
        "When records count as committed: os, once they are in the page cache, as in Apache "
        "Kafka (they survive the end of the process, not a power failure); fsync, once they are "
        "on disk.",
        choices=("os", "fsync"),
    ),
    text(
        "wirebroker.record.validation",
        "full",
        "Validation of a producer's batch: full checks every record, as Apache Kafka does; "
        "header checks only the header and the checksum, for trusted producers. An unreadable "
        "batch is then stored, and stops its consumers.",
        choices=("full", "header"),
    ),
    text(
        "wirebroker.cluster.id",
        None,
        "Cluster id of a new data directory (environment variable CLUSTER_ID); random if unset.",
    ),
    text(
        RELEASE_VERSION,
        NEWEST_RELEASE,
        "Release of Apache Kafka whose features a new cluster starts with (--release-version of "
        "kafka-storage.sh). Apache Kafka 4.3 can read only clusters of 4.3.",
        choices=tuple(RELEASES),
    ),
    long(
        "wirebroker.request.memory.bytes",
        256 << 20,
        "Memory for the requests in flight on all connections; when it is used up, reading waits.",
        1 << 20,
    ),
    integer(
        "wirebroker.frame.deadline.ms",
        30_000,
        "Time in which a whole request must arrive after its first byte, plus one second per 64 "
        "KiB. A connection that sends nothing for this long within a request is closed.",
        1,
    ),
    integer(
        "wirebroker.authentication.deadline.ms",
        30_000,
        "Time limit for the TLS handshake, and for a client of a listener with SASL to "
        "authenticate after it has connected.",
        1,
    ),
    text(
        "wirebroker.log.format",
        "text",
        "Format of the log lines on standard error.",
        choices=("text", "json"),
    ),
    text(
        "wirebroker.log.level",
        "info",
        "Lowest level that is logged.",
        choices=("debug", "info", "warning", "error"),
    ),
    boolean(
        "wirebroker.unprotected",
        False,
        "Start even if the configuration or the metadata asks for security that this broker would "
        "not enforce: unsupported settings of TLS or SASL, or ACLs without an authorizer. Every "
        "client that can connect may then do everything.",
    ),
    items(
        "org.apache.kafka.sasl.oauthbearer.allowed.urls",
        None,
        "Web addresses (https://…) from which keys and tokens of OAUTHBEARER may be read. If "
        "unset, the Java system property of this name applies (-D in KAFKA_OPTS).",
    ),
    boolean(
        "wirebroker.client.metrics",
        False,
        "Accept the metrics that clients push (KIP-714) and show them on /metrics. Clients push "
        "what client metrics resources name (kafka-client-metrics).",
    ),
    integer(
        "wirebroker.client.metrics.series",
        10_000,
        "Maximum number of series of all clients on /metrics; further ones are dropped and "
        "counted. One client has at most 2,000.",
        0,
    ),
    integer(
        "wirebroker.open.files",
        32_768,
        "Maximum number of open data files, if half of the process's limit for open files allows "
        "it; others are reopened when needed. A partition in use has 3.",
        16,
    ),
)
