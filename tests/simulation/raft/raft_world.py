"""A quorum of simulated replicas under faults, from one seed, in virtual time.

    world = RaftWorld(seed); world.run()

First comes a time of faults: partitions of one or both directions, lost, late, repeated and
reordered messages, crashes between any two actions that lose unsynced writes, paused nodes, slow
disks, skewed clocks, resignations, shutdowns, snapshots; with dynamic voters also wiped disks and
changes of the voters. Then all faults end, and within a bounded time a leader must commit on every
node. RaftChecks holds at every moment.
"""

from __future__ import annotations

import heapq
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

from tests.simulation.raft.raft_administrator import RaftAdministrator
from tests.simulation.raft.raft_checks import RaftChecks
from tests.simulation.raft.raft_disk import RaftSnapshot, formatted_controls
from tests.simulation.raft.raft_network import RaftNetwork
from tests.simulation.raft.raft_node import RaftNode, endpoints_of
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.codecs.records.control import Voter
from wirebroker.coordinator.raft.model.log_point import FORMATTED_SNAPSHOT
from wirebroker.coordinator.raft.model.quorum_settings import QuorumSettings
from wirebroker.coordinator.raft.model.replica_key import ReplicaKey
from wirebroker.coordinator.raft.model.voter_set import VoterSet
from wirebroker.coordinator.raft.protocol.events import ResignationRequested

if TYPE_CHECKING:
    from collections.abc import Callable

FAULTS_MS = 12_000
# After the last fault, a leader has committed a new record on all nodes. Election timeouts are 1 to
# 2 s and fetch timeouts 2 s; several elections may be needed.
RECOVERY_MS = 30_000


