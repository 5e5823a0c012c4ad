"""Steps of the other kinds with clean and unclean restarts of both brokers in between.

After each start all state is compared, and the steps continue with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat_tests.lockstep.group_kinds.groups import Groups
from compat_tests.lockstep.kind import Kind
from compat_tests.lockstep.producers import Producers
from compat_tests.lockstep.records import Records
from compat_tests.lockstep.steps import command
from compat_tests.lockstep.transactions import Transactions
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from compat_tests.lockstep.kind import Moves, Range
    from compat_tests.lockstep.topics import Topics

_MOVES_BETWEEN = 70  # restarts


class Restarts(Kind):
    name = "restarts"
    keys = frozenset({ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.END_TXN})

    def __init__(
        self, random: random.Random, versions: Mapping[ApiKey, Range], prefix: str
    ) -> None:
        super().__init__(random, versions, prefix)
        self._records = Records(random, versions, f"{prefix}r-")
        self._groups = Groups(random, versions, f"{prefix}g-")
        producers = Producers(random, versions, f"{prefix}p-")
        # After a kill Apache Kafka knows the batches since the start of its last segment,
        # wirebroker those since the recovery point, up to five each, so it detects duplicates for
        # longer.
        producers.has_small_segments = False
        self._parts: list[Topics] = [
            self._records,
            producers,
            Transactions(random, versions, f"{prefix}x-"),
            self._groups,
        ]
        self._moves_left = _MOVES_BETWEEN // 2
        self._is_killed = self.maybe(0.5)
        for part in self._parts:
            # Apache Kafka writes log start offsets once a minute: a kill restores deleted records.
            part.deletes_records = not self._is_killed

    def beginning(self) -> Moves:
        for part in self._parts:
            yield from part.beginning()

    def moves(self) -> list[tuple[int, Callable[[], Moves]]]:
        """Return each kind's moves; a restart follows a number of them."""
        self._moves_left -= 1
        if self._moves_left <= 0:
            return [(1, self.restart)]
        return [(1, part.move) for part in self._parts]

    def ending(self) -> Moves:
        """Restart once more, and compare everything."""
        yield from self.restart()

    def restart(self) -> Moves:
        self._moves_left = _MOVES_BETWEEN
        yield command(["kill" if self._is_killed else "restart"])
        yield command(["coordinator"])
        yield command(["transactions"])
        for part in self._parts:
            for topic in part.topics:
                yield command(["wait", topic.name, str(len(topic.ends))])
        for part in self._parts:
            yield from part.ending()
        # Members survive by their clients' heartbeats; a rebalance in progress is lost.
        self._groups.forget()
