"""The interface of hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from wirebroker.net.client.settings import PeerAddress


class Host(Protocol):
    """One broker, running or not; use it on a LoopThread's loop."""

    @property
    def is_running(self) -> bool:
        """Whether a broker was started and not ended by the kit since."""
        ...

    @property
    def test_url(self) -> str | None:
        """The HTTP address of its test mode; None if it has none, or before the first start."""
        ...

    async def start(
        self, directory: Path, settings: Mapping[str, str], port: int | None
    ) -> PeerAddress:
        """Start a broker; return its address.

        `port` is the first listener's: 0 for a free one, None for the configured one.

        Raises:
            StartError, ConfigError: It does not start.
        """
        ...

    async def stop(self) -> None:
        """Stop the broker cleanly."""
        ...

    async def kill(self) -> None:
        """Stop it as kill -9 does."""
        ...

    async def pause(self) -> None:
        """Freeze it."""
        ...

    async def resume(self) -> None:
        """Continue it."""
        ...

    async def take_snapshot(self, target: Path) -> None:
        """Copy its data while it runs.

        Raises:
            ValueError: The data cannot be copied.
            ConnectionError: The broker does not respond.
        """
        ...

    async def swap(self, replace: Callable[[], None]) -> None:
        """Kill it, call `replace` in a thread, and start it at the same address.

        Raises:
            ValueError, StartError: It does not start.
        """
        ...

    async def renew(self, settings: Mapping[str, str]) -> PeerAddress | None:
        """Replace the running broker with an empty one if that is faster than a start.

        Otherwise kill it and return None.
        """
        ...

    def reset(self) -> None:
        """Forget clock, faults and requests of the ended broker."""
        ...

    def leave_nothing(self) -> None:
        """End what would outlive this process; may be called in any thread."""
        ...

    async def carry_out(self, command: str, arguments: Mapping[str, Any]) -> Any:
        """Run a test command (controls.py).

        Raises:
            ValueError: An argument is invalid.
            ConnectionError: The broker does not respond.
        """
        ...

    def log_lines(self, most: int) -> list[str]:
        """Return the last log lines since the start."""
        ...
