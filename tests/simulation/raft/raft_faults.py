"""What fails in a simulation: nodes, disks, the network and the clocks, in a random order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.coordinator.raft.protocol.events import ResignationRequested

if TYPE_CHECKING:
    from tests.simulation.raft.raft_node import RaftNode
    from tests.simulation.raft.raft_world import RaftWorld
    from wirebroker.coordinator.raft.model.replica_key import ReplicaKey
    from wirebroker.coordinator.raft.model.voter_set import VoterSet

FAULTS_MS = 12_000


class RaftFaults:
    """The faults of one world.

    Attributes:
        is_over: Whether the time of faults has ended.
        crash_after_vote_rate: How often a voter crashes just after its vote was sent.
        shortly_down_ms: How long it is down at most.
        change_weight: How often the administrator acts.
    """

    def __init__(self, world: RaftWorld) -> None:
        self.world = world
        self.is_over = False
        self.crash_after_vote_rate = world.random.choice([0.0, 0.2, 1.0])
        self.shortly_down_ms = world.random.choice([2, 30])
        self.change_weight = world.random.choice([4, 4, 24])
        self.longest_calm_ms = world.random.choice([100, 300, 900, 2_500])

    def act(self) -> None:
        """Cause one fault, and later another one."""
        if self.is_over:
            return
        changes = self.change_weight
        faults = [
            *[self._crash_one] * 4,
            *[self._crash_between_actions] * 3,
            *[self._partition] * 4,
            *[self._cut_one_way] * 2,
            *[self.world.network.heal] * 4,
            self._bad_network,
            self._pause,
            self._slow_disk,
            self._failing_disk,
            *[self._snapshot] * 2,
            self._resign,
            self._shut_down,
            *[self.world.administrator.act] * changes,
            *[self._wipe] * (changes // 4),
        ]
        self.world.random.choice(faults)()
        self.world.after(self.world.random.randint(20, self.longest_calm_ms), self.act)

    def end(self) -> None:
        """End all faults; nodes that are down start."""
        world = self.world
        self.is_over = True
        world.network.heal()
        for node in world.nodes.values():
            node.paused_until = world.now
            node.disk_delay_ms = 5
            node.disk.writes_until_failure = None
            node.crash_after_actions = None
            world.restart(node)

    def crash(self, node: RaftNode, down_ms: int | None = None) -> None:
        self.world.counts["crashes"] += 1
        node.crash()
        self.world.network.disconnect(node.node_id)
        self.world.after(down_ms or self.world.random.randint(10, 3_000), self.world.restart, node)

    def may_crash(self, node: RaftNode, rate: float) -> bool:
        """Crash a node at a critical moment; return whether it crashed."""
        is_crash = not self.is_over and self.world.random.random() < rate
        if is_crash:
            self.crash(node, self.world.random.randint(1, self.shortly_down_ms))
        return is_crash

    def is_wiped(self, key: ReplicaKey) -> bool:
        return not key.matches(self.world.nodes[key.replica_id].key)

    def _some_node(self) -> RaftNode:
        nodes = list(self.world.nodes.values())
        leaders = [node for node in nodes if node.leads]
        if leaders and self.world.random.random() < 0.4:
            return self.world.random.choice(leaders)
        return self.world.random.choice(nodes)

    def _crash_one(self) -> None:
        node = self._some_node()
        if node.replica is not None:
            self.crash(node)

    def _crash_between_actions(self) -> None:
        self._some_node().crash_after_actions = self.world.random.randint(0, 6)

    def _partition(self) -> None:
        self.world.counts["partitions"] += 1
        group = {self._some_node().node_id}
        group |= {node_id for node_id in self.world.nodes if self.world.random.random() < 0.3}
        self.world.network.cut = {
            (a, b) for a, b in self.world.network.links if (a in group) != (b in group)
        }

    def _cut_one_way(self) -> None:
        self.world.counts["one-way cuts"] += 1
        source = self._some_node().node_id
        random = self.world.random
        targets = [n for n in self.world.nodes if n != source and random.random() < 0.7]
        if random.random() < 0.5:
            self.world.network.cut |= {(source, target) for target in targets}
        else:
            self.world.network.cut |= {(target, source) for target in targets}

    def _bad_network(self) -> None:
        network, random = self.world.network, self.world.random
        network.loss_rate = random.choice([0.05, 0.3])
        network.duplicate_rate = 0.2
        network.slow_rate = random.choice([0.0, 0.1])

    def _pause(self) -> None:
        self.world.counts["pauses"] += 1
        node = self._some_node()
        node.paused_until = self.world.now + self.world.random.randint(100, 4_000)

    def _slow_disk(self) -> None:
        self._some_node().disk_delay_ms = self.world.random.choice([5, 200, 2_500])

    def _failing_disk(self) -> None:
        self._some_node().disk.writes_until_failure = self.world.random.randint(0, 8)

    def disk_failed(self, node: RaftNode) -> None:
        """The node ends, and restarts with the same disk."""
        self.world.counts["failed disks"] += 1
        self.crash(node)

    def _snapshot(self) -> None:
        node = self._some_node()
        if node.replica is not None and self.world.now >= node.paused_until:
            self.world.counts["snapshots"] += 1
            node.take_snapshot(is_log_start=self.world.random.random() < 0.7)

    def _resign(self) -> None:
        node = self._some_node()
        if node.replica is not None:
            node.handle(ResignationRequested(node.core.state.epoch))

    def _shut_down(self) -> None:
        self.world.counts["shutdowns"] += 1
        self._some_node().shut_down()

    def _wipe(self) -> None:
        """Replace a disk, if the remaining voters are a majority whatever set of them counts."""
        node = self._some_node()
        nodes = self.world.nodes.values()
        voters = self._certain_voters()
        if voters is None or any(other.core.history.kraft_version == 0 for other in nodes):
            return
        dead = sum(self.is_wiped(key) for key in voters.keys) + voters.is_voter(node.key)
        if dead and dead > (len(voters) - 1) // 2:
            return
        self.world.counts["wiped disks"] += 1
        self.crash(node)
        node.wipe()

    def _certain_voters(self) -> VoterSet | None:
        """Return the voters that count on every node, also after crashes; None if they may differ.

        The disk of a node may still contain a change of voters that the node has truncated. If a
        crash brings back a leader's own removal, its vote cannot replace that of the wiped voter:
        it is no candidate, and its log is longer than those of the others.
        """
        nodes = self.world.nodes.values()
        if any(node.replica is None for node in nodes):
            return None
        found = {node.core.history.last_voters for node in nodes}
        for node_id in self.world.node_ids:
            found |= self.world.nodes[node_id].disk.voters_after_crash()
        return found.pop() if len(found) == 1 else None
