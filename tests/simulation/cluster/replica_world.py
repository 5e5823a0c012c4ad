"""Three to five nodes with replicas in one process: replication keeps its guarantees under faults.

weather   links break or are slow, pairs of nodes cannot reach each other, metadata is late;
          requests to the controller and their responses are lost, repeated or much too late;
          disks are slow, clocks are wrong and drift
deaths    nodes are killed between any two steps, and lose unsynced data that other in-sync
          replicas have; or they are frozen and continue with an outdated view
promises  records acknowledged with acks=all, or read by a consumer, are in every replica in the
          end, at their offset, once; all replicas are equal; each epoch has one leader
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextvars import Context
from random import Random
from typing import TYPE_CHECKING, Any

from tests.simulation.cluster.replica_clients import IdempotentWriter, Reader, values_at
from tests.simulation.cluster.stormy_cluster import StormyCluster
from tests.simulation.machine.crash_states import CrashKind, crash
from tests.simulation.machine.disk import Disk
from tests.simulation.machine.loop import Process, SimulatedLoop, SkewedClock
from tests.simulation.machine.simulated_files import SimulatedFiles
from tests.support.replicas.broker_cluster import Member, stored
from wirebroker.base.clock import pause
from wirebroker.codecs.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Collection, Coroutine, Mapping

    from wirebroker.coordinator.controller.image.cluster_image import PartitionImage

_PARTITIONS = 2
_CALM_S = 240.0
# Share of requests that go to any replica, which may still act as leader.
_OLD_METADATA = 0.1


class ReplicaWorld:
    """One schedule; `run` raises if a guarantee is violated.

    Attributes:
        topic: The topic whose leaders change, and whose replicas are compared in the end.
        further_topics: Other such topics.
        settings: Further configs of the nodes.
        storm_s: The duration of the faults.
    """

    topic = "t"
    further_topics: tuple[str, ...] = ()
    member_kind: type[Member] = Member
    settings: Mapping[str, str] = {}
    storm_s = 20.0

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.loop = SimulatedLoop(self.random)
        self.processes: dict[int, Process] = {}
        self.disks: dict[int, Disk] = {}
        self.blocked: set[frozenset[int]] = set()
        self.break_rate = self.random.choice([0.0, 0.002, 0.02])
        self.lost_rate = self.random.choice([0.0, 0.1])
        self.slowest_s = self.random.choice([0.005, 0.05, 0.4])
        self.doubled_rate = self.random.choice([0.0, 0.2])
        self.late_rate = self.random.choice([0.0, 0.8])
        self.upset_rate = self.random.choice([0.0, 0.5])
        # Whether nodes outside the ISRs die first and lose unsynced data.
        self.is_hard_on_outsiders = False
        self.loop.slow_jobs = self.random.choice([0.03, 0.03, 0.3])
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.deaths = 0
        self.freezes = 0
        self.node_ids = range(1, 1 + self.random.choice([3, 3, 4, 5]))
        self.clocks = {
            node_id: SkewedClock(
                self.loop,
                rate=self.random.choice([1.0, 1.0, 0.7, 1.4]),
                ahead_ms=self.random.choice([0, 0, -86_400_000, 3_600_000]),
            )
            for node_id in self.node_ids
        }
        self.readers = [Reader(self, index) for index in range(_PARTITIONS)]
        self.cluster = StormyCluster(self, self.node_ids)
        self._files: dict[int, SimulatedFiles] = {}
        # The current fault of a node; one at a time.
        self._victim: asyncio.Future[None] = self.loop.create_future()
        self._victim.set_result(None)

    def totals(self) -> Counter[str]:
        """Return the counts of the schedule."""
        return Counter(
            {
                "records acknowledged": len(self.acknowledged),
                "deaths": self.deaths,
                "freezes": self.freezes,
            }
        )

    # -- environment of nodes ------------------------------------------------------------------

    def delay_s(self) -> float:
        return self.slowest_s * self.random.random() ** 3

    def may_pass(self, first: int, second: int) -> bool:
        return frozenset((first, second)) not in self.blocked

    def new_files(self, node_id: int) -> SimulatedFiles:
        process = self.processes[node_id]
        disk = self.disks.setdefault(node_id, Disk())
        files = self._files[node_id] = SimulatedFiles(disk, self.clocks[node_id], process.kill)
        # Before the coroutines are closed: their `finally` blocks must not write.
        process.on_death = files.die
        return files

    def hear(self, process: Process, member: Member) -> None:
        process.spawn(member.hear())

    # -- the schedule --------------------------------------------------------------------------

    def run(self) -> None:
        failures: list[BaseException] = []

        def on_error(_loop: object, context: dict[str, Any]) -> None:
            failures.append(context.get("exception") or AssertionError(context["message"]))

        self.loop.set_exception_handler(on_error)
        asyncio.set_event_loop(None)
        try:
            self.loop.run_until_complete(self._run())
        finally:
            for process in self.processes.values():
                process.kill()
            self.loop.close()
        if failures:
            raise failures[0]

    async def _run(self) -> None:
        for node_id in self.node_ids:
            await self._start(node_id)
        self._create_topics()
        clients = [self.loop.create_task(client) for client in self._clients()]
        while self.loop.time() < self.storm_s:
            await pause(self.random.uniform(0.1, 2.0))
            self._misfortune()
        await asyncio.gather(*clients, self._victim)
        await self._calm()
        # A session of a silent member may have ended since, which appends records.
        await self._rest()
        self._check()

    def topics(self) -> tuple[str, ...]:
        return (self.topic, *self.further_topics)

    def partitions(self) -> list[tuple[str, int]]:
        """Return the partitions whose leaders change."""
        return [(topic, index) for topic in self.topics() for index in range(_PARTITIONS)]

    def assignments(self) -> list[tuple[int, ...]]:
        ids = list(self.node_ids)
        return [tuple(self.random.sample(ids, 3)) for _ in range(_PARTITIONS)]

    def _create_topics(self) -> None:
        self.cluster.create_topic(*self.assignments())

    def _clients(self) -> list[Coroutine[Any, Any, None]]:
        return [
            client
            for index in range(_PARTITIONS)
            for client in (
                self._write(index),
                IdempotentWriter(self, index).run(),
                self.readers[index].run(),
            )
        ]

    async def _start(self, node_id: int) -> None:
        while True:
            process = self.processes[node_id] = Process(self.loop, f"node {node_id}")
            started = process.spawn(self.cluster.start(node_id))
            await asyncio.wait([started])
            error = started.exception()
            if error is None:
                return
            if not isinstance(error, KafkaError):
                raise error
            self._bury(node_id)
            await pause(0.2)
            if node_id in self.cluster.image.brokers:
                self.cluster.fence(node_id)  # as when its session expires

    def _bury(self, node_id: int) -> None:
        self.processes.pop(node_id).kill()
        self.disks[node_id].locks.clear()
        self.cluster.members.pop(node_id, None)
        peer = self.cluster.peer(node_id)
        peer.refuses = ConnectionRefusedError("it is dead")
        links, peer.links = peer.links, []
        for link in links:
            link.drop()

    def _misfortune(self) -> None:
        choice = self.random.random()
        if choice < 0.4 and self._victim.done():
            outsiders = self._outsiders() if self.is_hard_on_outsiders else []
            befall = self._die if choice < 0.25 or outsiders else self._freeze
            victim = self.random.choice(outsiders or list(self.node_ids))
            self._victim = self.loop.create_task(befall(victim))
        elif choice < 0.7:
            self.blocked.add(frozenset(self.random.sample(list(self.node_ids), 2)))
        elif choice < 0.85:
            self.blocked.clear()
        else:
            topic, index = self.random.choice(self.partitions())
            state = self.state(index, topic)
            able = [replica_id for replica_id in state.isr if replica_id in self.cluster.members]
            if able:
                self.cluster.elect(self.random.choice(able), index=index, topic=topic)

    def _outsiders(self) -> list[int]:
        states = [self.state(index, topic) for topic, index in self.partitions()]
        return [
            node_id
            for node_id in self.node_ids
            if all(node_id not in state.isr for state in states)
        ]

    async def _die(self, node_id: int) -> None:
        self.deaths += 1
        self._bury(node_id)
        await pause(self.random.choice([0.0, 0.5, 3.0]))
        self.cluster.fence(node_id)
        is_outside = node_id in self._outsiders()
        if is_outside and (self.is_hard_on_outsiders or self.random.random() < 0.5):
            self.disks[node_id] = crash(self.disks[node_id], CrashKind.SYNCED, self.random)
        await pause(self.random.choice([0.0, 0.5, 5.0]))
        await self._start(node_id)

    def note_states(self) -> None:
        """Handle new metadata."""

    def upset(self, topic: str, index: int, joined: Collection[int]) -> None:
        """Perhaps elect a node that has just joined the ISR."""
        if joined and not self.is_over and self.random.random() < self.upset_rate:
            successor = self.random.choice(sorted(joined))
            self.loop.call_soon(self._elect, successor, topic, index, context=Context())

    def _elect(self, node_id: int, topic: str, index: int) -> None:
        state = self.state(index, topic)
        if node_id in state.isr and node_id != state.leader and node_id in self.cluster.members:
            self.cluster.elect(node_id, index=index, topic=topic)

    async def _freeze(self, node_id: int) -> None:
        self.freezes += 1
        process, member = self.processes[node_id], self.cluster.members[node_id]
        process.stop()
        await pause(self.random.choice([0.5, 3.0]))
        self.cluster.fence(node_id)
        await pause(self.random.choice([0.5, 5.0]))
        process.go_on()
        unfenced = False
        while not unfenced:
            heartbeat = process.spawn(member.lifecycle.unfence())
            await asyncio.wait([heartbeat])
            error = heartbeat.exception()
            assert error is None or isinstance(error, KafkaError), error
            unfenced = error is None

    @property
    def is_over(self) -> bool:
        return self.loop.time() >= self.storm_s

    def state(self, index: int, topic: str | None = None) -> PartitionImage:
        return self.cluster.state(index, topic or self.topic)

    def taken_for_leader(self, index: int) -> Member | None:
        """Return the leader, or any replica for a client with old metadata."""
        if self.random.random() < _OLD_METADATA:
            return self._replica(index, self.random.choice(list(self.node_ids)))
        return self.leader(index)

    def leader(self, index: int) -> Member | None:
        """Return the leader in the metadata, if it is alive and knows the partition."""
        return self._replica(index, self.state(index).leader)

    def _replica(self, index: int, node_id: int) -> Member | None:
        member = self.cluster.members.get(node_id)
        if member is None or not member.replicas.find(self.topic, b"", by_id=False)[0]:
            return None
        return member

    async def _write(self, index: int) -> None:
        number = 0
        while not self.is_over:
            await pause(self.random.uniform(0.0, 0.2))
            member = self.taken_for_leader(index)
            if member is None:
                continue
            process = self.processes[member.node_id]
            number += 1
            value = b"%d of %d" % (number, index)
            task = process.spawn(member.produce(value, index=index, timeout_ms=3_000))
            task.add_done_callback(self.note(index, value))
            await asyncio.wait([task], timeout=self.random.choice([0.0, 4.0]))

    def note(self, index: int, value: bytes) -> Any:
        def note(task: asyncio.Task[int]) -> None:
            if not task.cancelled() and task.exception() is None:
                key = (index, task.result())
                before = self.acknowledged.get(key, value)
                assert before == value, f"offset {key} was given out twice"
                self.acknowledged[key] = value

        return note

    # -- the end ---------------------------------------------------------------------------------

    def end_faults(self) -> None:
        self.blocked.clear()
        self.break_rate = self.lost_rate = 0.0
        self.slowest_s = 0.005

    async def _calm(self) -> None:
        """End all network faults, and let all clients finish."""
        self.end_faults()
        await self._rest()

    async def _rest(self) -> None:
        """Wait until each replica has every record.

        No record is appended between the return and the caller's next await.
        """
        deadline = self.loop.time() + _CALM_S
        while not self._is_at_rest():
            assert self.loop.time() < deadline, self._why()
            await pause(0.5)

    def _replicas(self, index: int, topic: str | None = None) -> list[Any]:
        topic = topic or self.topic
        replicas = self.state(index, topic).replicas
        return [self.cluster[node_id].partition(topic, index) for node_id in replicas]

    def _is_at_rest(self) -> bool:
        for topic, index in self.partitions():
            if len(self.state(index, topic).isr) < 3:
                return False
            logs = [replica.log for replica in self._replicas(index, topic)]
            if len({log.log_end_offset for log in logs}) > 1:
                return False
            if any(log.high_watermark < log.log_end_offset for log in logs):
                return False
        return True

    def _why(self) -> str:
        return "; ".join(
            f"{topic} {self.state(index, topic)}: {[_bounds(each) for each in replicas]}"
            for topic, index in self.partitions()
            for replicas in [self._replicas(index, topic)]
        )

    def _check(self) -> None:
        for topic, index in self.partitions():
            replicas = self._replicas(index, topic)
            first = stored(replicas[0])
            for replica in replicas:
                replica.check()
                replica.log.check()
                assert stored(replica) == first, f"replicas of {topic} differ"
            if topic == self.topic:
                self._check_stored(index, first)

    def _check_stored(self, index: int, batches: bytes) -> None:
        self._check_records(index, values_at(batches))

    def _check_records(self, index: int, values: dict[int, bytes | None]) -> None:
        assert len(set(values.values())) == len(values), "a record is there twice"
        for offset, value in self.readers[index].seen.items():
            assert values.get(offset) == value, f"offset {offset}, which was read, has changed"
        for (partition_index, offset), value in self.acknowledged.items():
            if partition_index == index:
                assert values.get(offset) == value, f"offset {offset} is lost"


def _bounds(replica: Any) -> tuple[int, int]:
    return replica.log.log_end_offset, replica.log.high_watermark
