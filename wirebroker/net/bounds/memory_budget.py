"""How much memory requests in flight may take, all connections together.

Counted are bytes that live in a connection's own buffer: frames still arriving, requests waiting
behind one that is being served, and large frames until they are answered. When the budget is used
up, connections in the middle of a large frame stop reading (TCP holds the peer back); all others go
on, since their frames are small and are served from the shared receive area. The connection that
has held a large frame for longest may always go on, so that not all wait for each other.

Law: used_bytes <= limit_bytes + one largest frame + connections x the longest single read.
Source: Kafka's `queued.max.request.bytes` (KIP-72), which reserves declared sizes instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_BUDGET_BYTES: Final = 256 << 20


class Holder(Protocol):
    """A connection, as the budget sees it; hashed by identity."""

    def memory_is_free(self) -> None:
        """Go on reading, or ask again and wait again."""
        ...


class MemoryBudget:
    """Counts bytes and says who has to wait.

    Attributes:
        used_bytes: Bytes held now.
        is_exceeded: Whether used_bytes >= limit_bytes; read before every receive.
    """

    __slots__ = ("_large", "_schedule", "_waiting", "is_exceeded", "limit_bytes", "used_bytes")

    def __init__(
        self,
        limit_bytes: int = DEFAULT_BUDGET_BYTES,
        *,
        schedule: Callable[[Callable[[], None]], Any],
    ) -> None:
        """Make an empty budget; `schedule` runs a holder's wake-up later (loop.call_soon)."""
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self.is_exceeded = limit_bytes <= 0
        self._schedule = schedule
        # Holders of a large frame, the oldest first (a dict keeps the order).
        self._large: dict[Holder, None] = {}
        # Those of them that wait, in the order in which they began to.
        self._waiting: dict[Holder, None] = {}

    def add(self, change_bytes: int) -> None:
        """Count bytes that a holder has taken (or, negative, given back)."""
        self.used_bytes += change_bytes
        assert self.used_bytes >= 0
        self.is_exceeded = self.used_bytes >= self.limit_bytes
        if self._waiting and not self.is_exceeded:
            waiting, self._waiting = self._waiting, {}
            for holder in waiting:
                self._schedule(holder.memory_is_free)

    def began_large(self, holder: Holder) -> None:
        """Note that a holder has a large frame: it may have to wait, and it grows older."""
        self._large.setdefault(holder)

    def ended_large(self, holder: Holder) -> None:
        """Note that a holder's large frame is answered or gone."""
        self._large.pop(holder, None)
        self._waiting.pop(holder, None)
        oldest = next(iter(self._large), None)
        if oldest is not None and oldest in self._waiting:
            del self._waiting[oldest]
            self._schedule(oldest.memory_is_free)

    def may_receive(self, holder: Holder) -> bool:
        """Tell whether the holder of a large frame may read on."""
        return not self.is_exceeded or next(iter(self._large), holder) is holder

    def wait(self, holder: Holder) -> None:
        """Put a holder that may not receive in the queue; `memory_is_free` ends the wait."""
        assert not self.may_receive(holder)
        self._waiting.setdefault(holder)

    def check(self) -> None:
        """Assert the laws."""
        assert self.used_bytes >= 0
        assert all(holder in self._large for holder in self._waiting)
        assert not self._waiting or self.is_exceeded
        assert next(iter(self._large), None) not in self._waiting
