"""A consumer group under random steps, compared with what its clients may rely on (KIP-848).

No partition has two owners, as the clients see it. A request that is sent again after one lost
response is accepted. A restart from the log, whatever compaction has left of it, changes nothing.
Each member has its timers. If only heartbeats follow, the group becomes stable and each partition
of its topics has one owner.
"""

from __future__ import annotations

import re
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
from tests.support.coordinators.consumer_client import ConsumerClient
from tests.support.coordinators.consumer_kit import (
    CONSUMER_SESSION_MS,
    ConsumerGroups,
)
from wirebroker.coordinator.groups.consumer import target_assignment

# "t" and "u" exist at first; the others and further partitions come and go.
NAMES = st.sampled_from([("t",), ("u",), ("t", "u"), ("t", "v"), ("w",), ()])
REGEXES = st.sampled_from(["", "", "", "[tv]", ".*"])
TOPICS = st.sampled_from(["t", "u", "v", "w"])
INSTANCES = st.sampled_from([None, "i", "j"])
MOST_CLIENTS = 6
MOST_PARTITIONS = 6


class ConsumerGroupMachine(ReconcilingMachine):
    groups: ConsumerGroups
    # Time for the sessions of crashed members to end, then for two rebalances.
    last_rounds = 2 * CONSUMER_SESSION_MS // 2_000

    def __init__(self) -> None:
        super().__init__()
        self.groups = ConsumerGroups()

    @initialize(most_at_once=st.sampled_from([3_000, 3_000, 5]), names=NAMES, regex=REGEXES)
    def begin(self, most_at_once: int, names: tuple[str, ...], regex: str) -> None:
        self.limit(target_assignment, most_at_once)
        self.start_client(("t", "u"), "", "i")
        self.start_client(names, regex, None)

    # -- clients -----------------------------------------------------------------------------

    @precondition(lambda self: len(self.clients) < MOST_CLIENTS)
    @rule(names=NAMES, regex=REGEXES, instance=INSTANCES)
    def another_client(self, names: tuple[str, ...], regex: str, instance: str | None) -> None:
        self.start_client(names, regex, instance)

    def start_client(self, names: tuple[str, ...], regex: str, instance: str | None) -> None:
        instance = self.free_instance(instance)
        client = ConsumerClient(self.new_id(), instance=instance, names=names, regex=regex)
        self.clients.append(client)
        client.send(self.groups)

    @precondition(lambda self: self.clients)
    @rule(which=SOME, loses=SELDOM, fails=SELDOM)
    def heartbeat(self, which: int, *, loses: bool, fails: bool) -> None:
        with self.log(fails=fails):
            self.client(which).send(self.groups, loses=loses)

    @precondition(lambda self: self.clients)
    @rule(which=SOME, names=NAMES, regex=REGEXES)
    def change_subscription(self, which: int, names: tuple[str, ...], regex: str) -> None:
        client = self.client(which)
        client.names, client.regex = names, regex

    @precondition(lambda self: self.away)
    @rule(which=SOME, keeps_id=st.booleans())
    def static_member_returns(self, which: int, *, keeps_id: bool) -> None:
        client = self.away.pop(which % len(self.away))
        if not keeps_id:
            client.member_id = self.new_id()
        self.clients.append(client)
        client.send(self.groups)

    # -- environment -------------------------------------------------------------------------

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

    # -- checks ------------------------------------------------------------------------------

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

    # -- the end -----------------------------------------------------------------------------

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
