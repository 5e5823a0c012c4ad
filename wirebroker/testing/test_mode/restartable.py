"""The broker of `wirebroker serve --test-mode`."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.gc_tuning import collect_frozen
from wirebroker.base.threads import Work, in_thread
from wirebroker.config import ConfigError, StartError
from wirebroker.net.client.settings import PeerAddress
from wirebroker.testing.data.data_copies import check_data, put_data, remove_data
from wirebroker.testing.data.snapshots import take
from wirebroker.testing.test_mode.controlled_server import ControlledServer
from wirebroker.testing.test_mode.controls import BrokerControls

if TYPE_CHECKING:
    from wirebroker.config import Config
    from wirebroker.http.server import HttpServer
    from wirebroker.net.listeners.open_listeners import OpenListeners
    from wirebroker.net.listeners.ready_lines import BoundListener

_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
_MOST_SNAPSHOTS: Final = 100
# Ended brokers between garbage collections: 5 MB.
_MOST_ENDED: Final = 32


class RestartableBroker:
    """A broker that can crash and restart within its process.

    Controls and HTTP outlive each ControlledServer; the next one has the same data and ports.
    Snapshots are in `<data directory>-snapshots`.
    """

    def __init__(self, config: Config, **parts: Any) -> None:
        """Prepare a broker; `parts` are arguments of Server."""
        self.config = config
        self._parts = parts
        self._controls = self._new_controls()
        self._server = ControlledServer(self._controls, config, **parts)
        self._taking_turns = asyncio.Lock()
        self._ended_count = 0
        # For the next broker; set while none is running.
        self._http: HttpServer | None = None
        self._ports: dict[str, int] | None = None

    # -- for the process ----------------------------------------------------------------------

    async def start(self) -> None:
        """See Server."""
        await self._server.start()

    async def stop(self) -> None:
        """Stop the broker if it is running."""
        async with self._taking_turns:
            if self._ports is None:
                await self._server.stop()
            elif self._http is not None:
                await self._http.close()

    @property
    def listeners(self) -> OpenListeners | None:
        """See Server."""
        return self._server.listeners

    @property
    def bound(self) -> list[BoundListener]:
        """See Server."""
        return self._server.bound

    @property
    def controllers(self) -> list[BoundListener]:
        """See Server."""
        return self._server.controllers

    @property
    def cluster_id(self) -> str:
        """See Server."""
        return self._server.cluster_id

    @property
    def data_directories(self) -> list[str]:
        """See Server."""
        return self._server.data_directories

    @property
    def http(self) -> HttpServer | None:
        """See Server."""
        return self._server.http

    # -- for tests ----------------------------------------------------------------------------

    async def crash(self) -> None:
        """Stop the broker as a kill does; see Server.abandon.

        Raises:
            ValueError: It is not running.
        """
        async with self._taking_turns:
            await self._crash()

    async def begin_again(self) -> None:
        """Start a broker after a crash.

        Raises:
            ValueError: It is running, or does not start.
        """
        async with self._taking_turns:
            if self._ports is None:
                raise ValueError("the broker is running")
            await self._begin_again(self._ports)

    async def reset(self) -> PeerAddress:
        """Replace the running or crashed broker with an empty one; only snapshots stay.

        Return the first listener's address; the port is new unless the configs set one.

        Raises:
            ValueError: It does not start.
        """
        async with self._taking_turns:
            if self._ports is None:
                await self._crash()
            self._controls = self._new_controls()
            try:
                await in_thread(Work.UPKEEP, self._remove_data)
            except OSError as error:
                raise ValueError(f"its data cannot be removed: {error}") from error
            await self._begin_again({})
            return PeerAddress(*self._server.address)

    async def take_snapshot(self, name: str) -> str:
        """Copy the data and return the copy's directory.

        Raises:
            ValueError: The name is invalid or in use, or there are too many snapshots.
        """
        async with self._taking_turns:
            if self._ports is not None or self._server.broker is None:
                raise ValueError("the broker is not running")
            folder, target = self._folder, self._snapshot_directory(name)
            if folder.exists() and sum(1 for _ in folder.iterdir()) >= _MOST_SNAPSHOTS:
                raise ValueError(f"there are {_MOST_SNAPSHOTS} snapshots: remove some")
            if target.exists():
                raise ValueError(f"snapshot {name} already exists")
            try:
                await take(self._server.broker, target)
            except OSError as error:
                raise ValueError(f"cannot take a snapshot: {error}") from error
            return str(target)

    async def restore(self, name: str) -> None:
        """Replace the data with a snapshot, and restart the broker.

        Raises:
            ValueError: There is no such snapshot, or the broker does not start.
        """
        async with self._taking_turns:
            snapshot = self._snapshot_directory(name)
            check_data(snapshot)
            if self._ports is None:
                await self._crash()
            assert self._ports is not None
            try:
                await in_thread(Work.UPKEEP, put_data, snapshot, self._data_directory)
            except OSError as error:
                raise ValueError(f"{name} cannot be restored: {error}") from error
            await self._begin_again(self._ports)

    # -- inside ------------------------------------------------------------------------------

    def _new_controls(self) -> BrokerControls:
        controls = BrokerControls()
        controls.use_lifecycle(self)
        return controls

    def _remove_data(self) -> None:
        of_metadata = self.config.optional_str("metadata.log.dir")
        for directory in (*self.config.log_directories, of_metadata):
            if directory and Path(directory).is_dir():  # a test may have removed it
                remove_data(Path(directory))

    @property
    def _data_directory(self) -> Path:
        if len(self.config.log_directories) != 1:
            raise ValueError("a broker with several log.dirs does not support snapshots")
        return Path(self.config.log_directories[0]).absolute()

    @property
    def _folder(self) -> Path:
        directory = self._data_directory
        return directory.with_name(f"{directory.name}-snapshots")

    def _snapshot_directory(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a snapshot name: use letters, digits, _ - .")
        return self._folder / name

    async def _crash(self) -> None:
        if self._ports is not None:
            raise ValueError("the broker is not running")
        server = self._server
        self._ports = {listener.name: listener.port for listener in server.bound}
        # Otherwise it would close the response's connection.
        self._http, server.http = server.http, None
        self._controls.server = None
        await server.abandon()

    async def _begin_again(self, ports: dict[str, int]) -> None:
        server = ControlledServer(
            self._controls, self.config, ports=ports, has_http=False, **self._parts
        )
        self._ended_count += 1
        if self._ended_count >= _MOST_ENDED:
            self._ended_count = 0
            collect_frozen()
        try:
            await server.start()
        except (StartError, ConfigError) as error:
            raise ValueError(f"the broker does not start: {error}") from error
        self._server = server
        if self._http is not None:
            server.take_over(self._http)
        self._http = self._ports = None
