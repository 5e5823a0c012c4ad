"""The common part of the random machines of consumer, share and streams groups.

The log may fail, the coordinator restarts from what compaction has left, long work takes its time.
A machine adds its clients, their requests, the topics, and the checks of its kind of group.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.support.coordinators.consumer_kit import ASSIGNMENT_INTERVAL_MS, compacted_log
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups import background

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

STEPS_MS = st.sampled_from([0, ASSIGNMENT_INTERVAL_MS, 5_000])
TIMES_MS = st.sampled_from([1, 999, ASSIGNMENT_INTERVAL_MS, 11_000, 15_000, 30_000, 60_000])
SELDOM = st.sampled_from([False] * 4 + [True])
SOME = st.integers(0, 99)
# Time between the last heartbeats.
_ROUND_MS = 2_000


class GroupMachine(RuleBasedStateMachine):
    """A shard with the group "g", and clients.

    Attributes:
        groups: The shard, a kit of tests/support/coordinators.
        clients: The clients that believe to be members.
        last_rounds: Heartbeats of each client until the group is at rest: the sessions of crashed
            members end, then two rebalances follow.
    """

    groups: Any
    last_rounds: int

    def __init__(self) -> None:
        super().__init__()
        self.clients: list[Any] = []
        self.ids = 0
        self.topic_ids = 10
        self._patches: list[Any] = []

    def limit(self, module: ModuleType, most_at_once: int) -> None:
        """Bound the assignments that are computed at once, and use the smallest portions."""
        self._patches = [
            mock.patch.object(module, "MOST_AT_ONCE", most_at_once),
            mock.patch.object(background, "_MOST_ITEMS", 1),
        ]
        for patch in self._patches:
            patch.start()

    # -- clients -----------------------------------------------------------------------------

    def new_id(self) -> str:
        self.ids += 1
        return f"m{self.ids}"

    def client(self, which: int) -> Any:
        return self.clients[which % len(self.clients)]

    def send(self, client: Any, *, loses: bool = False) -> None:
        """Send a client's heartbeat."""
        client.send(self.groups, loses=loses)

    def reconcile(self, client: Any) -> None:
        """Let a client give up what it has to."""

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
    def what_is_durable_is_what_the_log_says(self) -> None:
        groups = self.groups
        durable = groups.durable()
        assert groups.reloaded().durable() == durable, "a restart changes the group"
        assert groups.reloaded(compacted=True).durable() == durable, "compaction does"
        # The cleaner leaves the end of the log as it is.
        half = len(groups.log) // 2
        log = [*compacted_log(groups.log[:half]), *groups.log[half:]]
        partly = type(groups)(log=log, image=groups.shard.image)
        assert partly.durable() == durable, "partial compaction does"

    @invariant()
    def work_that_heartbeats_wait_for_is_under_way(self) -> None:
        group = self.groups.shard.groups.get("g")
        if group is not None and group.background_work is not None:
            assert self.groups.effects or self.groups.running, "an assignment is never computed"

    # -- the end -----------------------------------------------------------------------------

    def teardown(self) -> None:
        try:
            if self._patches:
                self.come_to_rest()
        finally:
            for patch in self._patches:
                patch.stop()

    def come_to_rest(self) -> None:
        for _ in range(self.last_rounds):
            for client in self.clients:
                self.send(client)
                self.reconcile(client)
            self.groups.work()
            self.groups.advance(_ROUND_MS)
        group = self.groups.shard.groups.get("g")
        if group is None:
            assert not self.clients
            return
        assert group.members.keys() == {client.member_id for client in self.clients}
        state = "Stable" if self.clients else "Empty"
        assert group.state == state, f"it stays {group.state}"
        if self.clients:
            self.check_assignment()

    def check_assignment(self) -> None:
        """Check what the members have at rest."""
        raise NotImplementedError
