"""A share group under random steps, compared with what its clients may rely on (KIP-932).

Only partitions whose share state exists are assigned, and only to subscribers. A request that is
sent again after one lost response is accepted. A restart from the log, whatever compaction has left
of it, changes nothing. Each member has its session. If only heartbeats follow, all members get to
the group's epoch, each partition of their topics has members, and their numbers are balanced.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    invariant,
    precondition,
    rule,
)

from tests.property.groups.group_machine import SELDOM, SOME, STEPS_MS, GroupMachine
from tests.support.coordinators.share_client import ShareClient
from tests.support.coordinators.share_group_kit import RETRY_MS, SHARE_SESSION_MS, ShareGroups
from wirebroker.coordinator.groups.share import share_assignment
from wirebroker.coordinator.groups.share.share_deletion import STATE

# "t" and "u" exist at first; the others and further partitions come and go.
NAMES = st.sampled_from([("t",), ("u",), ("t", "u"), ("t", "v"), ("w",)])
TOPICS = st.sampled_from(["t", "u", "v", "w"])
MOST_CLIENTS = 5
MOST_PARTITIONS = 5


class ShareGroupMachine(GroupMachine):
    groups: ShareGroups
    # Time for the sessions of crashed members to end, for a lost initialization, and two
    # rebalances.
    last_rounds = (SHARE_SESSION_MS + RETRY_MS) // 2_000 + 4

    def __init__(self) -> None:
        super().__init__()
        self.groups = ShareGroups()

    @initialize(most_at_once=st.sampled_from([3_000, 3_000, 5]), names=NAMES)
    def begin(self, most_at_once: int, names: tuple[str, ...]) -> None:
        self.limit(share_assignment, most_at_once)
        self.start_client(("t", "u"))
        self.start_client(names)

    # -- clients -----------------------------------------------------------------------------

    @precondition(lambda self: len(self.clients) < MOST_CLIENTS)
    @rule(names=NAMES)
    def another_client(self, names: tuple[str, ...]) -> None:
        self.start_client(names)

    def start_client(self, names: tuple[str, ...]) -> None:
        client = ShareClient(self.new_id(), names)
        self.clients.append(client)
        client.send(self.groups)

    @precondition(lambda self: self.clients)
    @rule(which=SOME, loses=SELDOM, fails=SELDOM)
    def heartbeat(self, which: int, *, loses: bool, fails: bool) -> None:
        with self.log(fails=fails):
            self.client(which).send(self.groups, loses=loses)

    @precondition(lambda self: self.clients)
    @rule(ms=STEPS_MS, loser=st.sampled_from([None, 0, 1, 2]))
    def heartbeats_of_all(self, ms: int, loser: int | None) -> None:
        self.groups.advance(ms)
        for number, client in enumerate(self.clients):
            client.send(self.groups, loses=number == loser)

    @precondition(lambda self: self.clients)
    @rule(which=SOME, names=NAMES)
    def change_subscription(self, which: int, names: tuple[str, ...]) -> None:
        self.client(which).names = names

    @precondition(lambda self: self.clients)
    @rule(which=SOME, is_sent=st.sampled_from([True, True, False]))
    def stop_client(self, which: int, *, is_sent: bool) -> None:
        client = self.client(which)
        self.clients.remove(client)
        if is_sent:
            self.groups.share_beat(client.member_id, -1)

    # -- administrators ----------------------------------------------------------------------

    @rule(name=TOPICS, fails=SELDOM)
    def alter_offsets(self, name: str, *, fails: bool) -> None:
        topic = self.groups.shard.image.topics.get(name)
        if topic is not None:
            with self.log(fails=fails):
                self.groups.alter({topic.topic_id: [0]})

    @rule(name=TOPICS, is_finished=st.booleans())
    def delete_offsets(self, name: str, *, is_finished: bool) -> None:
        topic = self.groups.shard.image.topics.get(name)
        topic_ids = () if topic is None else (topic.topic_id,)
        state = self.groups.begin_deletion(*topic_ids).get(STATE, {})
        self.forget_state(state)
        if is_finished and state:
            self.groups.finish_deletion(*state)

    @precondition(lambda self: self.is_empty())
    @rule(is_finished=st.booleans())
    def delete_group(self, *, is_finished: bool) -> None:
        self.forget_state(self.groups.begin_group_deletion()[STATE])
        if is_finished:
            self.groups.carry_out_deletion()

    def is_empty(self) -> bool:
        group = self.groups.shard.groups.get("g")
        return group is not None and group.is_empty

    def forget_state(self, state: dict[bytes, list[int]]) -> None:
        """Do what the persister does."""
        self.groups.persisted -= {
            (topic_id, index) for topic_id, indexes in state.items() for index in indexes
        }

    # -- environment -------------------------------------------------------------------------

    @rule(name=TOPICS, is_deleted=SELDOM, is_created=st.booleans())
    def change_topic(self, name: str, *, is_deleted: bool, is_created: bool) -> None:
        topic = self.groups.shard.image.topics.get(name)
        if topic is not None and is_deleted:
            self.groups.forget_topic(name)
            topic = None
        if topic is None and is_created:
            self.topic_ids += 1
            self.groups.create_topic(name, self.topic_ids, partitions=2)
        elif topic is not None and len(topic.partitions) < MOST_PARTITIONS:
            self.groups.grow_topic(name, len(topic.partitions) + 1)

    @precondition(lambda self: self.groups.effects or self.groups.running)
    @rule(number=SOME, fails=SELDOM, persister_fails=SELDOM)
    def background_work(self, number: int, *, fails: bool, persister_fails: bool = False) -> None:
        self.groups.persister_fails = persister_fails
        with self.log(fails=fails):
            self.groups.work_a_step(number)
        self.groups.persister_fails = False

    # -- checks ------------------------------------------------------------------------------

    @invariant()
    def only_partitions_with_share_state_are_assigned(self) -> None:
        topics = self.groups.shard.image.topics_by_id
        for client in self.clients:
            for topic_id, index in client.owned:
                if topic_id in topics:
                    assert (topic_id, index) in self.groups.persisted, "a partition without state"

    @invariant()
    def the_coordinator_knows_what_members_own(self) -> None:
        for client in self.clients:
            member = client.member_of(self.groups)
            if member is None or client.epoch != member.epoch or client.lost:
                continue
            owned = {
                (topic_id, index)
                for topic_id, indexes in member.assigned.items()
                for index in indexes
            }
            assert client.owned == owned, f"{client} has other partitions"

    @invariant()
    def members_have_their_sessions(self) -> None:
        timers = self.groups.shard.timers
        members = self.groups.share().members if "g" in self.groups.shard.groups else {}
        for member_id in members:
            assert ("g", member_id, "session") in timers, "a session never ends"
        assert len(timers) == len(members), "a session of a stranger"

    # -- the end -----------------------------------------------------------------------------

    def come_to_rest(self) -> None:
        super().come_to_rest()
        if self.clients:
            group = self.groups.share()
            assert {member.epoch for member in group.members.values()} <= {group.epoch}

    def check_assignment(self) -> None:
        """Check that each partition has members, and as many as the others of its topic."""
        topics = self.groups.shard.image.topics
        for name, topic in topics.items():
            subscribers = [client for client in self.clients if name in client.names]
            owned = [
                [index for topic_id, index in client.owned if topic_id == topic.topic_id]
                for client in self.clients
            ]
            if not subscribers:
                assert not any(owned), "a partition of a topic without subscribers is assigned"
                continue
            covered = {index for indexes in owned for index in indexes}
            assert covered == topic.partitions.keys(), "a partition has no member"
        for client in self.clients:
            names = {
                self.groups.shard.image.topics_by_id[topic_id].name for topic_id, _ in client.owned
            }
            assert names <= set(client.names), f"{client} does not want a partition"


ShareGroupMachine.TestCase.settings = settings(
    max_examples=50, stateful_step_count=30, deadline=None, print_blob=True
)
TestShareGroupMachine = ShareGroupMachine.TestCase
