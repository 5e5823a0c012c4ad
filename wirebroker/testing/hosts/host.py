"""The interface of hosts, which run test brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from wirebroker.net.client.settings import PeerAddress


class Host(Protocol):
    """One broker, running or not; use it on the loop of a LoopThread."""

    @property
    def is_running(self) -> bool:
        """Whether a broker was started and not ended by the kit since."""
        ...

    async def start(
        self, directory: Path, settings: Mapping[str, str], port: int | None
    ) -> PeerAddress:
        """Start a broker; return its address.

        Args:
            directory: Data directory.
            settings: Configs.
            port: The first listener's port; 0 for a free one, None for the configured one.

        Raises:
            StartError, ConfigError: It does not start.
        """
        ...

    async def stop(self) -> None:
        """Stop the broker cleanly."""
        ...

    async def kill(self) -> None:
        """Stop it immediately, as kill -9 does."""
        ...

    async def pause(self) -> None:
        """Freeze it until `resume`; impossible in this process."""
        ...

    async def resume(self) -> None:
        """Continue it."""
        ...

    async def take_snapshot(self, target: Path) -> None:
        """Copy the running broker's data to a new or empty directory.

        Raises:
            ValueError: The data cannot be copied.
            ConnectionError: The broker is not available.
        """
        ...

    async def swap(self, replace: Callable[[], None]) -> None:
        """Stop it immediately, call `replace` in a thread, and start it at the same address.

        Raises:
            ValueError, StartError: It does not start.
        """
        ...

    async def renew(self, settings: Mapping[str, str]) -> PeerAddress | None:
        """Replace the running broker with an empty one, if that is faster than a start.

        Returns:
            Its address; None if the old broker was killed and a start is needed.
        """
        ...

    def reset(self) -> None:
        """Forget clock, faults and requests; called while no broker is running."""
        ...

    def leave_nothing(self) -> None:
        """End whatever would outlive this process; called at its end, in any thread."""
        ...

    async def carry_out(self, command: str, arguments: Mapping[str, Any]) -> Any:
        """Run a test command of the broker (controls.py).

        Raises:
            ValueError: An argument is invalid.
            ConnectionError: The broker is not available.
        """
        ...

    def log_lines(self, most: int) -> list[str]:
        """Return the last log lines since the start."""
        ...
