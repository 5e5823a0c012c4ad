"""Configs of compaction."""

from __future__ import annotations

from typing import Final

from wirebroker.config.rows.forms import CLUSTER_WIDE, boolean, double, integer, kept, long

ROWS: Final = (
    boolean(
        "log.cleaner.enable",
        True,
        "Whether logs are compacted.",
    ),
    integer(
        "log.cleaner.threads",
        1,
        "How many logs are compacted at a time, each in its own process at the lowest priority.",
        0,
        mutability=CLUSTER_WIDE,
        at_most_doubles=True,
    ),
    long(
        "log.cleaner.backoff.ms",
        15_000,
        "Delay before the next check for logs to compact, if there were none.",
        0,
        mutability=CLUSTER_WIDE,
    ),
    long(
        "log.cleaner.dedupe.buffer.size",
        128 << 20,
        "Memory for the keys of all logs that are being compacted, 24 bytes per key. A log with "
        "more keys is compacted in several passes.",
        (1 << 20) + 1,
        mutability=CLUSTER_WIDE,
    ),
    double(
        "log.cleaner.io.buffer.load.factor",
        0.9,
        "Fraction of the memory for keys that may be used.",
        0.01,
        at_most=1.0,
        mutability=CLUSTER_WIDE,
    ),
    double(
        "log.cleaner.io.max.bytes.per.second",
        1.7976931348623157e308,
        "Maximum bytes per second that compaction reads and writes, all processes together.",
        1.0,
        mutability=CLUSTER_WIDE,
    ),
    *kept(
        "compaction runs in separate processes with buffers of a fixed size.",
        """
        log.cleaner.io.buffer.size int 524288 0.. cluster-wide
        """,
    ),
)
