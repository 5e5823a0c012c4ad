"""How many rebalances there were and how long they took, for /metrics to read.

A rebalance begins when members are told to rejoin, and ends with the record that makes the group
Stable or Empty. The times are soft state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirebroker.coordinator.runtime import Moment


class Rebalances:
    """The rebalances of a shard's groups."""

    __slots__ = ("_begun_ms", "_ended", "count", "total_ms")

    def __init__(self) -> None:
        # Rebalances that ended, and their time together.
        self.count = 0
        self.total_ms = 0
        self._begun_ms: dict[str, int] = {}
        self._ended: list[str] = []

    def begin(self, group_id: str, moment: Moment) -> None:
        """Note that a group prepares a rebalance; one under way goes on."""
        self._begun_ms.setdefault(group_id, moment.monotonic_ms)

    def end(self, group_id: str) -> None:
        """Note that a group has a new generation; `settle` says when."""
        if group_id in self._begun_ms:
            self._ended.append(group_id)

    def settle(self, moment: Moment) -> None:
        """Count the rebalances that ended since the last call."""
        for group_id in self._ended:
            begun_ms = self._begun_ms.pop(group_id, None)
            if begun_ms is not None:
                self.count += 1
                self.total_ms += max(0, moment.monotonic_ms - begun_ms)
        self._ended.clear()

    def forget_running(self) -> None:
        """Forget what has not ended."""
        self._begun_ms.clear()
        self._ended.clear()
