"""A streams group under random steps, compared with what its clients may rely on (KIP-1071).

No active task has two members, as the clients see it, and no process has two copies of a task. A
request that is sent again after one lost response is accepted. A restart from the log, whatever
compaction has left of it, changes nothing. Each member has its timers. If only heartbeats follow,
the group becomes stable, each task is active once, and has its standby tasks as far as there are
processes.
"""

from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    invariant,
    precondition,
    rule,
)

from tests.property.groups.group_machine import SELDOM, SOME
from tests.property.groups.reconciling_machine import ReconcilingMachine
from tests.support.coordinators.kit import one_broker, topic
from tests.support.coordinators.streams_client import StreamsClient
from tests.support.coordinators.streams_kit import (
    SESSION_MS,
    StreamsGroups,
    internal,
    subtopology,
    topology,
)
from wirebroker.coordinator.groups.streams import task_assignment
from wirebroker.coordinator.groups.streams.streams_group import StreamsGroup

# "t" exists at first. The internal topics are created when a heartbeat requests them.
TOPOLOGY = topology(
    subtopology("0", "t", sinks=["r"]),
    subtopology("1", repartition=[internal("r")], changelogs=[internal("log")]),
)
STANDBY = {"0": False, "1": True}
INSTANCES = st.sampled_from([None, None, "i", "j"])
PROCESSES = st.sampled_from(["p", "q", "r"])
MOST_CLIENTS = 6


class StreamsGroupMachine(ReconcilingMachine):
    groups: StreamsGroups
    # Time for the sessions of crashed members to end, then for two rebalances.
    last_rounds = 2 * SESSION_MS // 2_000

    def __init__(self) -> None:
        super().__init__()
        self.partitions = 3
        self.standby_count = 0

    @initialize(
        most_at_once=st.sampled_from([1_000, 5]),
        standby_count=st.integers(0, 2),
        delay_ms=st.sampled_from([0, 3_000]),
        process=PROCESSES,
        prepares=st.booleans(),
    )
    def begin(
        self, most_at_once: int, standby_count: int, delay_ms: int, process: str, *, prepares: bool
    ) -> None:
        self.limit(task_assignment, most_at_once)
        self.standby_count = standby_count
        self.groups = StreamsGroups(
            image=one_broker(*topic("t", 1, partitions=self.partitions)),
            streams={
                "num_standby_replicas": standby_count,
                "initial_rebalance_delay_ms": delay_ms,
            },
        )
        self.groups.prepares = prepares
        self.start_client("p", "i")
        self.start_client(process, None)

    # -- clients -----------------------------------------------------------------------------

    @precondition(lambda self: len(self.clients) < MOST_CLIENTS)
    @rule(process=PROCESSES, instance=INSTANCES, fails=SELDOM)
    def another_client(self, process: str, instance: str | None, *, fails: bool) -> None:
        with self.log(fails=fails):
            self.start_client(process, instance)

    def start_client(self, process: str, instance: str | None) -> None:
        instance = self.free_instance(instance)
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

    @precondition(lambda self: self.away)
    @rule(which=SOME, keeps_id=st.booleans(), is_restarted=st.booleans(), fails=SELDOM)
    def static_member_returns(
        self, which: int, *, keeps_id: bool, is_restarted: bool, fails: bool
    ) -> None:
        client = self.away.pop(which % len(self.away))
        if not keeps_id:
            client.member_id = self.new_id()
        # The id of a process is random each time it starts.
        if is_restarted:
            client.process = self.new_id()
        self.clients.append(client)
        with self.log(fails=fails):
            self.send(client)

    # -- environment -------------------------------------------------------------------------

    @rule(name=st.sampled_from(["t", "r", "log"]), count=st.integers(1, 5), is_whole=st.booleans())
    def recreate_topic(self, name: str, count: int, *, is_whole: bool) -> None:
        """Delete a topic; the source topic is created again by its owner, maybe smaller.

        With `is_whole` the owner also creates the internal topics again, so the group stays ready.
        """
        topics = self.groups.shard.image.topics
        if name not in topics:
            return
        self.groups.delete_topic(name)
        if name == "t":
            for other in ("r", "log"):
                if other in topics:
                    self.groups.delete_topic(other)
            self.partitions = count
            self.topic_ids += 1
            for number, created in enumerate(("t", "r", "log") if is_whole else ("t",)):
                # Topics that a heartbeat requests have ids below 250.
                topic_id = self.topic_ids + 1_000 * number
                self.groups.create_topic(created, topic_id, partitions=count)

    @rule(count=st.integers(0, 2))
    def change_standby_tasks(self, count: int) -> None:
        self.standby_count = count
        self.groups.configure(streams_num_standby_replicas=str(count))

    # -- checks ------------------------------------------------------------------------------

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
    def topics_that_were_checked_are_those_of_the_epoch(self) -> None:
        group, shard = self.groups.shard.groups.get("g"), self.groups.shard
        if not isinstance(group, StreamsGroup) or group.checked_topics is not shard.image.topics:
            return
        assert group.topology is not None, "topics are checked for a topology"
        present = shard.topic_hashes.of_group(group.topology.required_topics)
        assert group.metadata_hash == present, "a change of topics is forgotten"

    # -- the end -----------------------------------------------------------------------------

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
