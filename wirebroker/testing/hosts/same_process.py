"""A broker on a loop of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.base.threads import Work, in_thread
from wirebroker.config.protection import check_protection
from wirebroker.config.sources.sources import load_config
from wirebroker.net.client.settings import PeerAddress
from wirebroker.testing.data.snapshots import take
from wirebroker.testing.hosts.process_log import PROCESS_LOG
from wirebroker.testing.test_mode.controlled_server import ControlledServer
from wirebroker.testing.test_mode.controls import BrokerControls

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


class SameProcess:
    """A host with one broker at a time, on the callers' loop."""

    def __init__(self) -> None:
        self._server: ControlledServer | None = None
        self._log_began = 0
        self._controls = BrokerControls()

    @property
    def is_running(self) -> bool:
        """See Host."""
        return self._server is not None

    @property
    def test_url(self) -> str | None:
        """See Host; a broker in this process has none."""
        return None

    async def start(
        self, directory: Path, settings: Mapping[str, str], port: int | None
    ) -> PeerAddress:
        """See Host; environment variables have no effect."""
        assert self._server is None
        config = load_config(
            file=None,
            environment={},
            flags=settings,
            data_directory=str(directory),
            port=port,
        )
        check_protection(config)
        return await self._run(ControlledServer(self._controls, config))

    async def _run(self, server: ControlledServer) -> PeerAddress:
        PROCESS_LOG.open()
        self._log_began = PROCESS_LOG.count
        try:
            await server.start()
        except BaseException:
            PROCESS_LOG.stop_listening()
            raise
        self._server = server
        return PeerAddress(*server.address)

    async def stop(self) -> None:
        """See Host."""
        server = self._copied()
        try:
            await server.stop()
        finally:
            PROCESS_LOG.stop_listening()

    async def kill(self) -> None:
        """Abandon it."""
        server = self._copied()
        try:
            await server.abandon()
        finally:
            PROCESS_LOG.stop_listening()

    async def pause(self) -> None:
        """Raise RuntimeError: it would freeze the tests."""
        raise RuntimeError("a broker in the process of the tests cannot be paused")

    async def resume(self) -> None:
        """Do nothing: it cannot be paused."""

    async def take_snapshot(self, target: Path) -> None:
        """See Host."""
        assert self._server is not None
        assert self._server.broker is not None
        await take(self._server.broker, target)

    async def swap(self, replace: Callable[[], None]) -> None:
        """See Host."""
        assert self._server is not None
        config = self._server.config
        ports = {listener.name: listener.port for listener in self._server.bound}
        await self.kill()
        await in_thread(Work.UPKEEP, replace)
        await self._run(ControlledServer(self._controls, config, ports=ports))

    async def renew(self, settings: Mapping[str, str]) -> None:
        """See Host; always kill the broker, because a start is as fast as a replacement."""
        del settings
        await self.kill()

    def leave_nothing(self) -> None:
        """Do nothing: it ends with the process."""

    async def carry_out(self, command: str, arguments: Mapping[str, Any]) -> Any:
        """Run a test command, also while the broker is stopped."""
        return await self._controls.carry_out(command, arguments)

    def reset(self) -> None:
        """See Host."""
        self._controls = BrokerControls()

    def log_lines(self, most: int) -> list[str]:
        """Return lines of all brokers of this process."""
        return PROCESS_LOG.last(most, since=self._log_began)

    def _copied(self) -> ControlledServer:
        server, self._server = self._server, None
        assert server is not None
        return server
