"""What a replica of the metadata log shows on the page of metrics: Kafka's `raft-metrics`."""

from __future__ import annotations

from typing import NamedTuple


class RaftFigures(NamedTuple):
    """The figures of one moment; None if they are not known here.

    Attributes:
        state: Kafka's name of the state.
        leader_id: -1 if there is none. Likewise `vote` and `high_watermark`.
        observers: On the leader: how many replicas that do not vote fetch from it.
        has_uncommitted_voters: On the leader: whether a change of the voters is not committed.
        unknown_voters: Other voters without a known address.
        commit_average_ms: Of recent commits, likewise the next three.
    """

    state: str
    epoch: int
    high_watermark: int
    log_end_offset: int
    log_end_epoch: int | None = None
    leader_id: int | None = None
    vote: int | None = None
    voters: int | None = None
    observers: int | None = None
    has_uncommitted_voters: int | None = None
    unknown_voters: int | None = None
    commit_average_ms: float | None = None
    commit_highest_ms: int | None = None
    election_average_ms: float | None = None
    election_highest_ms: int | None = None
    fetched_per_s: float | None = None
    appended_per_s: float | None = None
