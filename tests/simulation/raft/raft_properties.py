"""Properties of the whole quorum, checked all the time.

They are the safety properties of a published TLA+ model of KRaft (docs/quorum-safety.md):

| property | checked |
| --- | --- |
| an epoch has one leader, in the view of every replica | when a replica persists it |
| a replica votes for one candidate of an epoch, also across crashes | when a vote is sent |
| a replica's log equals the committed log up to the high watermark | every second |
| a leader has everything committed up to its epoch | every second |
| everything acknowledged is on the disk of a majority of the voters | when a leader commits |
| only a voter asks for votes; a broker only observes | every second |
| the voters in memory are those of the log on disk | every second |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.coordinator.raft.states.epoch_states import CandidateState, ProspectiveState

if TYPE_CHECKING:
    from tests.simulation.raft.raft_node import RaftNode
    from tests.simulation.raft.raft_world import RaftWorld
    from wirebroker.coordinator.raft.model.election_state import ElectionState
    from wirebroker.coordinator.raft.model.replica_key import ReplicaKey
    from wirebroker.coordinator.raft.protocol.messages import VoteRequest


class RaftProperties:
    def __init__(self, world: RaftWorld) -> None:
        self.world = world
        self._leaders: dict[int, int] = {}
        self._votes: dict[tuple[ReplicaKey, int], ReplicaKey] = {}

    def persisted(self, node: RaftNode, election: ElectionState) -> None:
        """Check that all replicas name the same leader of an epoch."""
        if election.leader_id is not None:
            known = self._leaders.setdefault(election.epoch, election.leader_id)
            assert known == election.leader_id, (
                f"epoch {election.epoch} has two leaders: {election.leader_id} for node"
                f" {node.node_id}, {known} for others"
            )
        if election.voted is not None and election.voted.matches(node.key):
            self._voted(node, election.epoch, node.key)

    def granted(self, node: RaftNode, request: VoteRequest) -> None:
        """Check that a replica's vote in an epoch is always the same."""
        if not request.is_pre_vote:
            self._voted(node, request.epoch, request.candidate)

    def _voted(self, node: RaftNode, epoch: int, candidate: ReplicaKey) -> None:
        known = self._votes.setdefault((node.key, epoch), candidate)
        assert known.matches(candidate), (
            f"node {node.node_id} voted twice in epoch {epoch}: for {known.replica_id} and"
            f" {candidate.replica_id}"
        )

    def check(self) -> None:
        """Check the state of all running nodes."""
        committed = {batch.base_offset: batch for batch in self.world.checks.log}
        running = [node for node in self.world.nodes.values() if node.replica is not None]
        for node in running:
            self._has_committed_log(node, committed)
            self._has_state_of_its_role(node)
            self._knows_its_voters(node)
            if node.leads:
                self.world.checks.has_committed_by(node, node.core.state.epoch)

    def _has_committed_log(self, node: RaftNode, committed) -> None:
        high_watermark = node.core.high_watermark or 0
        for batch in node.disk.contents.batches:
            if batch.end_offset <= high_watermark:
                assert committed.get(batch.base_offset) == batch, (
                    f"node {node.node_id} has {batch} below its high watermark"
                    f" {high_watermark}, committed is {committed.get(batch.base_offset)}"
                )

    def _has_state_of_its_role(self, node: RaftNode) -> None:
        core = node.core
        if isinstance(core.state, ProspectiveState | CandidateState):
            assert core.is_voter, f"node {node.node_id} is no voter, but {core.state.name}"
        if node.node_id in self.world.broker_ids:
            assert core.state.name in ("Unattached", "Follower"), core.state

    def _knows_its_voters(self, node: RaftNode) -> None:
        if node.core.installing is None:
            _, history, _, _ = node.disk.load()
            assert node.core.history.last_voters == history.last_voters, (
                f"node {node.node_id} counts {node.core.history.last_voters}, its log says"
                f" {history.last_voters}"
            )
