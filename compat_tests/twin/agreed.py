"""Agreed differences between the twins, each with its reason. Every row must be used.

A row names files (a pattern for the whole path), lines (a pattern for `-` and a line of Apache
Kafka only, or `+` and one of wirebroker only), and the reason. PRESENT represents a file.
"""

from __future__ import annotations

from typing import NamedTuple


class Agreed(NamedTuple):
    files: str
    line: str
    reason: str


_METADATA_LOG = r"__cluster_metadata-0/\d{20}\.log"
_BATCH = r"batch of \d+, epoch 1, attributes 0, producer -1 -1 -1"

AGREED: tuple[Agreed, ...] = (
    Agreed(
        r"\.lock",
        r"\+ PRESENT",
        "Apache Kafka removes its lock file when it stops. Here it stays: between opening and"
        " locking it another broker may have removed it, and then two hold the lock.",
    ),
    Agreed(
        r"__cluster_metadata-0/\d{20}\.snapshot",
        "- PRESENT",
        "Nobody produces into the metadata log with a producer's id: no states of producers are"
        " kept for it. Apache Kafka makes the empty file again when it lacks one.",
    ),
    Agreed(
        _METADATA_LOG,
        r"[-+] (REGISTER_CONTROLLER|REGISTER_BROKER) .*",
        "A registration names the features that a broker serves, and Apache Kafka's controller its"
        " listener; every start writes a new one.",
    ),
    Agreed(
        _METADATA_LOG,
        r"[-+] BROKER_REGISTRATION_CHANGE .*(fenced: -1|cordoned_log_dirs: \[\]).*",
        "Apache Kafka's broker tells its cordoned directories and that it is ready in two"
        " heartbeats, so in two records.",
    ),
    Agreed(
        _METADATA_LOG,
        rf"[-+] {_BATCH}",
        "Batches of the records above: what Apache Kafka sends in several requests is one batch"
        " here.",
    ),
    Agreed(
        r"(configured-[01]|shapes-2|__transaction_state-1)/leader-epoch-checkpoint",
        "- PRESENT",
        "Apache Kafka notes an epoch when it begins to lead, here it is in the file with its first"
        " batch: a start of ten thousand partitions writes no files. It costs nobody anything:"
        " OffsetForLeaderEpoch knows it from the beginning, and the epoch of the next leadership"
        " takes the place of one without batches.",
    ),
    Agreed(
        "log-start-offset-checkpoint",
        r"\+ (cut 1 8|retained 0 6)|[-+] \d",
        "A log start offset is written down also where a segment begins: a power loss may bring"
        " back the segments before it. Apache Kafka drops such rows.",
    ),
    Agreed(
        "cleaner-offset-checkpoint",
        "- PRESENT",
        "Apache Kafka writes it empty when it starts.",
    ),
)
