"""A position in the metadata log, and a batch of it, as the raft machine sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from wirebroker.codecs.records.control import ControlRecord


class LogPoint(NamedTuple):
    """The end of a log or of a snapshot: the last record's epoch, and the offset after it.

    The order is the one by which voters compare logs: first the epoch, then the offset. By log
    matching, two logs that contain the same point are equal up to it.

    Source: Kafka's OffsetAndEpoch.
    """

    epoch: int
    offset: int


# The snapshot that a storage tool writes when it formats a directory.
FORMATTED_SNAPSHOT = LogPoint(0, 0)


class RaftBatch(NamedTuple):
    """A record batch: its place, its control records, and bytes that this machine does not read.

    `controls` are the decoded records of a control batch; a data batch has none.
    """

    base_offset: int
    end_offset: int
    epoch: int
    controls: tuple[ControlRecord, ...] = ()
    payload: object = None


class LogSlice(NamedTuple):
    """Records to read for a response: whole batches between two offsets, at most `max_bytes`.

    At least one batch is read. The read must precede any later change of the log: a node that has
    lost its leadership could otherwise send records of the next leader as if they were its own.
    """

    start_offset: int
    end_offset: int
    max_bytes: int


class SnapshotSlice(NamedTuple):
    """Bytes of a snapshot to read for a response."""

    position: int
    max_bytes: int
