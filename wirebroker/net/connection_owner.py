"""Interfaces that a connection uses: its owner, and the guard of its handlers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from wirebroker.base.clock import Clock
    from wirebroker.net.bounds.memory_budget import MemoryBudget
    from wirebroker.net.dispatch import Served
    from wirebroker.net.frames.receive_area import ReceiveArea
    from wirebroker.net.pages.old_pages import OldPages
    from wirebroker.net.settings import NetworkSettings
    from wirebroker.request.session import Session

    Dispatch = Callable[[memoryview, Session], Served]

C_contra = TypeVar("C_contra", contravariant=True)


class Guard(Protocol):
    """Serves a connection until its client is authenticated (security/)."""

    @property
    def most_bytes(self) -> int:
        """Size limit of a request until then."""
        ...

    def __call__(self, frame: memoryview, session: Session, /) -> Served:
        """Serve a frame: authenticate, or pass it on."""
        ...

    def when_known(self, callback: Callable[[], None] | None, /) -> None:
        """Call back once when the client is authenticated; None cancels that."""
        ...


class Owner(Protocol[C_contra]):
    """State that all connections of a loop share (connection_table.py)."""

    loop: asyncio.AbstractEventLoop
    area: ReceiveArea
    budget: MemoryBudget
    old_pages: OldPages
    clock: Clock
    settings: NetworkSettings

    @property
    def dispatch(self) -> Dispatch:
        """Serves a frame."""
        ...

    @property
    def on_disk_failure(self) -> Callable[[str, OSError], None]:
        """Called with a file that a disk error kept from being sent."""
        ...

    def closed(self, connection: C_contra, /) -> None:
        """Forget a connection (called once, by it)."""
        ...

    def watch(self, connection: C_contra, /) -> None:
        """Close a connection if its arriving frame is late."""
        ...

    def unwatch(self, connection: C_contra, /) -> None:
        """Stop watching a connection."""
        ...
