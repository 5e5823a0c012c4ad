"""A simulated replica: performs the machine's actions on a simulated disk and network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.raft.raft_addresses import LISTENER, bootstrap_of, endpoints_of
from tests.simulation.raft.raft_disk import RaftDisk, RaftSnapshot
from tests.simulation.raft.raft_network import Arrival
from wirebroker.codecs.errors import KafkaError
from wirebroker.coordinator.raft.model.log_point import LogPoint, RaftBatch
from wirebroker.coordinator.raft.model.voter_set import VoterSet
from wirebroker.coordinator.raft.protocol.actions import (
    Append,
    DiscardSnapshot,
    HighWatermarkAdvanced,
    InstallSnapshot,
    LeaderChanged,
    Persist,
    Respond,
    Send,
    ShutdownFinished,
    Sync,
    Truncate,
    Violation,
    WriteSnapshot,
)
from wirebroker.coordinator.raft.protocol.events import (
    LogSynced,
    ShutdownRequested,
    SnapshotCreated,
    SnapshotInstalled,
    Tick,
)
from wirebroker.coordinator.raft.protocol.messages import VoteRequest, VoteResponse
from wirebroker.coordinator.raft.raft_replica import RaftReplica
from wirebroker.coordinator.raft.states.epoch_states import NEVER
from wirebroker.coordinator.raft.states.leader_state import LeaderState
from wirebroker.coordinator.raft.states.replica_core import Identity

if TYPE_CHECKING:
    from tests.simulation.raft.raft_world import RaftWorld
    from wirebroker.coordinator.raft.protocol.actions import RaftAction
    from wirebroker.coordinator.raft.protocol.events import RaftEvent
    from wirebroker.coordinator.raft.raft_replica import RaftStep


class RaftNode:
    """One node; its directory id changes when its disk is wiped."""

    def __init__(self, world: RaftWorld, node_id: int, static_voters: VoterSet) -> None:
        self.world = world
        self.node_id = node_id
        self.static_voters = static_voters
        self.key = world.new_key(node_id)
        self.disk = RaftDisk(static_voters)
        self.replica: RaftReplica | None = None
        self.life = 0
        self.applied: list[RaftBatch] = []
        self.pending: list[tuple[int, int, int]] = []  # epoch, end offset, payload
        self.wake_at = -1
        self.paused_until = 0
        self.crash_after_actions: int | None = None
        self.disk_delay_ms = 5
        random = world.random
        self.clock_offset = random.randint(1_000, 1_000_000)
        self.clock_rate = random.choice([1.0, 1.0, random.uniform(0.8, 1.25)])

    @property
    def now_ms(self) -> int:
        return self.clock_offset + int(self.world.now * self.clock_rate)

    @property
    def core(self):
        assert self.replica is not None
        return self.replica.core

    @property
    def leads(self) -> bool:
        return self.replica is not None and isinstance(self.core.state, LeaderState)

    def start(self) -> None:
        assert self.replica is None
        log, history, election, self.applied = self.disk.load()
        world = self.world
        self.replica = RaftReplica(
            Identity(
                self.key,
                world.cluster_id,
                endpoints_of(self.node_id),
                LISTENER,
                bootstrap_of(world.node_ids),
                is_voter_capable=self.node_id not in world.broker_ids,
            ),
            settings=world.settings(),
            log=log,
            history=history,
            election=election,
            random=world.random,
        )
        self.pending.clear()
        self._perform(self.replica.start(self.now_ms))

    def crash(self) -> None:
        """Stop at once; unsynced writes may be lost."""
        if self.replica is None:
            return
        self.replica = None
        self.life += 1
        self.wake_at = -1
        self.crash_after_actions = None
        self.disk.crash(self.world.random)

    def wipe(self) -> None:
        """Replace the disk; the node is another replica from now on.

        It is configured with bootstrap servers. With the former static voters, replaced nodes would
        count as a majority by themselves, in Kafka as well.
        """
        assert self.replica is None
        self.static_voters = VoterSet()
        self.key = self.world.new_key(self.node_id)
        self.disk = RaftDisk(self.static_voters)

    def handle(self, event: RaftEvent) -> None:
        if self.replica is None:
            return
        if self.world.now < self.paused_until:
            self.world.at(self.paused_until, self._handle_in_life, self.life, event)
            return
        self._perform(self.replica.step(event, self.now_ms))

    def _handle_in_life(self, life: int, event: RaftEvent) -> None:
        if life == self.life:
            self.handle(event)

    def append(self, payload: int, count: int) -> None:
        assert self.replica is not None
        epoch = self.core.state.epoch
        try:
            end_offset = self.core.log.end_offset
            batch = RaftBatch(end_offset, end_offset + count, epoch, (), payload)
            step = self.replica.append(epoch, [batch], self.now_ms)
        except KafkaError:
            return
        self.pending.append((epoch, self.core.log.end_offset, payload))
        self._perform(step)

    def upgrade(self) -> None:
        assert self.replica is not None
        try:
            step = self.replica.upgrade(self.core.state.epoch, 1, self.now_ms)
        except KafkaError:
            return
        self._perform(step)

    def take_snapshot(self, *, is_log_start: bool) -> None:
        assert self.replica is not None
        hw = self.core.high_watermark or 0
        last = next((b for b in self.disk.contents.batches if b.end_offset == hw), None)
        if last is None or self.core.installing is not None:
            return
        point = LogPoint(last.epoch, hw)
        controls = self.replica.snapshot_controls(hw)
        try:
            size = self.disk.add_snapshot(RaftSnapshot(point, controls, tuple(self.applied)))
            if is_log_start:
                self.disk.write("delete", point)
        except OSError:
            self.world.faults.disk_failed(self)
            return
        self.handle(SnapshotCreated(point, size, is_log_start))

    def shut_down(self) -> None:
        self.handle(ShutdownRequested(1_000))

    def _perform(self, step: RaftStep) -> None:
        for action in step.actions:
            if self.crash_after_actions is not None:
                self.crash_after_actions -= 1
                if self.crash_after_actions < 0:
                    self.world.faults.crash(self)
                    return
            try:
                self._do(action)
            except OSError:
                self.world.faults.disk_failed(self)
            if self.replica is None:
                return
        if step.wake_ms < NEVER and step.wake_ms != self.wake_at:
            self.wake_at = step.wake_ms
            true_ms = (step.wake_ms - self.clock_offset) / self.clock_rate
            at = max(self.world.now, int(true_ms) + 1)
            self.world.at(at, self._wake, self.life, step.wake_ms)

    def _wake(self, life: int, wake_ms: int) -> None:
        if life == self.life and wake_ms == self.wake_at:
            self.wake_at = -1
            self.handle(Tick())

    def _do(self, action: RaftAction) -> None:
        if isinstance(
            action, Append | Truncate | Sync | WriteSnapshot | DiscardSnapshot | InstallSnapshot
        ):
            self._change_log(action)
            return
        world = self.world
        match action:
            case Persist(election, data_version):
                self.disk.persist(election, data_version)
                world.checks.persisted(self, election)
            case Send(request_id, destination, request):
                world.network.send(self, request_id, destination, request)
            case Respond(token, response):
                world.network.respond(self, token, self.disk.filled(response))
                if isinstance(response, VoteResponse) and response.is_granted:
                    assert isinstance(token, Arrival)
                    assert isinstance(token.request, VoteRequest)
                    world.properties.granted(self, token.request)
                    if not token.request.is_pre_vote:
                        world.faults.may_crash(self, world.faults.crash_after_vote_rate)
            case HighWatermarkAdvanced(high_watermark):
                self._apply(high_watermark)
            case LeaderChanged(leader_id, epoch, start_offset):
                assert (leader_id == self.node_id) == (start_offset is not None)
                if start_offset is not None:
                    world.checks.leads(self, epoch)
            case ShutdownFinished():
                world.faults.crash(self, 500)
            case Violation(text):
                raise AssertionError(f"node {self.node_id}: {text}")

    def _change_log(self, action) -> None:
        world = self.world
        match action:
            case Append(batches):
                for batch in batches:
                    self.disk.write("append", batch)
                    world.checks.appended(self, batch)
            case Truncate(end_offset):
                self.disk.write("truncate", end_offset)
            case Sync(point):
                delay_ms = world.random.randint(0, self.disk_delay_ms)
                world.after(delay_ms, self._synced, self.life, self.disk.begin_sync(), point)
            case WriteSnapshot(point, position, data):
                self.disk.write_download(point, position, data)
            case DiscardSnapshot(point):
                self.disk.discard_download(point)
            case InstallSnapshot(point):
                world.after(world.random.randint(0, 300), self._install, self.life, point)

    def _synced(self, life: int, count: int, point: LogPoint) -> None:
        if life != self.life or self.replica is None:
            return
        try:
            self.disk.end_sync(count)
        except OSError:
            self.world.faults.disk_failed(self)
        else:
            self.handle(LogSynced(point))

    def _install(self, life: int, point: LogPoint) -> None:
        """Store the snapshot, then replace the log; the node may crash between the two."""
        if life != self.life or self.replica is None:
            return
        snapshot = self.disk.finish_download(point)
        self.world.checks.installed(snapshot)
        try:
            self.disk.add_snapshot(snapshot)
        except OSError:
            self.world.faults.disk_failed(self)
            return
        if self.world.faults.may_crash(self, 0.2):
            return
        size = self.disk.install(snapshot)
        self.applied = list(snapshot.applied)
        self.handle(SnapshotInstalled(point, size, snapshot.controls))

    def _apply(self, high_watermark: int) -> None:
        applied_end = self.applied[-1].end_offset if self.applied else 0
        for batch in self.disk.contents.batches:
            if applied_end <= batch.base_offset < high_watermark:
                self.world.checks.committed(self, batch)
                self.applied.append(batch)
        for proposal in list(self.pending):
            epoch, end_offset, payload = proposal
            if self.core.state.epoch != epoch or not self.leads:
                self.pending.clear()
                break
            if end_offset <= high_watermark:
                self.pending.remove(proposal)
                self.world.checks.acknowledged(payload)

    def describe(self) -> str:
        if self.replica is None:
            return f"node {self.node_id}: down"
        core = self.core
        return (
            f"node {self.node_id} {core.state.name} epoch {core.state.epoch}"
            f" leader {core.state.leader_id} {core.log.end} synced {core.log.synced_offset}"
            f" hw {core.high_watermark} {core.history.last_voters} voter {core.is_voter}"
        )
