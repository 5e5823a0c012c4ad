"""What a connection needs of those around it: who owns it, and who stands before its handlers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from wirebroker.base.clock import Clock
    from wirebroker.net.bounds.memory_budget import MemoryBudget
    from wirebroker.net.connection import Connection
    from wirebroker.net.dispatch import Served
    from wirebroker.net.frames.receive_area import ReceiveArea
    from wirebroker.net.pages.old_pages import OldPages
    from wirebroker.net.settings import NetworkSettings
    from wirebroker.request.session import Session

    Dispatch = Callable[[memoryview, Session], Served]


class Guard(Protocol):
    """Stands before the handlers of one connection, until it knows whose that is (security/)."""

    @property
    def most_bytes(self) -> int:
        """Of a request, until then."""
        ...

    def __call__(self, frame: memoryview, session: Session, /) -> Served:
        """Serve a frame, or what it takes to be served."""
        ...

    def when_known(self, callback: Callable[[], None] | None, /) -> None:
        """Call back once, when the client is known; None: not any more."""
        ...


class Owner(Protocol):
    """Whose a connection is: what all of a loop's share (connection_table.py)."""

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
        """Told of a file that could not be sent because its disk failed."""
        ...

    def closed(self, connection: Connection, /) -> None:
        """Forget a connection (called by it, once)."""
        ...

    def watch(self, connection: Connection, /) -> None:
        """Close the connection when the frame that it is in the middle of is late."""
        ...

    def unwatch(self, connection: Connection, /) -> None:
        """Note that a connection is between frames."""
        ...
