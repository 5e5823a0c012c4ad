"""What a raft machine receives: requests, responses, results of disk work, and requests to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from wirebroker.codecs.records.control import ControlRecord
    from wirebroker.coordinator.raft.model.log_point import LogPoint
    from wirebroker.coordinator.raft.model.replica_key import Destination
    from wirebroker.coordinator.raft.protocol.messages import RaftRequest, RaftResponse


class Tick(NamedTuple):
    """Time has passed."""


class RequestReceived(NamedTuple):
    """A request; the machine responds to `token`, now or later."""

    token: object
    request: RaftRequest


class RequestCancelled(NamedTuple):
    """The connection of a request that has no response yet is closed."""

    token: object


class ResponseReceived(NamedTuple):
    """The response to a Send, or a RequestFailure if none arrived."""

    request_id: int
    destination: Destination
    response: RaftResponse


class LogSynced(NamedTuple):
    """The log is on disk up to a point that a Sync named."""

    point: LogPoint


class SnapshotCreated(NamedTuple):
    """This node has written a snapshot of its own committed records.

    Attributes:
        is_log_start: Whether the log before it and older snapshots are deleted.
    """

    point: LogPoint
    size: int
    is_log_start: bool = False


class SnapshotInstalled(NamedTuple):
    """A downloaded snapshot is checked, on disk, and has replaced the log."""

    point: LogPoint
    size: int
    controls: tuple[ControlRecord, ...]


class SnapshotRejected(NamedTuple):
    """A downloaded snapshot is damaged and deleted."""

    point: LogPoint


class ShutdownRequested(NamedTuple):
    """Stop; a leader waits for its successor, but no longer than the timeout."""

    timeout_ms: int


class ResignationRequested(NamedTuple):
    """Stop leading an epoch."""

    epoch: int


RaftEvent: TypeAlias = (
    Tick
    | RequestReceived
    | RequestCancelled
    | ResponseReceived
    | LogSynced
    | SnapshotCreated
    | SnapshotInstalled
    | SnapshotRejected
    | ShutdownRequested
    | ResignationRequested
)
