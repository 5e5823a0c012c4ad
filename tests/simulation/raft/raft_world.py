"""A quorum of simulated replicas under faults, from one seed, in virtual time.

    world = RaftWorld(seed); world.run()

First comes a time of faults (raft_faults.py): partitions of one or both directions, lost, late,
repeated and reordered messages, crashes between any two actions that lose unsynced writes, paused
nodes, slow and failing disks, skewed clocks, resignations, shutdowns, snapshots; with dynamic
voters also wiped disks and changes of the voters. Then the faults end, and the quorum must work
again within a bounded time (raft_recovery.py). RaftChecks and RaftProperties hold at every moment.
"""

from __future__ import annotations

import heapq
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

from tests.simulation.raft.raft_addresses import endpoints_of
from tests.simulation.raft.raft_administrator import RaftAdministrator
from tests.simulation.raft.raft_checks import RaftChecks
from tests.simulation.raft.raft_clients import RaftClients
from tests.simulation.raft.raft_disk import RaftSnapshot, formatted_controls
from tests.simulation.raft.raft_faults import FAULTS_MS, RaftFaults
from tests.simulation.raft.raft_network import RaftNetwork
from tests.simulation.raft.raft_node import RaftNode
from tests.simulation.raft.raft_properties import RaftProperties
from tests.simulation.raft.raft_recovery import RaftRecovery
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.codecs.records.control import Voter
from wirebroker.coordinator.raft.model.log_point import FORMATTED_SNAPSHOT
from wirebroker.coordinator.raft.model.quorum_settings import QuorumSettings
from wirebroker.coordinator.raft.model.replica_key import ReplicaKey
from wirebroker.coordinator.raft.model.voter_set import VoterSet

if TYPE_CHECKING:
    from collections.abc import Callable

PROPERTIES_EVERY_MS = 1_000


class RaftWorld:
    """One schedule.

    Attributes:
        node_ids: Controllers, voters or not. Brokers (`broker_ids`) only observe.
        is_dynamic: Whether the voters are in the log from the start (kraft.version 1).
    """

    cluster_id = "simulated"

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.now = 0
        self._events: list[tuple[int, int, Callable, tuple]] = []
        self._event_count = 0
        self._key_count = 0
        self.counts: Counter[str] = Counter()
        voter_count = self.random.choice([1, 3, 3, 3, 5])
        spare_count = self.random.randint(0, 2)
        self.voter_ids = list(range(1, voter_count + 1))
        spare_ids = list(range(voter_count + 1, voter_count + spare_count + 1))
        self.broker_ids = [100 + i for i in range(self.random.randint(0, 2))]
        self.node_ids = self.voter_ids + spare_ids
        self.is_dynamic = self.random.random() < 0.6
        self.election_timeout_ms = self.random.choice([1_000, 1_000, 200, 50])
        self.fetch_max_bytes = self.random.choice([100, 1_000])
        self.network = RaftNetwork(self)
        self.checks = RaftChecks(self)
        self.properties = RaftProperties(self)
        self.administrator = RaftAdministrator(self)
        self.clients = RaftClients(self)
        self.faults = RaftFaults(self)
        self.recovery = RaftRecovery(self)
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
        """Run the schedule.

        Raises:
            AssertionError: A property does not hold.
        """
        for node in self.nodes.values():
            self.after(self.random.randint(0, 500), self.restart, node)
        self.after(1_000, self.clients.propose)
        self.after(1_000, self.faults.act)
        self.after(PROPERTIES_EVERY_MS, self._check_properties)
        self.run_until(lambda: self.now >= FAULTS_MS)
        self.faults.end()
        self.recovery.run()
        self.properties.check()
        self.checks.at_the_end(list(self.nodes.values()))

    def run_until(self, is_over: Callable[[], bool]) -> None:
        while not is_over():
            self.now, _, call, arguments = heapq.heappop(self._events)
            call(*arguments)

    def _check_properties(self) -> None:
        self.properties.check()
        self.after(PROPERTIES_EVERY_MS, self._check_properties)

    def restart(self, node: RaftNode) -> None:
        if node.replica is None:
            node.start()

    def describe(self) -> str:
        lines = [f"seed {self.seed}, {self.now} ms, committed to {self.checks.committed_end}"]
        lines += [node.describe() for node in self.nodes.values()]
        return "\n".join(lines)
