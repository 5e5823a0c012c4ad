"""What a raft machine wants done.

Actions are performed in order. A Persist is on disk before the next action begins, because later
messages depend on it; Append and Truncate may be buffered until a Sync. The result of a Sync, of a
Send and of an InstallSnapshot comes back as an event, in any order and at any later time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from wirebroker.coordinator.raft.model.election_state import ElectionState
    from wirebroker.coordinator.raft.model.log_point import LogPoint, RaftBatch
    from wirebroker.coordinator.raft.model.replica_key import Destination
    from wirebroker.coordinator.raft.model.voter_set import VoterSet
    from wirebroker.coordinator.raft.protocol.messages import RaftRequest, RaftResponse


class Persist(NamedTuple):
    """Write `quorum-state` and sync it."""

    election: ElectionState
    data_version: int


class Append(NamedTuple):
    """Append all batches of one message at the end of the log."""

    batches: tuple[RaftBatch, ...]


class Truncate(NamedTuple):
    """Delete the records from an offset on."""

    end_offset: int


class Sync(NamedTuple):
    """Sync the log and report LogSynced with this point, its present end."""

    point: LogPoint


class WriteSnapshot(NamedTuple):
    """Write bytes of a snapshot that is being downloaded."""

    point: LogPoint
    position: int
    data: bytes


class DiscardSnapshot(NamedTuple):
    """Delete the part of a snapshot whose download was abandoned."""

    point: LogPoint


class InstallSnapshot(NamedTuple):
    """Check a downloaded snapshot, then replace the log by it: SnapshotInstalled or -Rejected."""

    point: LogPoint


class Send(NamedTuple):
    """Send a request, and report ResponseReceived."""

    request_id: int
    destination: Destination
    request: RaftRequest


class Respond(NamedTuple):
    """Send a response."""

    token: object
    response: RaftResponse


class LeaderChanged(NamedTuple):
    """Another leader or epoch.

    Attributes:
        start_offset: If this node is the leader: the first offset of its epoch. It begins to serve
            when it has applied that record.
    """

    leader_id: int | None
    epoch: int
    start_offset: int | None = None


class HighWatermarkAdvanced(NamedTuple):
    """The records before this offset are committed."""

    high_watermark: int


class VotersChanged(NamedTuple):
    """Other voters count from now on; the change may be undone until it is committed."""

    voters: VoterSet


class Violation(NamedTuple):
    """A peer broke the protocol; its message was ignored. Log it, at a limited rate.

    Attributes:
        lacks_commits: Whether the leader lacks records that are committed here. Only a start from
            the files, which do not contain the high watermark, can follow such a leader.
    """

    text: str
    lacks_commits: bool = False


class ShutdownFinished(NamedTuple):
    """The machine has stopped."""

    is_timed_out: bool


RaftAction: TypeAlias = (
    Persist
    | Append
    | Truncate
    | Sync
    | WriteSnapshot
    | DiscardSnapshot
    | InstallSnapshot
    | Send
    | Respond
    | LeaderChanged
    | HighWatermarkAdvanced
    | VotersChanged
    | Violation
    | ShutdownFinished
)
