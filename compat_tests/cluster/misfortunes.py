"""Faults of a cluster's nodes, one at a time: kill, freeze, restart.

    begin()  --> one node is killed (-9), frozen (SIGSTOP), or stopped cleanly
    end()    --> it is back, with its port and its folder

In between, other nodes take over its leaderships once its session expires; a frozen node continues
later without noticing.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

Kind = Literal["kill", "freeze", "restart"]

# By then a frozen node has caught up with its controller.
_ZOMBIE_S = 3.0


class Victim(Protocol):
    """A node, as Broker has it."""

    def kill9(self) -> None: ...

    def freeze(self) -> None: ...

    def stop(self) -> None: ...

    def thaw(self) -> None: ...

    def start(self) -> None: ...


class Misfortunes:
    """Each kind of fault for each node, in random order.

    Attributes:
        counts: Number of faults by kind.
        most_s: Maximum duration of a fault: longer than a broker's session.
    """

    def __init__(
        self, nodes: Sequence[Victim], choice: random.Random, *, most_s: float = 8.0
    ) -> None:
        kinds: tuple[Kind, ...] = ("kill", "freeze", "restart")
        self._due = list(itertools.product(kinds, nodes))
        choice.shuffle(self._due)
        self._under_way: tuple[Kind, Victim] | None = None
        self._since = 0.0
        self._thawed_at = -_ZOMBIE_S
        self.counts: Counter[str] = Counter()
        self.most_s = most_s

    @property
    def total(self) -> int:
        return len(self._due) + self.counts.total()

    @property
    def is_under_way(self) -> bool:
        return self._under_way is not None

    @property
    def has_lasted(self) -> bool:
        return time.monotonic() - self._since >= self.most_s

    @property
    def has_zombies(self) -> bool:
        """Whether a recently frozen node may send stale responses: Kafka has no leases."""
        is_frozen = self._under_way is not None and self._under_way[0] == "freeze"
        return is_frozen or time.monotonic() - self._thawed_at < _ZOMBIE_S

    def begin(self) -> None:
        assert self._under_way is None, "one at a time"
        kind, broker = self._under_way = self._due.pop()
        self._since = time.monotonic()
        self.counts[kind] += 1
        if kind == "kill":
            broker.kill9()
        elif kind == "freeze":
            broker.freeze()
        else:
            broker.stop()

    def end(self) -> None:
        if self._under_way is None:
            return
        kind, broker = self._under_way
        self._under_way = None
        if kind == "freeze":
            self._thawed_at = time.monotonic()
            broker.thaw()
        else:
            broker.start()