class RaftWorld:
    cluster_id = "simulated"
    faults_ms = FAULTS_MS

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.now = 0
        self._events: list[tuple[int, int, Callable, tuple]] = []
        self._event_count = 0
        self._key_count = 0
        self._payload = 0
        self.counts: Counter[str] = Counter()
        self.network = RaftNetwork(self)
        self.checks = RaftChecks(self)
        self.administrator = RaftAdministrator(self)
        self.is_faulty = True
        self.recovered_ms = 0
        voter_count = self.random.choice([1, 3, 3, 3, 5])
        spare_count = self.random.randint(0, 2)
        broker_count = self.random.randint(0, 1)
        self.voter_ids = list(range(1, voter_count + 1))
        spare_ids = list(range(voter_count + 1, voter_count + spare_count + 1))
        self.broker_ids = [100 + i for i in range(broker_count)]
        self.node_ids = self.voter_ids + spare_ids
        self.is_dynamic = self.random.random() < 0.6
        self.change_weight = self.random.choice([4, 4, 24])
        self.election_timeout_ms = self.random.choice([1_000, 1_000, 100])
        self.fetch_max_bytes = self.random.choice([100, 1_000])
        self.crash_after_vote_rate = self.random.choice([0.0, 0.2])
        self.longest_calm_ms = self.random.choice([300, 900, 2_500])
        self.nodes: dict[int, RaftNode] = {}
        self._make_nodes()

    def settings(self) -> QuorumSettings:
        return QuorumSettings(
            election_timeout_ms=self.election_timeout_ms,
            fetch_max_bytes=self.fetch_max_bytes,
            fetch_snapshot_max_bytes=2_000,
            is_auto_join=self.is_dynamic and self.seed % 4 == 0,
        )

    def new_key(self, node_id: int) -> ReplicaKey:
        self._key_count += 1
        return ReplicaKey(node_id, node_id.to_bytes(8) + self._key_count.to_bytes(8))

    def is_wiped(self, key: ReplicaKey) -> bool:
        return not key.matches(self.nodes[key.replica_id].key)

    def _make_nodes(self) -> None:
        static = VoterSet(
            Voter(node_id, ZERO_UUID, endpoints_of(node_id), 0, 0) for node_id in self.voter_ids
        )
        if self.is_dynamic:
            static = VoterSet()
        for node_id in self.node_ids + self.broker_ids:
            self.nodes[node_id] = RaftNode(self, node_id, static)
        if self.is_dynamic:
            voters = VoterSet(
                Voter(*self.nodes[node_id].key, endpoints_of(node_id), 0, 1)
                for node_id in self.voter_ids
            )
            snapshot = RaftSnapshot(FORMATTED_SNAPSHOT, formatted_controls(voters), ())
            for node_id in self.voter_ids:
                self.nodes[node_id].disk.add_snapshot(snapshot)

    def at(self, time_ms: int, call: Callable, *arguments: object) -> None:
        self._event_count += 1
        heapq.heappush(self._events, (time_ms, self._event_count, call, arguments))

    def after(self, delay_ms: int, call: Callable, *arguments: object) -> None:
        self.at(self.now + delay_ms, call, *arguments)

    def run(self) -> None:
        for node in self.nodes.values():
            self.after(self.random.randint(0, 500), self.restart, node)
        self.after(1_000, self._propose)
        self.after(1_000, self._fault)
        self._run_until(lambda: self.now >= self.faults_ms)
        self._heal()
        deadline = self.now + RECOVERY_MS
        began = self.now
        first_payload = self._payload + 1
        self.after(0, self._propose_until_acknowledged, first_payload)
        self._run_until(lambda: self._is_recovered(first_payload) or self.now >= deadline)
        self.recovered_ms = self.now - began
        assert self._is_recovered(first_payload), f"no recovery: {self.describe()}"
        self.checks.at_the_end(list(self.nodes.values()))

    def _run_until(self, is_over: Callable[[], bool]) -> None:
        while not is_over():
            self.now, _, call, arguments = heapq.heappop(self._events)
            call(*arguments)

    # What clients do.

    def _propose(self) -> None:
        if not self.is_faulty:
            return
        leaders = [node for node in self.nodes.values() if node.leads]
        if leaders:
            self._payload += 1
            self.random.choice(leaders).append(self._payload, self.random.randint(1, 3))
        self.after(self.random.randint(5, 300), self._propose)

    def _propose_until_acknowledged(self, first_payload: int) -> None:
        if not self._has_acknowledged(first_payload):
            for node in self.nodes.values():
                if node.leads and not node.pending:
                    self._payload += 1
                    node.append(self._payload, 1)
            self.after(200, self._propose_until_acknowledged, first_payload)

    def _has_acknowledged(self, first_payload: int) -> bool:
        return max(self.checks.acknowledged_payloads, default=0) >= first_payload

    def _is_recovered(self, first_payload: int) -> bool:
        end = self.checks.committed_end
        return self._has_acknowledged(first_payload) and all(
            node.replica is not None and node.applied and node.applied[-1].end_offset == end
            for node in self.nodes.values()
        )

    # What fails.

    def restart(self, node: RaftNode) -> None:
        if node.replica is None:
            node.start()

    def crash(self, node: RaftNode, down_ms: int | None = None) -> None:
        self.counts["crashes"] += 1
        node.crash()
        self.after(down_ms or self.random.randint(10, 3_000), self.restart, node)

    def stop(self, node: RaftNode) -> None:
        """A node's shutdown has ended; it comes back."""
        self.crash(node, 500)

    def _heal(self) -> None:
        self.is_faulty = False
        self.network.heal()
        for node in self.nodes.values():
            node.paused_until = self.now
            node.disk_delay_ms = 5
            node.crash_after_actions = None
            if node.replica is None:
                self.restart(node)

    def _fault(self) -> None:
        if not self.is_faulty:
            return
        changes = self.change_weight
        faults = [
            *[self._crash_one] * 4,
            *[self._crash_between_actions] * 3,
            *[self._partition] * 4,
            *[self._cut_one_way] * 2,
            *[self._mend_network] * 4,
            self._bad_network,
            self._pause,
            self._slow_disk,
            *[self._snapshot] * 2,
            self._resign,
            self._shut_down,
            *[self._administrate] * changes,
            *[self._wipe] * (changes // 4),
        ]
        self.random.choice(faults)()
        self.after(self.random.randint(20, self.longest_calm_ms), self._fault)

    def _some_node(self) -> RaftNode:
        leaders = [node for node in self.nodes.values() if node.leads]
        if leaders and self.random.random() < 0.4:
            return self.random.choice(leaders)
        return self.random.choice(list(self.nodes.values()))

    def _crash_one(self) -> None:
        node = self._some_node()
        if node.replica is not None:
            self.crash(node)

    def _crash_between_actions(self) -> None:
        self._some_node().crash_after_actions = self.random.randint(0, 6)

    def _partition(self) -> None:
        self.counts["partitions"] += 1
        ids = list(self.nodes)
        group = {self._some_node().node_id}
        group |= {node_id for node_id in ids if self.random.random() < 0.3}
        self.network.cut = {
            (a, b) for a in ids for b in ids if a != b and (a in group) != (b in group)
        }

    def _cut_one_way(self) -> None:
        self.counts["one-way cuts"] += 1
        source = self._some_node().node_id
        targets = [n for n in self.nodes if n != source and self.random.random() < 0.7]
        if self.random.random() < 0.5:
            self.network.cut |= {(source, target) for target in targets}
        else:
            self.network.cut |= {(target, source) for target in targets}

    def _mend_network(self) -> None:
        self.network.heal()

    def _bad_network(self) -> None:
        self.network.loss_rate = self.random.choice([0.05, 0.3])
        self.network.duplicate_rate = 0.2
        self.network.slow_rate = self.random.choice([0.0, 0.1])

    def _pause(self) -> None:
        self.counts["pauses"] += 1
        self._some_node().paused_until = self.now + self.random.randint(100, 4_000)

    def _slow_disk(self) -> None:
        self._some_node().disk_delay_ms = self.random.choice([5, 200, 2_500])

    def granted_vote(self, node: RaftNode) -> None:
        """A voter may crash just after its vote was sent."""
        if self.is_faulty and self.random.random() < self.crash_after_vote_rate:
            self.crash(node, self.random.randint(1, 30))

    def _snapshot(self) -> None:
        node = self._some_node()
        if node.replica is not None and self.now >= node.paused_until:
            self.counts["snapshots"] += 1
            node.take_snapshot(is_log_start=self.random.random() < 0.7)

    def _resign(self) -> None:
        node = self._some_node()
        if node.replica is not None:
            node.handle(ResignationRequested(node.core.state.epoch))

    def _shut_down(self) -> None:
        self.counts["shutdowns"] += 1
        self._some_node().shut_down()

    def _administrate(self) -> None:
        self.administrator.act()

    def _wipe(self) -> None:
        """Replace a disk, if the remaining voters are a majority whatever set of them counts."""
        node = self._some_node()
        voter_sets = [
            other.core.history.last_voters
            for other in self.nodes.values()
            if other.replica is not None
        ]
        if len(voter_sets) < len(self.nodes) or len(set(voter_sets)) != 1:
            return
        voters = voter_sets[0]
        if any(other.core.history.kraft_version == 0 for other in self.nodes.values()):
            return
        dead = sum(self.is_wiped(key) for key in voters.keys) + voters.is_voter(node.key)
        if dead and dead > (len(voters) - 1) // 2:
            return
        self.counts["wiped disks"] += 1
        self.crash(node)
        node.wipe()

    def describe(self) -> str:
        lines = [f"seed {self.seed}, {self.now} ms, committed to {self.checks.committed_end}"]
        for node in self.nodes.values():
            if node.replica is None:
                lines.append(f"node {node.node_id}: down")
                continue
            core = node.core
            lines.append(
                f"node {node.node_id} {core.state.name} epoch {core.state.epoch}"
                f" leader {core.state.leader_id} {core.log.end} synced {core.log.synced_offset}"
                f" hw {core.high_watermark} {core.history.last_voters} voter {core.is_voter}"
            )
        return "\n".join(lines)
