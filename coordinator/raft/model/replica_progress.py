"""What a leader knows of another replica's log.

Source: Kafka's LeaderState.ReplicaState (KIP-836 for the times).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirebroker.coordinator.raft.model.replica_key import ReplicaKey


@dataclass(slots=True)
class ReplicaProgress:
    """One replica's progress.

    Attributes:
        end_offset: The end of its log on disk, as its last fetch said; None before that.
        last_fetch_ms: The time of its last fetch, or -1.
        last_caught_up_ms: When it last had everything, or -1.
        leader_end_offset: The end of the leader's log at its last fetch, or -1.
    """

    key: ReplicaKey
    end_offset: int | None = None
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1
    leader_end_offset: int = -1

    def fetched(self, end_offset: int, leader_end_offset: int, now_ms: int) -> None:
        """Note a fetch from an offset."""
        if end_offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif 0 < self.leader_end_offset <= end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.leader_end_offset = leader_end_offset
        self.last_fetch_ms = max(self.last_fetch_ms, now_ms)
        self.end_offset = end_offset
