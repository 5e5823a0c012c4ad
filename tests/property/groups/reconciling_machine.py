"""The common part of the random machines of consumer and streams groups.

Their clients give up partitions or tasks some time after the response, may be static, and may leave
for a while.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from tests.property.groups.group_machine import SOME, STEPS_MS, GroupMachine

# The state in which a member has to give up something, of each kind.
_GIVES_UP = {"UNREVOKED_PARTITIONS", "UNREVOKED_TASKS"}


class ReconcilingMachine(GroupMachine):
    """A machine whose clients reconcile.

    Attributes:
        away: Static members that have left for a while.
    """

    def __init__(self) -> None:
        super().__init__()
        self.away: list[Any] = []

    def reconcile(self, client: Any) -> None:
        client.reconcile()

    def free_instance(self, instance: str | None) -> str | None:
        """Return the instance id, or None if another client has it."""
        is_taken = instance in [client.instance for client in (*self.clients, *self.away)]
        return None if is_taken else instance

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
    def give_up(self, which: int) -> None:
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

    @invariant()
    def members_have_their_timers(self) -> None:
        group = self.groups.shard.groups.get("g")
        timers = self.groups.shard.timers
        for member in () if group is None else group.members.values():
            assert ("g", member.member_id, "session") in timers, "a session never ends"
            event = timers._events.get(("g", member.member_id, "revocation"))
            gives_up = member.state.name in _GIVES_UP and member.epoch > 0
            is_expected = event is not None and event[1].epoch == member.epoch
            assert gives_up == is_expected, "the time to give up what was revoked"
