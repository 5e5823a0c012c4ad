"""What must hold at every moment of a simulation.

| property | checked at each |
| --- | --- |
| election safety: at most one leader of an epoch | election |
| leader completeness: a leader has all records committed in earlier epochs | election |
| log matching: offset and epoch determine the record and the epoch before it | append |
| state machine safety: no two nodes commit different records at an offset | commit |
| epochs begin with a candidate, or when the leader of the one before resigned | persist |
| durability: a committed record is on disk at a majority of the voters | leader's commit |
| high watermarks never decrease | commit (ReplicaCore.commit) |

By induction the rule of log matching implies that two logs with the same offset and epoch are equal
up to there. The names are those of the Raft paper; raft_properties.py has those of a TLA+ model.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.raft.raft_disk import RaftSnapshot
    from tests.simulation.raft.raft_node import RaftNode
    from tests.simulation.raft.raft_world import RaftWorld
    from wirebroker.coordinator.raft.model.election_state import ElectionState
    from wirebroker.coordinator.raft.model.log_point import RaftBatch


class RaftChecks:
    def __init__(self, world: RaftWorld) -> None:
        self.world = world
        self.leaders: dict[int, tuple] = {}
        self.epochs = {0}
        self.elected: set[tuple[int, int]] = set()
        self.seen: dict[tuple[int, int], tuple[RaftBatch, int]] = {}
        self.log: list[RaftBatch] = []  # committed, in order
        self.commit_epochs: list[int] = []  # the epoch in which each was committed
        self.acknowledged_payloads: list[int] = []

    def persisted(self, node: RaftNode, election: ElectionState) -> None:
        """A pre-vote, or a node alone, begins no epoch."""
        self.world.properties.persisted(node, election)
        epoch = election.epoch
        if election.leader_id == node.node_id:
            self.elected.add((epoch, node.node_id))
        if epoch in self.epochs:
            return
        is_candidate = election.voted is not None and election.voted.matches(node.key)
        has_resigned = (epoch - 1, node.node_id) in self.elected
        assert is_candidate or has_resigned, f"node {node.node_id} began epoch {epoch}"
        self.epochs.add(epoch)

    @property
    def committed_end(self) -> int:
        return self.log[-1].end_offset if self.log else 0

    def leads(self, node: RaftNode, epoch: int) -> None:
        life = (node.key, node.life)
        other = self.leaders.setdefault(epoch, life)
        assert other == life, f"epoch {epoch} has two leaders: {other[0]} and {life[0]}"
        self.has_committed_by(node, epoch - 1)

    def has_committed_by(self, leader: RaftNode, epoch: int) -> None:
        """Check that a leader has everything that was committed in an epoch or before it.

        It may not know of a later epoch yet, and lacks the records committed in that one.
        """
        contents = leader.disk.contents
        stored = {batch.base_offset: batch for batch in contents.batches}
        for batch in self.log[: bisect_right(self.commit_epochs, epoch)]:
            is_stored = stored.get(batch.base_offset) == batch
            assert batch.end_offset <= contents.start_offset or is_stored, (
                f"leader {leader.node_id} lacks {batch}, committed in epoch {epoch} or before"
            )

    def appended(self, node: RaftNode, batch: RaftBatch) -> None:
        batches = node.disk.contents.batches
        if len(batches) > 1:
            previous_epoch = batches[-2].epoch
        else:
            latest = max(node.disk.contents.snapshots, default=None)
            previous_epoch = 0 if latest is None else latest.epoch
        known = self.seen.setdefault((batch.base_offset, batch.epoch), (batch, previous_epoch))
        assert known == (batch, previous_epoch), (
            f"log matching: node {node.node_id} has {batch} after epoch {previous_epoch},"
            f" another one {known}"
        )

    def committed(self, node: RaftNode, batch: RaftBatch) -> None:
        if batch.base_offset < self.committed_end:
            index = next(i for i, b in enumerate(self.log) if b.base_offset >= batch.base_offset)
            assert self.log[index] == batch, (
                f"node {node.node_id} committed {batch}, others {self.log[index]}"
            )
            return
        assert batch.base_offset == self.committed_end, (batch, self.committed_end)
        self.log.append(batch)
        epoch = node.core.state.epoch
        last_epoch = self.commit_epochs[-1] if self.commit_epochs else 0
        assert epoch >= last_epoch, (epoch, last_epoch)
        self.commit_epochs.append(epoch)
        if node.leads:
            self._is_on_disk_of_majority(node, batch)

    def _is_on_disk_of_majority(self, leader: RaftNode, batch: RaftBatch) -> None:
        voters = leader.core.history.last_voters.keys
        holders = [
            key
            for key in voters
            if self.world.faults.is_wiped(key)  # had it before, or the fetch says so wrongly
            or self.world.nodes[key.replica_id].disk.durable.contains(batch)
        ]
        assert len(holders) > len(voters) // 2, (
            f"leader {leader.node_id} committed {batch}, on disk only at {holders}, not at a"
            f" majority of {voters}"
        )

    def installed(self, snapshot: RaftSnapshot) -> None:
        """A snapshot contains everything committed before its end."""
        end = snapshot.point.offset
        committed = [batch for batch in self.log if batch.end_offset <= end]
        assert list(snapshot.applied) == committed, (
            f"the snapshot at {snapshot.point} has {len(snapshot.applied)} of {len(committed)}"
            " batches"
        )

    def acknowledged(self, payload: int) -> None:
        self.acknowledged_payloads.append(payload)

    def at_the_end(self, nodes: list[RaftNode]) -> None:
        counts: dict[object, int] = {}
        for batch in self.log:
            if batch.payload is not None:
                counts[batch.payload] = counts.get(batch.payload, 0) + 1
        assert all(count == 1 for count in counts.values()), "a record is committed twice"
        lost = [payload for payload in self.acknowledged_payloads if payload not in counts]
        assert not lost, f"acknowledged records {lost} are lost"
        for node in nodes:
            assert node.applied == self.log[: len(node.applied)]
            assert node.applied[-1].end_offset == self.committed_end, node.node_id
