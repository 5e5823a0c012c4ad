"""The broker of `wirebroker serve --test-mode`: it may crash and start while the process goes on.

What tests take hold of (the rig), and HTTP by which they do, outlive each broker; the next one is
another RigServer on the same data, which listens where the last one did.

Snapshots lie beside the data, in `<data directory>-snapshots`, by names that peers choose.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.garbage import collect_kept
from wirebroker.base.threads import Work, in_thread
from wirebroker.config import ConfigError, StartError
from wirebroker.net.client.settings import PeerAddress
from wirebroker.testing.data.data_copies import check_data, put_data, remove_data
from wirebroker.testing.data.snapshots import take
from wirebroker.testing.test_mode.rig import Rig
from wirebroker.testing.test_mode.rig_server import RigServer

if TYPE_CHECKING:
    from wirebroker.config import Config
    from wirebroker.http.server import HttpServer
    from wirebroker.net.listeners.open_listeners import OpenListeners
    from wirebroker.net.listeners.ready_lines import BoundListener

_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
_MOST_SNAPSHOTS: Final = 100
# So many brokers that have ended are garbage at most: 5 MB.
_MOST_ENDED: Final = 32


class RestartableBroker:
    """One broker after the other, on the same data.

    Attributes:
        config: What all of them are set to.
    """

    def __init__(self, config: Config, **parts: Any) -> None:
        """Prepare the first; the parts are those of Server."""
        self.config = config
        self._parts = parts
        self._rig = self._new_rig()
        self._server = RigServer(self._rig, config, **parts)
        self._taking_turns = asyncio.Lock()
        # Since garbage was collected.
        self._ended_count = 0
        # While no broker runs: what the next one takes over.
        self._http: HttpServer | None = None
        self._ports: dict[str, int] | None = None

    # -- as a process has it -----------------------------------------------------------------

    async def start(self) -> None:
        """Bring everything up; see Server."""
        await self._server.start()

    async def stop(self) -> None:
        """Stop it cleanly, if it runs."""
        async with self._taking_turns:
            if self._ports is None:
                await self._server.stop()
            elif self._http is not None:
                await self._http.close()

    @property
    def listeners(self) -> OpenListeners | None:
        """What clients connect to; None before the start."""
        return self._server.listeners

    @property
    def bound(self) -> list[BoundListener]:
        """The open listeners."""
        return self._server.bound

    @property
    def controllers(self) -> list[BoundListener]:
        """The open listeners of its controller."""
        return self._server.controllers

    @property
    def cluster_id(self) -> str:
        """The cluster that its data belongs to."""
        return self._server.cluster_id

    @property
    def data_directories(self) -> list[str]:
        """Where its data lies."""
        return self._server.data_directories

    @property
    def http(self) -> HttpServer | None:
        """What tests ask by, if it is served."""
        return self._server.http

    # -- as tests have it --------------------------------------------------------------------

    async def crash(self) -> None:
        """End the broker as by a kill; see Server.abandon.

        Raises:
            ValueError: It does not run.
        """
        async with self._taking_turns:
            await self._crash()

    async def begin_again(self) -> None:
        """Start a broker where one has crashed.

        Raises:
            ValueError: It runs, or it does not start; the text says why.
        """
        async with self._taking_turns:
            if self._ports is None:
                raise ValueError("the broker runs")
            await self._begin_again(self._ports)

    async def reset(self) -> PeerAddress:
        """Have an empty broker run in place of the one that runs, or has crashed.

        Nothing is left of data, connections, faults, requests and the clock; snapshots stay. It
        listens where the configuration says: elsewhere than before, if that leaves the port open.

        Returns:
            Where its first listener is.

        Raises:
            ValueError: It does not start; the text says why.
        """
        async with self._taking_turns:
            if self._ports is None:
                await self._crash()
            self._rig = self._new_rig()
            try:
                await in_thread(Work.UPKEEP, self._remove_data)
            except OSError as error:
                raise ValueError(f"its data cannot be removed: {error}") from error
            await self._begin_again({})
            return PeerAddress(*self._server.address)

    async def take_snapshot(self, name: str) -> str:
        """Copy what the broker holds, and return where it lies.

        Raises:
            ValueError: The name cannot be used, there is one, or there are many.
        """
        async with self._taking_turns:
            if self._ports is not None or self._server.broker is None:
                raise ValueError("the broker does not run")
            folder, target = self._folder, self._place_of(name)
            if folder.exists() and sum(1 for _ in folder.iterdir()) >= _MOST_SNAPSHOTS:
                raise ValueError(f"there are {_MOST_SNAPSHOTS} snapshots: remove some")
            if target.exists():
                raise ValueError(f"there is a snapshot {name} already")
            try:
                await take(self._server.broker, target)
            except OSError as error:
                raise ValueError(f"no snapshot can be taken: {error}") from error
            return str(target)

    async def restore(self, name: str) -> None:
        """Put the broker back to a snapshot: it ends, and starts on what was there then.

        Raises:
            ValueError: There is none of this name, or it cannot be started on.
        """
        async with self._taking_turns:
            snapshot = self._place_of(name)
            check_data(snapshot)
            if self._ports is None:
                await self._crash()
            assert self._ports is not None
            try:
                await in_thread(Work.UPKEEP, put_data, snapshot, self._data_directory)
            except OSError as error:
                raise ValueError(f"{name} cannot be put in place: {error}") from error
            await self._begin_again(self._ports)

    # -- inside ------------------------------------------------------------------------------

    def _new_rig(self) -> Rig:
        rig = Rig()
        rig.use_life(self)
        return rig

    def _remove_data(self) -> None:
        of_metadata = self.config.optional_str("metadata.log.dir")
        for each in (*self.config.log_directories, of_metadata):
            if each and Path(each).is_dir():  # a test may have taken one away
                remove_data(Path(each))

    @property
    def _data_directory(self) -> Path:
        if len(self.config.log_directories) != 1:
            raise ValueError("a broker with several log.dirs has no snapshots")
        return Path(self.config.log_directories[0]).absolute()

    @property
    def _folder(self) -> Path:
        directory = self._data_directory
        return directory.with_name(f"{directory.name}-snapshots")

    def _place_of(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a snapshot: letters, digits, _ - .")
        return self._folder / name

    async def _crash(self) -> None:
        if self._ports is not None:
            raise ValueError("the broker does not run")
        server = self._server
        self._ports = {each.name: each.port for each in server.bound}
        # Else it would close what the answer goes by.
        self._http, server.http = server.http, None
        self._rig.server = None
        await server.abandon()

    async def _begin_again(self, ports: dict[str, int]) -> None:
        server = RigServer(self._rig, self.config, ports=ports, has_http=False, **self._parts)
        self._ended_count += 1
        if self._ended_count >= _MOST_ENDED:
            self._ended_count = 0
            collect_kept()
        try:
            await server.start()
        except (StartError, ConfigError) as error:
            raise ValueError(f"the broker does not start: {error}") from error
        self._server = server
        if self._http is not None:
            server.take_over(self._http)
        self._http = self._ports = None
