"""After the faults: progress as soon as a majority of the voters can communicate.

First, in a part of the schedules, only a majority can reach each other: the other nodes stay cut
off, in one direction or in both, or two of three voters reach each other only through the third. A
leader must commit a new record within MAJORITY_MS. Then the network is whole, and within ALL_MS
every node follows one leader and has applied everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.coordinator.raft.states.epoch_states import FollowerState

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.raft.raft_world import RaftWorld
    from wirebroker.coordinator.raft.states.replica_core import ReplicaCore

# Election timeouts are 1 to 2 s and fetch timeouts 2 s; several elections may be needed.
MAJORITY_MS = 30_000
ALL_MS = 30_000


class RaftRecovery:
    """The end of one schedule.

    Attributes:
        majority_ms: How long a majority alone needed; None if all nodes could communicate.
        all_ms: How long the whole quorum needed then.
    """

    def __init__(self, world: RaftWorld) -> None:
        self.world = world
        self.majority_ms: int | None = None
        self.all_ms = 0

    def run(self) -> None:
        """Wait for both.

        Raises:
            AssertionError: There is no progress in time.
        """
        cut = self._cut_that_leaves_a_majority()
        if cut:
            self.world.network.cut = cut
            self.majority_ms = self._wait(self._new_record(), MAJORITY_MS)
            self.world.network.heal()
        has_new_record = self._new_record()
        self.all_ms = self._wait(lambda: has_new_record() and self._is_whole(), ALL_MS)

    def _wait(self, is_so: Callable[[], bool], longest_ms: int) -> int:
        world = self.world
        began = world.now
        world.run_until(lambda: is_so() or world.now >= began + longest_ms)
        assert is_so(), f"no recovery in {longest_ms} ms: {world.describe()}"
        return world.now - began

    def _new_record(self) -> Callable[[], bool]:
        """Begin to propose records; return whether one of them is acknowledged."""
        first_payload = self.world.clients.last_payload + 1

        def is_acknowledged() -> bool:
            return max(self.world.checks.acknowledged_payloads, default=0) >= first_payload

        def propose() -> None:
            if not is_acknowledged():
                self.world.clients.propose_at_idle_leaders()
                self.world.after(200, propose)

        self.world.after(0, propose)
        return is_acknowledged

    def _is_whole(self) -> bool:
        """Return whether one leader has no work left and all others follow it."""
        nodes = self.world.nodes.values()
        leaders = [node for node in nodes if node.leads]
        if len(leaders) != 1 or any(node.replica is None for node in nodes):
            return False
        (leader,) = leaders
        core = leader.core
        return (
            not leader.pending
            and core.state.pending is None
            and core.log.end_offset == core.high_watermark == self.world.checks.committed_end
            and all(
                isinstance(node.core.state, FollowerState)
                and node.core.state.leader_id == leader.node_id
                for node in nodes
                if node is not leader
            )
            and all(
                node.applied and node.applied[-1].end_offset == core.log.end_offset
                for node in nodes
            )
        )

    # Partial connectivity

    def _cut_that_leaves_a_majority(self) -> set[tuple[int, int]]:
        random, node_ids = self.world.random, list(self.world.nodes)
        kind = random.choice(["whole", "both", "in", "out", "hub"])
        if kind == "hub":
            return self._hub()
        if kind == "whole":
            return set()
        for _ in range(5):
            group = {node_id for node_id in node_ids if random.random() < 0.6}
            if len(group) == len(node_ids) or not self._is_majority(group):
                continue
            if not self._has_winner(group):
                self.world.counts["majorities without a winner"] += 1
            else:
                return {
                    (a, b)
                    for a, b in self.world.network.links
                    if (a in group) != (b in group)
                    and (kind == "both" or (b in group) == (kind == "out"))
                }
        return set()

    def _is_majority(self, group: set[int]) -> bool:
        """Return whether a group has a majority of each set of voters that may count in it."""
        for node_id in group:
            history = self.world.nodes[node_id].core.history
            sets = [history.last_voters, *(voters for _, voters in history._voters)]
            for voters in sets:
                alive = [
                    key
                    for key in voters.keys
                    if key.replica_id in group and not self.world.faults.is_wiped(key)
                ]
                if len(alive) <= len(voters) // 2:
                    return False
        return True

    def _has_winner(self, group: set[int]) -> bool:
        """Return whether a node of a group can become a candidate and win the group's election.

        As in Kafka (KIP-853), a leader that has appended its own removal is no candidate later.
        While the removal is not committed and that log is the longest, it also denies the others
        its vote.
        """
        cores = {node_id: self.world.nodes[node_id].core for node_id in group}

        def wins(candidate: ReplicaCore) -> bool:
            voters = candidate.history.last_voters
            votes = sum(
                cores[key.replica_id].log.end <= candidate.log.end
                for key in voters.keys
                if key.replica_id in group and not self.world.faults.is_wiped(key)
            )
            return candidate.is_voter and votes > len(voters) // 2

        return any(map(wins, cores.values()))

    def _hub(self) -> set[tuple[int, int]]:
        """Return a cut between two of exactly three static voters."""
        voter_ids = self.world.voter_ids
        if len(voter_ids) != 3 or self.world.is_dynamic:
            return set()
        if any(node.core.history.kraft_version for node in self.world.nodes.values()):
            return set()
        one, other = self.world.random.sample(voter_ids, 2)
        return {(one, other), (other, one)}
