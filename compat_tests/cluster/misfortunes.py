"""What befalls the nodes of a cluster, one at a time: killed, frozen, restarted.

    begin()  --> one node is killed (-9), or frozen (SIGSTOP), or stops cleanly
    end()    --> it is back, with its port and its folder

In between others lead what it led, once its session is over; a frozen one goes on in the belief
that nothing has happened.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from tests.support.brokers.brokers import Broker

Kind = Literal["kill", "freeze", "restart"]

# After so long who was frozen has heard from its controller what has happened meanwhile.
_ZOMBIE_S = 3.0


class Misfortunes:
    """Each node meets each kind, in an order by chance.

    Attributes:
        counts: How often each kind has befallen somebody.
        most_s: How long one lasts at most: longer than a broker's session.
    """

    def __init__(
        self, nodes: Sequence[Broker], choice: random.Random, *, most_s: float = 8.0
    ) -> None:
        kinds: tuple[Kind, ...] = ("kill", "freeze", "restart")
        self._due = list(itertools.product(kinds, nodes))
        choice.shuffle(self._due)
        self._under_way: tuple[Kind, Broker] | None = None
        self._since = 0.0
        self._thawed_at = -_ZOMBIE_S
        self.counts: Counter[str] = Counter()
        self.most_s = most_s

    @property
    def total(self) -> int:
        """How many there are in all."""
        return len(self._due) + self.counts.total()

    @property
    def is_under_way(self) -> bool:
        """Whether a node is missed now."""
        return self._under_way is not None

    @property
    def has_lasted(self) -> bool:
        """Whether the one that is under way must end now."""
        return time.monotonic() - self._since >= self.most_s

    @property
    def has_zombies(self) -> bool:
        """Whether somebody may answer from before he was frozen: Kafka's brokers have no leases."""
        is_frozen = self._under_way is not None and self._under_way[0] == "freeze"
        return is_frozen or time.monotonic() - self._thawed_at < _ZOMBIE_S

    def begin(self) -> None:
        """Let the next one happen."""
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
        """Have the node back; do nothing if none is missed."""
        if self._under_way is None:
            return
        kind, broker = self._under_way
        self._under_way = None
        if kind == "freeze":
            self._thawed_at = time.monotonic()
            broker.thaw()
        else:
            broker.start()
