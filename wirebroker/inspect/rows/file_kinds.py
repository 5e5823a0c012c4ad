"""Kinds of files in a data directory, by file and folder name."""

from __future__ import annotations

import re
from enum import Enum, auto

from wirebroker.storage.checkpoints import (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from wirebroker.storage.directory_identity import META_PROPERTIES
from wirebroker.storage.file_names import offset_of
from wirebroker.storage.log.leader_epochs import FILE_NAME as LEADER_EPOCHS
from wirebroker.storage.log_directory import CLEAN_SHUTDOWN_MARKER
from wirebroker.storage.partition_metadata import PARTITION_METADATA

METADATA_TOPIC = "__cluster_metadata"
OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
QUORUM_STATE = "quorum-state"
BOOTSTRAP = "bootstrap.checkpoint"

OFFSET_CHECKPOINTS = (
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    CLEANER_CHECKPOINT,
)

_SEGMENT_FILE = re.compile(r"([0-9]{20})\.(log|index|timeindex|txnindex|snapshot)")
_METADATA_SNAPSHOT = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")


class FileKind(Enum):
    """The supported kinds of files."""

    LOG = auto()
    OFFSET_INDEX = auto()
    TIME_INDEX = auto()
    TRANSACTION_INDEX = auto()
    PRODUCER_SNAPSHOT = auto()
    METADATA_SNAPSHOT = auto()
    OFFSET_CHECKPOINT = auto()
    LEADER_EPOCHS = auto()
    PARTITION_METADATA = auto()
    META_PROPERTIES = auto()
    CLEAN_SHUTDOWN = auto()
    QUORUM_STATE = auto()


_BY_SUFFIX = {
    "log": FileKind.LOG,
    "index": FileKind.OFFSET_INDEX,
    "timeindex": FileKind.TIME_INDEX,
    "txnindex": FileKind.TRANSACTION_INDEX,
    "snapshot": FileKind.PRODUCER_SNAPSHOT,
}
_BY_NAME = {
    **dict.fromkeys(OFFSET_CHECKPOINTS, FileKind.OFFSET_CHECKPOINT),
    LEADER_EPOCHS: FileKind.LEADER_EPOCHS,
    PARTITION_METADATA: FileKind.PARTITION_METADATA,
    META_PROPERTIES: FileKind.META_PROPERTIES,
    CLEAN_SHUTDOWN_MARKER: FileKind.CLEAN_SHUTDOWN,
    QUORUM_STATE: FileKind.QUORUM_STATE,
    BOOTSTRAP: FileKind.METADATA_SNAPSHOT,
}


# Suffixes that a crash or deletion leaves after a file's name.
LEFTOVERS = (".deleted", ".cleaned", ".swap", ".tmp", ".part")


def kind_of(name: str) -> FileKind | None:
    """Return the kind of a file by its name without leftover suffixes, or None."""
    for leftover in LEFTOVERS:
        name = name.removesuffix(leftover)
    match = _SEGMENT_FILE.fullmatch(name)
    if match and base_offset_of(name) is not None:
        return _BY_SUFFIX[match[2]]
    if _METADATA_SNAPSHOT.fullmatch(name):
        return FileKind.METADATA_SNAPSHOT
    return _BY_NAME.get(name)


def base_offset_of(name: str) -> int | None:
    """Return the offset in a segment file's name, or None."""
    return offset_of(name.partition(".")[0]) if _SEGMENT_FILE.match(name) else None
