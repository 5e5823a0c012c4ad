"""The voters of a quorum, and changes of them.

Source: Kafka's VoterSet (KIP-853).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.records.control import KRaftVoters, Voter
from wirebroker.coordinator.raft.model.replica_key import Destination, ReplicaKey, destination_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wirebroker.coordinator.raft.model.replica_key import Endpoints

# The level of kraft.version from which the log contains the voters and they can change.
DYNAMIC_VOTERS: Final = 1


def key_of(voter: Voter) -> ReplicaKey:
    """Return a voter's key."""
    return ReplicaKey(voter.voter_id, voter.directory_id)


class VoterSet:
    """An immutable set of voters with distinct ids, in the order of their ids."""

    __slots__ = ("_voters",)

    def __init__(self, voters: Iterable[Voter] = ()) -> None:
        by_id = {voter.voter_id: voter for voter in voters}
        self._voters = {voter_id: by_id[voter_id] for voter_id in sorted(by_id)}

    def __len__(self) -> int:
        return len(self._voters)

    def __iter__(self) -> Iterator[Voter]:
        return iter(self._voters.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoterSet) and self._voters == other._voters

    def __hash__(self) -> int:
        return hash(tuple(self._voters.values()))

    def __repr__(self) -> str:
        return f"VoterSet({', '.join(str(voter_id) for voter_id in self._voters)})"

    @property
    def ids(self) -> frozenset[int]:
        """The voters' node ids."""
        return frozenset(self._voters)

    @property
    def keys(self) -> tuple[ReplicaKey, ...]:
        """The voters' keys."""
        return tuple(key_of(voter) for voter in self._voters.values())

    def key_with_id(self, voter_id: int) -> ReplicaKey | None:
        """Return the key of the voter with this node id."""
        voter = self._voters.get(voter_id)
        return None if voter is None else key_of(voter)

    def is_voter(self, key: ReplicaKey) -> bool:
        """Return whether the replica votes; a voter of unknown directory matches any."""
        voter = self._voters.get(key.replica_id)
        return voter is not None and key_of(voter).matches(key)

    def is_only_voter(self, key: ReplicaKey) -> bool:
        """Return whether the replica is the only voter."""
        return len(self._voters) == 1 and self.is_voter(key)

    def endpoints(self, voter_id: int) -> Endpoints:
        """Return a voter's listeners; none for other nodes."""
        voter = self._voters.get(voter_id)
        return () if voter is None else voter.endpoints

    def destination(self, voter_id: int, listener_name: str) -> Destination | None:
        """Return where to send requests for a voter."""
        return destination_of(voter_id, self.endpoints(voter_id), listener_name)

    def needs_update(self, voter: Voter) -> bool:
        """Return whether this replica is a voter with other listeners or versions."""
        current = self._voters.get(voter.voter_id)
        if current is None or not key_of(current).matches(key_of(voter)):
            return False
        # The order of listeners means nothing: every node sorts them in another way.
        return current._replace(endpoints=()) != voter._replace(endpoints=()) or set(
            current.endpoints
        ) != set(voter.endpoints)

    def with_added(self, voter: Voter) -> VoterSet | None:
        """Return the set with another voter; None if its id is taken."""
        return None if voter.voter_id in self._voters else VoterSet([*self, voter])

    def with_removed(self, key: ReplicaKey) -> VoterSet | None:
        """Return the set without a voter; None if it is not a voter or the last one."""
        voter = self._voters.get(key.replica_id)
        if voter is None or key_of(voter) != key or len(self._voters) == 1:
            return None
        return VoterSet(voter for voter in self if voter.voter_id != key.replica_id)

    def with_updated(self, voter: Voter, *, any_directory: bool = False) -> VoterSet | None:
        """Return the set with another description of a voter; None if it is not a voter.

        With `any_directory` the directory id is replaced too (static voters, whose ids are
        unknown).
        """
        current = self._voters.get(voter.voter_id)
        if current is None or not (any_directory or key_of(current).matches(key_of(voter))):
            return None
        return VoterSet([*self, voter])

    def supports(self, kraft_version: int) -> bool:
        """Return whether all voters support a level of kraft.version."""
        return all(
            voter.min_supported_version <= kraft_version <= voter.max_supported_version
            for voter in self
        )

    def to_record(self) -> KRaftVoters:
        """Return the record of this set."""
        return KRaftVoters(tuple(self._voters.values()))
