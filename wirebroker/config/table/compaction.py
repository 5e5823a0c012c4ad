"""Compaction."""

from __future__ import annotations

from typing import Final

from wirebroker.config.rows.forms import CLUSTER_WIDE, boolean, double, integer, kept, long

ROWS: Final = (
    boolean(
        "log.cleaner.enable",
        True,
        "Whether logs are compacted at all.",
    ),
    integer(
        "log.cleaner.threads",
        1,
        "How many logs are compacted at a time, each by a process of its own at lowest priority.",
        0,
        mutability=CLUSTER_WIDE,
        at_most_doubles=True,
    ),
    long(
        "log.cleaner.backoff.ms",
        15_000,
        "Time between two looks for logs to compact, while there are none.",
        0,
        mutability=CLUSTER_WIDE,
    ),
    long(
        "log.cleaner.dedupe.buffer.size",
        128 << 20,
        "Memory for the keys of the logs that are compacted at a time, 24 bytes a key. With "
        "more keys a log is compacted in several turns.",
        (1 << 20) + 1,
        mutability=CLUSTER_WIDE,
    ),
    double(
        "log.cleaner.io.buffer.load.factor",
        0.9,
        "How full the memory for keys may be.",
        0.01,
        at_most=1.0,
        mutability=CLUSTER_WIDE,
    ),
    double(
        "log.cleaner.io.max.bytes.per.second",
        1.7976931348623157e308,
        "How much compaction may read and write, all processes together.",
        1.0,
        mutability=CLUSTER_WIDE,
    ),
    *kept(
        "compaction reads in separate processes, whose buffers have a fixed size.",
        """
        log.cleaner.io.buffer.size int 524288 0.. cluster-wide
        """,
    ),
)
