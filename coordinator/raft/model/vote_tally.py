"""The votes that a prospective or a candidate has received.

Source: Kafka's EpochElection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.coordinator.raft.model.replica_key import ReplicaKey


class VoteTally:
    """One vote of each voter: granted, rejected or not received."""

    __slots__ = ("_keys", "_votes")

    def __init__(self, voters: Iterable[ReplicaKey], own_id: int) -> None:
        self._keys = {key.replica_id: key for key in voters}
        self._votes: dict[int, bool] = {own_id: True}
        assert own_id in self._keys, (own_id, self._keys)

    @property
    def is_granted(self) -> bool:
        """Whether a majority has granted its votes."""
        return self._granted_count >= self._majority

    @property
    def is_rejected(self) -> bool:
        """Whether a majority can no longer be reached."""
        return self._granted_count + len(self._keys) - len(self._votes) < self._majority

    @property
    def missing(self) -> list[ReplicaKey]:
        """The voters that have not responded."""
        return [key for voter_id, key in self._keys.items() if voter_id not in self._votes]

    @property
    def granting(self) -> list[int]:
        """The voters that granted, in the order of ids."""
        return sorted(voter_id for voter_id, is_granted in self._votes.items() if is_granted)

    def record(self, voter_id: int, *, is_granted: bool) -> None:
        """Count the response of a voter; the first one of each counts."""
        if voter_id in self._keys:
            self._votes.setdefault(voter_id, is_granted)

    @property
    def _granted_count(self) -> int:
        return sum(self._votes.values())

    @property
    def _majority(self) -> int:
        return len(self._keys) // 2 + 1
