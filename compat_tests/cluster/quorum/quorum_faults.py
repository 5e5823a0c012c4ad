"""Faults of a quorum's voters, one after the other, and how long the quorum needs after each."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from compat_tests.cluster.quorum.mixed_quorum import MixedQuorum

Fault = Literal["kill", "freeze", "restart", "cut both", "cut in", "cut out"]

FAULTS: Final[tuple[Fault, ...]] = (
    "kill",
    "freeze",
    "restart",
    "cut both",
    "cut in",
    "cut out",
)


class QuorumFaults:
    """Causes faults of the leader and of followers.

    Attributes:
        counts: Faults by kind and victim (`leader`, `follower`).
    """

    def __init__(self, quorum: MixedQuorum, choice: random.Random) -> None:
        self._quorum = quorum
        self._choice = choice
        self.counts: Counter[str] = Counter()

    def act(self, fault: Fault, *, is_leader: bool, work: Callable[[], None]) -> None:
        """Let a voter fail, have work done meanwhile, and end the fault."""
        quorum = self._quorum
        leader = quorum.leader()
        others = [node_id for node_id in quorum.voter_nodes if node_id != leader]
        victim = leader if is_leader and leader is not None else self._choice.choice(others)
        self.counts[f"{fault} {'leader' if victim == leader else 'follower'}"] += 1
        print(f"{time.strftime('%H:%M:%S')} {fault} {victim}", flush=True)  # noqa: T201
        self._begin(fault, victim)
        try:
            work()
        finally:
            self._end(fault, victim)

    def _begin(self, fault: Fault, victim: int) -> None:
        voter = self._quorum.voter_nodes[victim]
        match fault:
            case "kill":
                voter.kill9()
            case "freeze":
                voter.freeze()
            case "restart":
                voter.stop()
            case "cut both":
                self._quorum.cut_off(victim, "both")
            case "cut in":
                self._quorum.cut_off(victim, "in")
            case "cut out":
                self._quorum.cut_off(victim, "out")

    def _end(self, fault: Fault, victim: int) -> None:
        voter = self._quorum.voter_nodes[victim]
        match fault:
            case "kill" | "restart":
                voter.start()
            case "freeze":
                voter.thaw()
            case _:
                self._quorum.proxies.heal()
