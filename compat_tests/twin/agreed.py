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
        "Records of the metadata log have no producer id, so it has no producer states. Apache"
        " Kafka creates the empty file again if it is missing.",
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
        "Apache Kafka's broker reports its cordoned directories and its readiness in two"
        " heartbeats, which give two records.",
    ),
    Agreed(
        _METADATA_LOG,
        rf"[-+] {_BATCH}",
        "Batches of the records above: wirebroker writes one batch where Apache Kafka sends several"
        " requests.",
    ),
    Agreed(
        r"(configured-[01]|shapes-2|__transaction_state-1)/leader-epoch-checkpoint",
        "- PRESENT",
        "Apache Kafka writes an epoch when it begins to lead; wirebroker writes it with the first"
        " batch, so a start of ten thousand partitions writes no files. No client is affected:"
        " OffsetForLeaderEpoch returns it from the beginning, and the epoch of the next leadership"
        " replaces one without batches.",
    ),
    Agreed(
        "log-start-offset-checkpoint",
        r"\+ (cut 1 8|retained 0 6)|[-+] \d",
        "A log start offset is also written if it is the start of a segment: a power loss may bring"
        " back earlier segments. Apache Kafka drops such rows.",
    ),
    Agreed(
        "cleaner-offset-checkpoint",
        "- PRESENT",
        "Apache Kafka writes it empty when it starts.",
    ),
)
