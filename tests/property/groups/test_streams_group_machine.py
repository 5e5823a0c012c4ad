"""A streams group under random steps, compared with what its clients may rely on (KIP-1071).

No active task has two members, as the clients see it, and no process has two copies of a task. A
request that is sent again after one lost response is accepted. A restart from the log, whatever
compaction has left of it, changes nothing. Each member has its timers. If only heartbeats follow,
the group becomes stable, each task is active once, and has its standby tasks as far as there are
processes.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING
from unittest import mock

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from tests.support.coordinators.consumer_kit import compacted_log
from tests.support.coordinators.kit import one_broker, topic
from tests.support.coordinators.streams_client import StreamsClient
from tests.support.coordinators.streams_kit import (
    ASSIGNMENT_INTERVAL_MS,
    SESSION_MS,
    StreamsGroups,
    internal,
    subtopology,
    topology,
)
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups import background
from wirebroker.coordinator.groups.streams import task_assignment
from wirebroker.coordinator.groups.streams.streams_member import TaskState

if TYPE_CHECKING:
    from collections.abc import Iterator

# "t" exists at first. The internal topics are created when a heartbeat requests them.
TOPOLOGY = topology(
    subtopology("0", "t", sinks=["r"]),
    subtopology("1", repartition=[internal("r")], changelogs=[internal("log")]),
)
STANDBY = {"0": False, "1": True}
INSTANCES = st.sampled_from([None, None, "i", "j"])
PROCESSES = st.sampled_from(["p", "q", "r"])
STEPS_MS = st.sampled_from([0, ASSIGNMENT_INTERVAL_MS, 5_000])
TIMES_MS = st.sampled_from([1, 999, ASSIGNMENT_INTERVAL_MS, 11_000, 30_000, 60_000])
SELDOM = st.sampled_from([False] * 4 + [True])
SOME = st.integers(0, 99)
MOST_CLIENTS = 6
# Time for the sessions of crashed members to end, then for two rebalances.
LAST_ROUNDS = 2 * SESSION_MS // 2_000


class StreamsGroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clients: list[StreamsClient] = []
        # Static members that have left for a while.
        self.away: list[StreamsClient] = []
        self.ids = 0
        self.topic_ids = 10
        self.partitions = 3
        self.standby_count = 0
        self.patches: list[mock._patch[int]] = []

    @initialize(
        most_at_once=st.sampled_from([1_000, 1_000, 5]),
        standby_count=st.integers(0, 2),
        delay_ms=st.sampled_from([0, 3_000]),
        process=PROCESSES,
    )
    def begin(self, most_at_once: int, standby_count: int, delay_ms: int, process: str) -> None:
        self.patches = [
            mock.patch.object(task_assignment, "MOST_AT_ONCE", most_at_once),
            mock.patch.object(background, "_MOST_ITEMS", 1),
        ]
        for patch in self.patches:
            patch.start()
        self.standby_count = standby_count
        self.groups = StreamsGroups(
            image=one_broker(*topic("t", 1, partitions=self.partitions)),
            streams={
                "num_standby_replicas": standby_count,
                "initial_rebalance_delay_ms": delay_ms,
            },
        )
        self.start_client("p", "i")
        self.start_client(process, None)

    # -- clients -----------------------------------------------------------------------------

    def new_id(self) -> str:
        self.ids += 1
        return f"m{self.ids}"

    @precondition(lambda self: len(self.clients) < MOST_CLIENTS)
    @rule(process=PROCESSES, instance=INSTANCES)
    def another_client(self, process: str, instance: str | None) -> None:
        self.start_client(process, instance)

    def start_client(self, process: str, instance: str | None) -> None:
        if instance in [client.instance for client in (*self.clients, *self.away)]:
            instance = None
        client = StreamsClient(self.new_id(), process, TOPOLOGY, instance=instance)
        self.clients.append(client)
        self.send(client)

    def send(self, client: StreamsClient, *, loses: bool = False, creates: bool = True) -> None:
        answer = client.send(self.groups, loses=loses)
        if creates:
            self.groups.create_internal(answer)

    @precondition(lambda self: self.clients)
    @rule(which=SOME, loses=SELDOM, fails=SELDOM, creates=st.booleans())
    def heartbeat(self, which: int, *, loses: bool, fails: bool, creates: bool) -> None:
        with self.log(fails=fails):
            self.send(self.client(which), loses=loses, creates=creates)

    def client(self, which: int) -> StreamsClient:
        return self.clients[which % len(self.clients)]

    @precondition(lambda self: self.clients)
    @rule(ms=STEPS_MS, gives_up=st.booleans(), loser=st.sampled_from([None, 0, 1, 2]))
    def heartbeats_of_all(self, ms: int, *, gives_up: bool, loser: int | None) -> None:
        self.groups.advance(ms)
        for number, client in enumerate(self.clients):
            self.send(client, loses=number == loser)
            if gives_up:
                client.reconcile()

    @precondition(lambda self: any(client.pending is not None for client in self.clients))
    @rule(which=SOME)
    def give_up_tasks(self, which: int) -> None:
        waiting = [client for client in self.clients if client.pending is not None]
        waiting[which % len(waiting)].reconcile()

    @precondition(lambda self: self.clients)
    @rule(which=SOME, for_a_while=st.booleans(), is_sent=st.sampled_from([True, True, False]))
    def stop_client(self, which: int, *, for_a_while: bool, is_sent: bool) -> None:
        client = self.client(which)
        self.clients.remove(client)
        for_a_while = for_a_while and client.instance is not None
        request = client.goodbye(for_a_while=for_a_while)
        if is_sent:
            self.groups.beat(**request)
        if for_a_while:
            self.away.append(client)

    @precondition(lambda self: self.away)
    @rule(which=SOME, keeps_id=st.booleans(), is_restarted=st.booleans())
    def static_member_returns(self, which: int, *, keeps_id: bool, is_restarted: bool) -> None:
        client = self.away.pop(which % len(self.away))
        if not keeps_id:
            client.member_id = self.new_id()
        # The id of a process is random each time it starts.
        if is_restarted:
            client.process = self.new_id()
        self.clients.append(client)
        self.send(client)

    # -- environment -------------------------------------------------------------------------

    @contextmanager
    def log(self, *, fails: bool) -> Iterator[None]:
        """Let all appends fail meanwhile."""
        self.groups.fails_with = ErrorCode.COORDINATOR_NOT_AVAILABLE if fails else None
        yield
        self.groups.fails_with = None

    @rule(ms=TIMES_MS, fails=SELDOM)
    def time_passes(self, ms: int, *, fails: bool) -> None:
        with self.log(fails=fails):
            self.groups.advance(ms)

    @rule(name=st.sampled_from(["t", "r", "log"]), count=st.integers(1, 5))
    def recreate_topic(self, name: str, count: int) -> None:
        """Delete a topic; the source topic is created again by its owner, maybe smaller."""
        topics = self.groups.shard.image.topics
        if name not in topics:
            return
        self.groups.delete_topic(name)
        if name == "t":
            for other in ("r", "log"):
                if other in topics:
                    self.groups.delete_topic(other)
            self.topic_ids += 1
            self.partitions = count
            self.groups.create_topic("t", self.topic_ids, partitions=count)

    @rule(count=st.integers(0, 2))
    def change_standby_tasks(self, count: int) -> None:
        self.standby_count = count
        self.groups.configure(streams_num_standby_replicas=str(count))

    @precondition(lambda self: self.groups.effects or self.groups.running)
    @rule(number=SOME, fails=SELDOM)
    def background_work(self, number: int, *, fails: bool) -> None:
        with self.log(fails=fails):
            self.groups.work_a_step(number)

    @rule(is_compacted=st.booleans())
    def restart(self, *, is_compacted: bool) -> None:
        self.groups = self.groups.reloaded(compacted=is_compacted)

    # -- checks ------------------------------------------------------------------------------

    @invariant()
    def laws_hold(self) -> None:
        self.groups.shard.check()

    @invariant()
    def an_active_task_has_at_most_one_member(self) -> None:
        owners = Counter(
            task for client in self.clients if client.is_live(self.groups) for task in client.active
        )
        assert all(count == 1 for count in owners.values()), "an active task has two members"

    @invariant()
    def a_process_has_at_most_one_copy_of_a_task(self) -> None:
        if "g" not in self.groups.shard.groups:
            return
        copies: Counter[tuple[str, str, int]] = Counter()
        for member in self.groups.streams_group().members.values():
            assigned = member.assigned
            active = {name: set(epochs) for name, epochs in assigned.active.items()}
            for kind in (active, assigned.standby, assigned.warmup):
                copies.update(
                    (member.process_id, name, each)
                    for name, numbers in kind.items()
                    for each in numbers
                )
        assert all(count == 1 for count in copies.values()), "a process has two copies"

    @invariant()
    def the_coordinator_knows_what_members_process(self) -> None:
        for client in self.clients:
            if not client.is_live(self.groups):
                continue
            member = self.groups.streams_member(client.member_id)
            for subtopology_id, partition in client.active:
                is_known = member.active_task_epoch(subtopology_id, partition) is not None
                assert is_known, f"{client} processes an unknown task"

    @invariant()
    def what_is_durable_is_what_the_log_says(self) -> None:
        durable = self.groups.durable()
        assert self.groups.reloaded().durable() == durable, "a restart changes the group"
        assert self.groups.reloaded(compacted=True).durable() == durable, "compaction does"
        # The cleaner leaves the end of the log as it is.
        half = len(self.groups.log) // 2
        log = [*compacted_log(self.groups.log[:half]), *self.groups.log[half:]]
        partly = StreamsGroups(log=log, image=self.groups.shard.image)
        assert partly.durable() == durable, "partial compaction does"

    @invariant()
    def members_have_their_timers(self) -> None:
        if "g" not in self.groups.shard.groups:
            return
        timers = self.groups.shard.timers
        for member in self.groups.streams_group().members.values():
            assert ("g", member.member_id, "session") in timers, "a session never ends"
            event = timers._events.get(("g", member.member_id, "revocation"))
            gives_up = member.state is TaskState.UNREVOKED_TASKS and member.epoch > 0
            is_expected = event is not None and event[1].epoch == member.epoch
            assert gives_up == is_expected, "the time to give up tasks"

    # -- the end -----------------------------------------------------------------------------

    def teardown(self) -> None:
        try:
            self.come_to_rest()
        finally:
            for patch in self.patches:
                patch.stop()

    def come_to_rest(self) -> None:
        if not self.patches:
            return
        for _ in range(LAST_ROUNDS):
            for client in self.clients:
                self.send(client)
                client.reconcile()
            self.groups.work()
            self.groups.advance(2_000)
        if "g" not in self.groups.shard.groups:
            assert not self.clients
            return
        group = self.groups.streams_group()
        assert group.members.keys() == {client.member_id for client in self.clients}
        assert group.state == ("Stable" if self.clients else "Empty"), f"it stays {group.state}"
        if self.clients:
            self.check_assignment()

    def check_assignment(self) -> None:
        """Check that each task is active once, and has its copies in other processes."""
        tasks = [(name, partition) for name in STANDBY for partition in range(self.partitions)]
        active = Counter(task for client in self.clients for task in client.active)
        assert active == Counter(tasks), "each task is active once"
        processes = {client.process for client in self.clients}
        expected = min(self.standby_count, len(processes) - 1)
        copies = Counter(task for client in self.clients for task in client.standby)
        wanted = {task: expected for task in tasks if STANDBY[task[0]] and expected}
        assert copies == Counter(wanted), "each task with state has its standby tasks"


StreamsGroupMachine.TestCase.settings = settings(
    max_examples=25, stateful_step_count=40, deadline=None, print_blob=True
)
TestStreamsGroupMachine = StreamsGroupMachine.TestCase
