"""Memory limit for requests in flight on all connections.

Counts the bytes in connections' own buffers: frames still arriving, requests that wait for another,
and large frames until their response. Beyond the limit, connections that receive a large frame stop
reading; small frames are served from the shared receive area. The connection that has held a large
frame for longest may always continue, so that they do not all wait for each other.

Invariant: used_bytes <= limit_bytes + one largest frame + connections x the longest single read.
Source: Kafka's `queued.max.request.bytes` (KIP-72), which reserves declared sizes instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_BUDGET_BYTES: Final = 256 << 20


class Holder(Protocol):
    """A connection; hashed by identity."""

    def memory_is_free(self) -> None:
        """Continue reading if `may_receive`, otherwise wait again."""
        ...


class MemoryBudget:
    """Counts the bytes and decides which connections wait."""

    __slots__ = ("_large", "_schedule", "_waiting", "is_exceeded", "limit_bytes", "used_bytes")

    def __init__(
        self,
        limit_bytes: int = DEFAULT_BUDGET_BYTES,
        *,
        schedule: Callable[[Callable[[], None]], Any],
    ) -> None:
        """`schedule` is loop.call_soon, for waking holders."""
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self.is_exceeded = limit_bytes <= 0
        self._schedule = schedule
        # Holders of a large frame, oldest first.
        self._large: dict[Holder, None] = {}
        # Those of them that wait, in order.
        self._waiting: dict[Holder, None] = {}

    def add(self, change_bytes: int) -> None:
        """Count bytes that a holder has taken, or (negative) released."""
        self.used_bytes += change_bytes
        assert self.used_bytes >= 0
        self.is_exceeded = self.used_bytes >= self.limit_bytes
        if self._waiting and not self.is_exceeded:
            waiting, self._waiting = self._waiting, {}
            for holder in waiting:
                self._schedule(holder.memory_is_free)

    def began_large(self, holder: Holder) -> None:
        """Register a holder of a large frame."""
        self._large.setdefault(holder)

    def ended_large(self, holder: Holder) -> None:
        """Remove a holder of a large frame."""
        self._large.pop(holder, None)
        self._waiting.pop(holder, None)
        oldest = next(iter(self._large), None)
        if oldest is not None and oldest in self._waiting:
            del self._waiting[oldest]
            self._schedule(oldest.memory_is_free)

    def may_receive(self, holder: Holder) -> bool:
        """Return whether a holder of a large frame may read."""
        return not self.is_exceeded or next(iter(self._large), holder) is holder

    def wait(self, holder: Holder) -> None:
        """Queue a holder until `memory_is_free` is called."""
        assert not self.may_receive(holder)
        self._waiting.setdefault(holder)

    def check(self) -> None:
        """Assert the invariants."""
        assert self.used_bytes >= 0
        assert all(holder in self._large for holder in self._waiting)
        assert not self._waiting or self.is_exceeded
        assert next(iter(self._large), None) not in self._waiting
