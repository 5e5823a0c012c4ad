"""Where a broker for tests runs: what the two kinds of places have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from wirebroker.net.client.settings import PeerAddress


class Host(Protocol):
    """One broker, running or not; all of it happens on the loop of a LoopThread."""

    @property
    def is_running(self) -> bool:
        """Whether it was started, and not ended by us since."""
        ...

    async def start(
        self, directory: Path, settings: Mapping[str, str], port: int | None
    ) -> PeerAddress:
        """Start a broker on a directory; return where it listens.

        Args:
            directory: Where its data lies.
            settings: Its configs, by name.
            port: Instead of the first listener's; 0 for a free one, None for what is set.

        Raises:
            StartError, ConfigError: It does not start.
        """
        ...

    async def stop(self) -> None:
        """Have it stop cleanly."""
        ...

    async def kill(self) -> None:
        """End it at once: nothing is finished, as by kill -9."""
        ...

    async def pause(self) -> None:
        """Have it do nothing at all until `resume`; only a process of its own can."""
        ...

    async def resume(self) -> None:
        """Let it go on."""
        ...

    async def take_snapshot(self, target: Path) -> None:
        """Copy what the running broker holds to a place where there is nothing.

        Raises:
            ValueError: It cannot be taken.
            ConnectionError: It does not run, or does not answer.
        """
        ...

    async def swap(self, replace: Callable[[], None]) -> None:
        """End it at once, have its data replaced, and start on that, where it listened before.

        Args:
            replace: Blocks; called in a thread.

        Raises:
            ValueError, StartError: It does not start; then it does not run.
        """
        ...

    async def renew(self, settings: Mapping[str, str]) -> PeerAddress | None:
        """Have an empty broker run in place of the one that runs, if that is quicker than a start.

        Args:
            settings: Its configs, by name.

        Returns:
            Where it listens; None: it was ended (`kill`), and one is to be started.
        """
        ...

    def begin_anew(self) -> None:
        """Forget what tests have done to brokers before; called while none runs."""
        ...

    def leave_nothing(self) -> None:
        """End what would outlive this process, which is about to end; called in any thread."""
        ...

    async def carry_out(self, command: str, arguments: Mapping[str, Any]) -> Any:
        """Have the broker's rig carry out a command (rig.py).

        Raises:
            ValueError: An argument does not fit.
            ConnectionError: It does not run, or does not answer.
        """
        ...

    def log_lines(self, most: int) -> list[str]:
        """Return what it has logged last, since its start."""
        ...
