"""A consumer group under random steps, compared with what its clients may rely on (KIP-848).

No partition has two owners, as the clients see it. A request that is sent again after one lost
response is accepted. A restart from the log, whatever compaction has left of it, changes nothing.
Each member has its timers. If only heartbeats follow, the group becomes stable and each partition
of its topics has one owner.
"""

from __future__ import annotations

import re
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

from tests.support.coordinators.consumer_client import ConsumerClient
from tests.support.coordinators.consumer_kit import (
    ASSIGNMENT_INTERVAL_MS,
    CONSUMER_SESSION_MS,
    ConsumerGroups,
    compacted_log,
)
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups import background
from wirebroker.coordinator.groups.consumer import target_assignment
from wirebroker.coordinator.groups.consumer.consumer_member import MemberState

if TYPE_CHECKING:
    from collections.abc import Iterator

# "t" and "u" exist at first; the others and further partitions come and go.
NAMES = st.sampled_from([("t",), ("u",), ("t", "u"), ("t", "v"), ("w",), ()])
REGEXES = st.sampled_from(["", "", "", "[tv]", ".*"])
TOPICS = st.sampled_from(["t", "u", "v", "w"])
INSTANCES = st.sampled_from([None, "i", "j"])
STEPS_MS = st.sampled_from([0, ASSIGNMENT_INTERVAL_MS, 5_000])
TIMES_MS = st.sampled_from([1, 999, ASSIGNMENT_INTERVAL_MS, 11_000, 15_000, 30_000, 60_000])
SELDOM = st.sampled_from([False] * 4 + [True])
SOME = st.integers(0, 99)
MOST_CLIENTS = 6
MOST_PARTITIONS = 6
# Time for the sessions of crashed members to end, then for two rebalances.
LAST_ROUNDS = 2 * CONSUMER_SESSION_MS // 2_000


class ConsumerGroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.groups = ConsumerGroups()
        self.clients: list[ConsumerClient] = []
        # Static members that have left for a while.
        self.away: list[ConsumerClient] = []
        self.ids = 0
        self.topic_ids = 10
        self.patches: list[mock._patch[int]] = []

    @initialize(most_at_once=st.sampled_from([3_000, 3_000, 5]), names=NAMES, regex=REGEXES)
    def begin(self, most_at_once: int, names: tuple[str, ...], regex: str) -> None:
        self.patches = [
            mock.patch.object(target_assignment, "MOST_AT_ONCE", most_at_once),
            mock.patch.object(background, "_MOST_ITEMS", 1),
        ]
        for patch in self.patches:
            patch.start()
        self.start_client(("t", "u"), "", "i")
        self.start_client(names, regex, None)

    # -- clients -----------------------------------------------------------------------------

    def new_id(self) -> str:
        self.ids += 1
        return f"m{self.ids}"

    @precondition(lambda self: len(self.clients) < MOST_CLIENTS)
    @rule(names=NAMES, regex=REGEXES, instance=INSTANCES)
    def another_client(self, names: tuple[str, ...], regex: str, instance: str | None) -> None:
        self.start_client(names, regex, instance)

    def start_client(self, names: tuple[str, ...], regex: str, instance: str | None) -> None:
        if instance in [client.instance for client in (*self.clients, *self.away)]:
            instance = None
        client = ConsumerClient(self.new_id(), instance=instance, names=names, regex=regex)
        self.clients.append(client)
        client.send(self.groups)

    @precondition(lambda self: self.clients)
    @rule(which=SOME, loses=SELDOM, fails=SELDOM)
    def heartbeat(self, which: int, *, loses: bool, fails: bool) -> None:
        with self.log(fails=fails):
            self.client(which).send(self.groups, loses=loses)

    def client(self, which: int) -> ConsumerClient:
        return self.clients[which % len(self.clients)]

    @precondition(lambda self: self.clients)
    @rule(ms=STEPS_MS, gives_up=st.booleans(), loser=st.sampled_from([None, 0, 1, 2]))
    def heartbeats_of_all(self, ms: int, *, gives_up: bool, loser: int | None) -> None:
        self.groups.advance(ms)
        for number, client in enumerate(self.clients):
            client.send(self.groups, loses=number == loser)
            if gives_up:
                client.reconcile()

    @precondition(lambda self: any(client.pending is not None for client in self.clients))
    @rule(which=SOME)
    def give_up_partitions(self, which: int) -> None:
        waiting = [client for client in self.clients if client.pending is not None]
        waiting[which % len(waiting)].reconcile()

    @precondition(lambda self: self.clients)
    @rule(which=SOME, names=NAMES, regex=REGEXES)
    def change_subscription(self, which: int, names: tuple[str, ...], regex: str) -> None:
        client = self.client(which)
        client.names, client.regex = names, regex

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
    @rule(which=SOME, keeps_id=st.booleans())
    def static_member_returns(self, which: int, *, keeps_id: bool) -> None:
        client = self.away.pop(which % len(self.away))
        if not keeps_id:
            client.member_id = self.new_id()
        self.clients.append(client)
        client.send(self.groups)

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

    @rule(name=TOPICS, is_deleted=SELDOM, is_created=st.booleans(), fails=SELDOM)
    def change_topic(self, name: str, *, is_deleted: bool, is_created: bool, fails: bool) -> None:
        topic = self.groups.shard.image.topics.get(name)
        if topic is not None and is_deleted:
            self.groups.delete_topic(name)
            topic = None
        if topic is None and is_created:
            self.topic_ids += 1
            self.groups.create_topic(name, self.topic_ids, partitions=2)
        elif topic is not None and len(topic.partitions) < MOST_PARTITIONS:
            self.groups.grow_topic(name, len(topic.partitions) + 1)
        if fails:
            # The heartbeats that first notice the change.
            with self.log(fails=True):
                for client in self.clients:
                    client.send(self.groups)

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
    def a_partition_has_at_most_one_owner(self) -> None:
        owners = Counter(
            partition
            for client in self.clients
            if client.is_live(self.groups)
            for partition in client.owned
        )
        assert all(count == 1 for count in owners.values()), "a partition has two owners"

    @invariant()
    def the_coordinator_knows_what_members_own(self) -> None:
        for client in self.clients:
            if not client.is_live(self.groups):
                continue
            member = self.groups.consumer_member(client.member_id)
            for topic_id, index in client.owned:
                is_known = member.partition_epoch(topic_id, index) is not None
                assert is_known, f"{client} owns an unknown partition"

    @invariant()
    def what_is_durable_is_what_the_log_says(self) -> None:
        durable = self.groups.durable()
        assert self.groups.reloaded().durable() == durable, "a restart changes the group"
        assert self.groups.reloaded(compacted=True).durable() == durable, "compaction does"
        # The cleaner leaves the end of the log as it is.
        half = len(self.groups.log) // 2
        log = [*compacted_log(self.groups.log[:half]), *self.groups.log[half:]]
        partly = ConsumerGroups(log=log, image=self.groups.shard.image)
        assert partly.durable() == durable, "partial compaction does"

    @invariant()
    def members_have_their_timers(self) -> None:
        if "g" not in self.groups.shard.groups:
            return
        timers = self.groups.shard.timers
        for member in self.groups.consumer().members.values():
            assert ("g", member.member_id, "session") in timers, "a session never ends"
            event = timers._events.get(("g", member.member_id, "revocation"))
            gives_up = member.state is MemberState.UNREVOKED_PARTITIONS and member.epoch > 0
            is_expected = event is not None and event[1].epoch == member.epoch
            assert gives_up == is_expected, "the time to give up partitions"

    # -- the end -----------------------------------------------------------------------------

    def teardown(self) -> None:
        try:
            self.come_to_rest()
        finally:
            for patch in self.patches:
                patch.stop()

    def come_to_rest(self) -> None:
        for _ in range(LAST_ROUNDS):
            for client in self.clients:
                client.send(self.groups)
                client.reconcile()
            self.groups.work()
            self.groups.advance(2_000)
        if "g" not in self.groups.shard.groups:
            assert not self.clients
            return
        group = self.groups.consumer()
        assert group.members.keys() == {client.member_id for client in self.clients}
        assert group.state == ("Stable" if self.clients else "Empty"), f"it stays {group.state}"
        self.check_assignment()

    def check_assignment(self) -> None:
        """Check that each partition of a topic with subscribers belongs to one of them."""
        topics = self.groups.shard.image.topics
        owners: Counter[tuple[bytes, int]] = Counter()
        wanted: set[tuple[bytes, int]] = set()
        for client in self.clients:
            subscribed = {
                (topic.topic_id, index)
                for name, topic in topics.items()
                if name in client.names or (client.regex and re.fullmatch(client.regex, name))
                for index in range(len(topic.partitions))
            }
            assert client.owned <= subscribed, f"{client} does not want a partition"
            owners.update(client.owned)
            wanted |= subscribed
        assert owners == Counter(wanted), "each partition has one owner"


ConsumerGroupMachine.TestCase.settings = settings(
    max_examples=max(20, settings().max_examples // 2), stateful_step_count=40
)
TestConsumerGroupMachine = ConsumerGroupMachine.TestCase
