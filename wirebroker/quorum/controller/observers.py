"""The observers of the metadata log and their progress.

Silent observers are forgotten after five minutes.

Source: Kafka's LeaderState (observers; KIP-642, KIP-836 for the times).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_FORGOTTEN_AFTER_MS: Final = 300_000
# Beyond this, the longest silent one is dropped.
_MAX_OBSERVERS: Final = 1_000


class ObserverId(NamedTuple):
    """A node and the directory of its log (zero before KIP-853)."""

    node_id: int
    directory_id: bytes


@dataclass(slots=True)
class Observer:
    """The progress of one observer; times are in milliseconds since 1970.

    Attributes:
        last_caught_up_ms: When it last had everything, or -1.
        leader_end_offset: The end of the leader's log at its last fetch.
    """

    end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int
    leader_end_offset: int


class Observers:
    """The recent observers."""

    __slots__ = ("_observers",)

    def __init__(self) -> None:
        # In the order of their last fetches.
        self._observers: dict[ObserverId, Observer] = {}

    def note(self, observer: ObserverId, offset: int, leader_end_offset: int, now_ms: int) -> None:
        """Record a fetch from `offset`, the end of the observer's log."""
        before = self._observers.pop(observer, None)
        caught_up_ms = -1 if before is None else before.last_caught_up_ms
        if offset >= leader_end_offset:
            caught_up_ms = max(caught_up_ms, now_ms)
        elif before is not None and offset >= before.leader_end_offset:
            caught_up_ms = max(caught_up_ms, before.last_fetch_ms)
        self._observers[observer] = Observer(offset, now_ms, caught_up_ms, leader_end_offset)
        if len(self._observers) > _MAX_OBSERVERS:
            del self._observers[next(iter(self._observers))]

    def lately(self, now_ms: int) -> Iterator[tuple[ObserverId, Observer]]:
        """Yield the observers that are not forgotten, by node."""
        since_ms = now_ms - _FORGOTTEN_AFTER_MS
        expired = [
            observer_id
            for observer_id, observer in self._observers.items()
            if observer.last_fetch_ms < since_ms
        ]
        for observer_id in expired:
            del self._observers[observer_id]
        yield from sorted(self._observers.items(), key=lambda item: item[0])
