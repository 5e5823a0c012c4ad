"""A simulated broker with a producer, consumers and random faults, all from one seed.

In the storm, the broker is suspended, or killed between steps or in a write and restarted on the
same disk; members are killed, suspended, leave and join; requests are delayed, lost or repeated. In
the calm after it, within a bounded time, every group must be stable with exactly its live members,
and everything processed and committed.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from random import Random
from typing import TYPE_CHECKING, Any

from tests.simulation.broker.broker_errors import BrokerErrors
from tests.simulation.broker.broker_host import BrokerHost
from tests.simulation.clients.member import AGES, FIRST_STATIC_AGE, TOPIC, Habits, Member
from tests.simulation.clients.model import Model
from tests.simulation.machine.loop import Process, SimulatedClock, SimulatedLoop
from tests.simulation.network.link import Exchange, LinkLostError
from tests.simulation.network.network import Network, Weather
from tests.support.harness.seeded_ids import seeded_ids
from tests.support.protocol.requests import PRODUCE_VERSION, produce_request
from tests.support.records.batches import batch
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.config import Config
from wirebroker.coordinator.groups.classic.classic_group import GroupState

if TYPE_CHECKING:
    from collections.abc import Callable

CALM_LIMIT_S = 300.0
# By then, requests that outlive their links have arrived.
CALM_BEFORE_CHECK_S = 13.0
_TAIL = 60


class SimulationError(AssertionError):
    """A violated property; the notes say how to reproduce it."""


# Maximum length of a schedule in simulated time; a hundred seconds is typical.
_LONGEST_S = 300.0


class World:
    """One simulated run.

    Attributes:
        seconds_to_rest: The time from the end of the storm until all was done.
        model: The expected state, and counts of events.
    """

    # Probability that a static member's previous process is killed before its restart.
    FORMER_ARE_KILLED = 0.7
    DURABILITY = "os"
    # Fault levels; the seed chooses one of each.
    SLOWEST_S: tuple[float, ...] = (0.02, 0.5, 6.0)
    LINGERS: tuple[float, ...] = (0.0, 0.03)
    # Length of the storm, and the rate of faults.
    STORM_S = (30.0, 150.0)
    STRIKES_PER_S = 0.4

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.loop = SimulatedLoop(self.random)
        self.clock = SimulatedClock(self.loop)
        self.model = Model()
        self.network = Network(self.loop, self.random, self)
        self.seconds_to_rest = 0
        self._trace = hashlib.sha256()
        self._tail: deque[str] = deque(maxlen=_TAIL)
        self._failure: BaseException | None = None
        self._number = 0
        self._members: dict[Member, None] = {}
        self._ends: dict[int, int] = {}
        random = self.random
        self._partition_count = random.randint(1, 5)
        self._groups = ["g", "h"][: random.randint(1, 2)]
        self._topic_id = b""
        config = Config(
            {
                "log.dirs": "/data",
                "listeners": "PLAINTEXT://127.0.0.1:9092",
                "wirebroker.durability": self.DURABILITY,
                "connections.max.idle.ms": str(random.choice([30_000, 600_000])),
                "auto.create.topics.enable": "false",
                "offsets.topic.num.partitions": str(random.randint(1, 3)),
                "offsets.topic.replication.factor": "1",
                "transaction.state.log.num.partitions": "2",
                "transaction.state.log.replication.factor": "1",
                "transaction.state.log.min.isr": "1",
                "group.initial.rebalance.delay.ms": str(random.choice([0, 500, 3_000])),
                "group.min.session.timeout.ms": "1000",
                **self._settings(),
            }
        )
        self.host = BrokerHost(self.network, config, self.note)

    def _settings(self) -> dict[str, str]:
        """Return further settings of the broker."""
        return {}

    @property
    def trace(self) -> str:
        return self._trace.hexdigest()

    # -- network callbacks -------------------------------------------------------------------

    def note(self, line: str, data: bytes = b"") -> None:
        line = f"{self.loop.time():.6f} {line} {hashlib.sha256(data).hexdigest()[:8]}"
        self._trace.update(line.encode())
        self._tail.append(line)

    def admits(self, exchange: Exchange) -> bool:
        del exchange
        return True

    def served(self, exchange: Exchange) -> None:
        self.model.count("requests")
        if exchange.is_stale:
            self.model.count("stale requests")
        self.model.served(exchange)

    def answered(self, exchange: Exchange, answer: Any) -> None:
        try:
            self.model.answered(exchange, answer)
            self.host.check_groups()
        except AssertionError as error:
            self.failed(error)

    def failed(self, error: BaseException) -> None:
        if self._failure is None:
            self._failure = error
            self.loop.stop()

    # -- running -----------------------------------------------------------------------------

    def run(self) -> None:
        """Run the schedule and check it.

        Raises:
            SimulationError: A property does not hold.
        """
        errors = BrokerErrors(self.loop, self.failed)
        main = self.loop.create_task(self._run_to_rest())
        main.add_done_callback(lambda _: self.loop.stop())
        try:
            with seeded_ids(self.random):
                self.loop.run_forever()
            if self._failure is None and main.done():
                self._failure = main.exception()
        except Exception as error:  # noqa: BLE001 - told with the seed
            self._failure = self._failure or error
        finally:
            errors.close()
            self._end(main)
        if self._failure is not None:
            simulation_error = SimulationError(f"seed {self.seed}: {self._failure!r}")
            simulation_error.add_note(
                f"repeat it: pytest tests/simulation --seed {self.seed} --budget-scale 0"
            )
            simulation_error.add_note("\n".join(self._tail))
            raise simulation_error from self._failure

    def _end(self, main: asyncio.Task[None]) -> None:
        main._log_destroy_pending = False  # type: ignore[attr-defined]
        for member in list(self._members):
            member.process.kill()
        self.host.process.kill()
        self.loop.close()

    async def _run_to_rest(self) -> None:
        """Run the schedule; fail if a task waits forever."""
        async with asyncio.timeout(_LONGEST_S):
            await self._run()

    async def _run(self) -> None:
        random = self.random
        await self.host.start()
        await self._prepare()
        self._topic_id = await self._create(TOPIC, self._partition_count)
        producer = Process(self.loop, "producer")
        self._watch(producer.spawn(self._produce(producer)))
        self._start_clients()
        self.network.weather = Weather(
            slowest_s=random.choice(self.SLOWEST_S),
            request_lost=random.choice([0.0, 0.02]),
            answer_lost=random.choice([0.0, 0.02]),
            lingers=random.choice(self.LINGERS),
        )
        storm_ends = self.loop.time() + random.uniform(*self.STORM_S)
        while self.loop.time() < storm_ends:
            await pause(random.expovariate(self.STRIKES_PER_S))
            await self._strike()
        producer.kill()
        self.note("! calm")
        self.network.weather = Weather()
        await self._settle()
        self.host.check()

    async def _prepare(self) -> None:
        """Prepare the cluster before the topic is created."""

    def _start_clients(self) -> None:
        for group in self._groups:
            for _ in range(self.random.randint(1, 4)):
                self._start_member(group)

    # -- the storm ---------------------------------------------------------------------------

    async def _strike(self) -> None:
        random = self.random
        group = random.choice(self._groups)
        members = [member for member in self._members if member.group == group]
        strikes: list[Callable[[], Any]] = [
            self.host.restart,
            self.host.restart,
            lambda: self._suspend(self.host.process, random.uniform(0, 8)),
            lambda: self._start_member(group) if len(members) < 5 else None,
        ]
        if members:
            member = random.choice(members)
            strikes += [
                lambda: self._suspend(member.process, random.uniform(0, 15)),
                lambda: self._kill_member(member),
                lambda: self._bring_back(member),
                member.tell_to_leave,
            ]
        done = random.choice(strikes)()
        if done is not None:
            await done

    async def _suspend(self, process: Process, seconds: float) -> None:
        if not process.is_stopped:
            self.note(f"! {process.name} is stopped")
            process.stop()
            self.network.later(seconds, process.go_on)

    def _kill_member(self, member: Member) -> None:
        self.note(f"! {member.process.name} is killed")
        self._members.pop(member, None)
        member.process.kill()
        self.network.client_died(member.process)

    def _bring_back(self, member: Member) -> None:
        """Restart a member; a static one keeps its instance id, which may still be in use."""
        if member.habits.instance is None or self.random.random() < self.FORMER_ARE_KILLED:
            self._kill_member(member)
        self._start_member(member.group, member.habits)

    # -- calm --------------------------------------------------------------------------------

    async def _settle(self) -> None:
        await pause(CALM_BEFORE_CHECK_S)
        for group in self._groups:
            # All others may be leaving.
            self._start_member(group)
        began = self.loop.time()
        await self._append_to_all()
        await self._until_rest(self._restless, since=began)

    async def _append_to_all(self) -> None:
        producer = Process(self.loop, "last producer")
        for partition in range(self._partition_count):
            await producer.spawn(self._append(producer, partition))

    async def _until_rest(self, restless: Callable[[], str | None], *, since: float) -> None:
        while (reason := restless()) is not None:
            await pause(0.5)
            assert self.loop.time() - since < CALM_LIMIT_S, reason
        self.seconds_to_rest = int(self.loop.time() - since)

    def _restless(self) -> str | None:
        """Return why the world is not at rest yet, or None."""
        for group_id in self._groups:
            members = [member for member in self._members if member.group == group_id]
            candidates = [shard.classic(group_id) for shard in self.host.broker.groups.shards()]
            group = next((candidate for candidate in candidates if candidate is not None), None)
            if group is None or group.state is not GroupState.STABLE:
                return f"{group_id} is {group and group.state}"
            if {member.member_id for member in members} != group.members.keys():
                return f"{group_id} has other members than those that live"
            if any(member.generation != group.generation for member in members):
                return f"{group_id} has members in other generations"
            owned = sorted(partition for member in members for partition in member.owned)
            if owned != list(range(self._partition_count)):
                return f"the members of {group_id} own {owned}"
            for partition, end_offset in self._ends.items():
                if not self.model.has_processed_all(group_id, partition, end_offset):
                    return f"{group_id} has not processed all of {partition}"
        return None

    # -- parts -------------------------------------------------------------------------------

    def _start_member(self, group: str, habits: Habits | None = None) -> None:
        self._number += 1
        process = Process(self.loop, f"{group}{self._number}")
        member = self._new_member(process, group, habits or self._new_habits())
        self._members[member] = None
        task = process.spawn(member.run())
        self._watch(task)
        # It has left or was fenced.
        task.add_done_callback(lambda _: self._members.pop(member, None))

    def _new_member(self, process: Process, group: str, habits: Habits) -> Member:
        return Member(
            process,
            self.network,
            self.model,
            group=group,
            topic_id=self._topic_id,
            partition_count=self._partition_count,
            habits=habits,
        )

    def _new_habits(self) -> Habits:
        random = self.random
        age = random.randrange(len(AGES))
        self._number += 1
        is_static = age >= FIRST_STATIC_AGE and random.random() < 0.3
        return Habits(
            AGES[age],
            session_timeout_ms=random.choice([3_000, 10_000]),
            rebalance_timeout_ms=random.choice([4_000, 15_000]),
            heartbeat_interval_s=random.choice([0.5, 1.0]),
            protocols=random.choice([("range", "roundrobin"), ("roundrobin", "range")]),
            instance=f"instance{self._number}" if is_static else None,
        )

    async def _create(self, name: str, partition_count: int) -> bytes:
        topic = {"name": name, "num_partitions": partition_count, "replication_factor": 1}
        process = Process(self.loop, "admin")
        link = self.network.open(process)
        request = {"topics": [topic], "timeout_ms": 30_000}
        answer = await link.ask(ApiKey.CREATE_TOPICS, 7, request, timeout_s=30)
        assert answer.topics[0].error_code == ErrorCode.NONE
        topic_id: bytes = answer.topics[0].topic_id
        return topic_id

    async def _produce(self, process: Process) -> None:
        while True:
            await pause(self.random.expovariate(3))
            await self._append(process, self.random.randrange(self._partition_count))

    async def _append(self, process: Process, partition: int) -> None:
        """Append a record, retried until it is acknowledged, so it may be stored twice."""
        self._number += 1
        value = f"value {self._number}".encode()
        records = batch(value, timestamp_ms=self.clock.now_ms())
        request = produce_request({(TOPIC, partition): records})
        while True:
            link = self.network.open(process)
            try:
                answer = await link.ask(ApiKey.PRODUCE, PRODUCE_VERSION, request, timeout_s=5)
            except LinkLostError:
                await pause(0.1)
                continue
            link.close()
            if self._is_acknowledged(answer.responses[0].partition_responses[0], value):
                return
            await pause(0.1)

    def _is_acknowledged(self, result: Any, value: bytes) -> bool:
        """Record the result of a Produce request; return whether no retry is needed."""
        assert result.error_code == ErrorCode.NONE, result
        partition = result.index
        self.model.holds(partition, result.base_offset, value)
        self._ends[partition] = max(self._ends.get(partition, 0), result.base_offset + 1)
        return True

    def _watch(self, task: asyncio.Task[Any]) -> None:
        def done(task: asyncio.Task[Any]) -> None:
            error = None if task.cancelled() else task.exception()
            if error is not None:
                self.failed(error)

        task.add_done_callback(done)
