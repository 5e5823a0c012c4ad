"""A classic group under random steps, compared with a model of the guarantees to clients.

No partition has two owners in one generation. Generations never decrease. Acknowledged commits
stay, also after a restart. Each request gets one response, and no waiting request is forgotten. A
restart between any two steps loses only soft state.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    precondition,
    rule,
)

from tests.support.coordinators.group_kit import REBALANCE_MS, SESSION_MS, Groups
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups.classic.classic_group import GroupState

PROTOCOLS = st.sampled_from(
    [
        (("range", b"r"),),
        (("range", b"r"), ("sticky", b"s")),
        (("sticky", b"s"), ("range", b"r")),
        (("range", b"changed"),),
    ]
)
TIMES = st.sampled_from([0, 1, SESSION_MS // 2, SESSION_MS, REBALANCE_MS])


class Model:
    """The guarantees of the responses so far."""

    def __init__(self) -> None:
        self.generation = 0
        # generation -> member -> assignment
        self.owned: dict[int, dict[str, bytes]] = {}
        self.offsets: dict[int, int] = {}

    def joined(self, answer: dict) -> None:
        assert answer["generation_id"] >= self.generation, "a generation went back"
        self.generation = answer["generation_id"]
        if answer["members"]:
            assert answer["leader"] == answer["member_id"], "only leaders learn the members"

    def synced(self, generation: int, member: str, assignment: bytes) -> None:
        owned = self.owned.setdefault(generation, {})
        # A static member is identified by its instance, whatever its current id.
        owner = member if member.startswith("client") else member.partition("-")[0]
        assert owned.setdefault(owner, assignment) == assignment, "an assignment has changed"
        parts = [part for owned_assignment in owned.values() for part in owned_assignment.split()]
        assert len(parts) == len(set(parts)), "a partition has two owners"

    def restarted(self, recorded_generation: int) -> None:
        """Forget generations that were never recorded, so that they had no owners."""
        assert all(generation <= recorded_generation for generation in self.owned), (
            "an assignment got lost"
        )
        self.generation = recorded_generation


class GroupMachine(RuleBasedStateMachine):
    members = Bundle("members")

    def __init__(self) -> None:
        super().__init__()
        self.groups = Groups()
        self.model = Model()
        # Waiting requests by token; seen responses are removed.
        self.joining: dict[str, str] = {}
        self.syncing: dict[str, tuple[int, str]] = {}

    # -- clients -----------------------------------------------------------------------------

    @rule(target=members, known=PROTOCOLS)
    def new_member(self, known):
        token = self.groups.join(known=known)
        self._settle()
        answer = self.groups.answers[token]
        if answer["error_code"] is ErrorCode.MEMBER_ID_REQUIRED:
            return answer["member_id"]
        is_expected = answer["error_code"] is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert is_expected or self.groups.fails_with is not None
        return multiple()

    @rule(member=members, known=PROTOCOLS)
    def join(self, member, known):
        self.joining[self.groups.join(member, known=known)] = member
        self._settle()

    @rule(instance=st.sampled_from(["i", "j"]), known=PROTOCOLS)
    def join_static(self, instance, known):
        self.joining[self.groups.join(instance=instance, known=known)] = ""
        self._settle()

    @rule(data=st.data())
    @precondition(lambda self: "g" in self.groups.shard.groups and self.groups.group().members)
    def sync(self, data):
        group = self.groups.group()
        member = data.draw(st.sampled_from(sorted(group.members)))
        is_leader = group.leader == member
        assignments = {
            member_id: f"p{n}".encode() for n, member_id in enumerate(sorted(group.members))
        }
        token = self.groups.sync(member, assignments if is_leader else None)
        self.syncing[token] = (group.generation, member)
        self._settle()

    @rule(member=members)
    def heartbeat(self, member):
        error = self.groups.heartbeat(member)
        if error is ErrorCode.NONE:
            assert self.groups.group().state in {
                GroupState.STABLE,
                GroupState.COMPLETING_REBALANCE,
            }

    @rule(member=members)
    def leave(self, member):
        self.groups.leave(member)
        self._settle()

    @rule(data=st.data(), partition=st.integers(0, 2), offset=st.integers(0, 1_000))
    @precondition(lambda self: "g" in self.groups.shard.groups and self.groups.group().members)
    def commit(self, data, partition, offset):
        group = self.groups.group()
        member = data.draw(st.sampled_from(sorted(group.members)))
        error = self.groups.commit(
            member, generation=group.generation, partition=partition, offset=offset
        )
        if error is ErrorCode.NONE:
            assert group.state is not GroupState.COMPLETING_REBALANCE
            self.model.offsets[partition] = offset

    @rule(partition=st.integers(0, 2), offset=st.integers(0, 1_000))
    def commit_from_outside(self, partition, offset):
        error = self.groups.commit(partition=partition, offset=offset)
        if error is ErrorCode.NONE:
            assert self.groups.group().state is GroupState.EMPTY
            self.model.offsets[partition] = offset

    # -- environment -------------------------------------------------------------------------

    @rule(ms=TIMES)
    def time_passes(self, ms):
        self.groups.advance(ms)
        self._settle()

    @rule()
    def restart(self):
        self.groups = self.groups.reloaded()
        self.joining.clear()
        self.syncing.clear()
        if "g" in self.groups.shard.groups:
            self.model.restarted(self.groups.group().generation)

    @rule(error=st.sampled_from([ErrorCode.UNKNOWN_SERVER_ERROR, None]))
    def the_log_fails_or_works(self, error):
        self.groups.fails_with = error

    @precondition(lambda self: self.groups.fails_with is not None)
    @rule()
    def the_log_works_again(self):
        self.groups.fails_with = None

    # -- checks ------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Check new responses against the model."""
        answers = self.groups.answers
        for token in [token for token in self.joining if token in answers]:
            del self.joining[token]
            if not answers[token].get("error_code"):
                self.model.joined(answers[token])
        for token in [token for token in self.syncing if token in answers]:
            generation, member = self.syncing.pop(token)
            if not answers[token].get("error_code"):
                self.model.synced(generation, member, answers[token]["assignment"])

    @invariant()
    def laws_hold(self):
        self.groups.shard.check()

    @invariant()
    def what_is_durable_is_what_the_log_says(self):
        assert self.groups.reloaded().durable() == self.groups.durable()

    @invariant()
    def commits_are_there(self):
        for partition, offset in self.model.offsets.items():
            assert self.groups.committed(partition=partition) == offset

    @invariant()
    def whoever_waits_is_known(self):
        group = self.groups.shard.classic("g")
        members = [] if group is None else list(group.members.values())
        waiting = {member.awaiting_join for member in members} | {
            member.awaiting_sync for member in members
        }
        assert self.joining.keys() <= waiting
        assert self.syncing.keys() <= waiting


GroupMachine.TestCase.settings = settings(
    max_examples=max(20, settings().max_examples // 2), stateful_step_count=40
)
TestGroupMachine = GroupMachine.TestCase
