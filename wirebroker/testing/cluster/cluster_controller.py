"""The controller of a test cluster."""

from __future__ import annotations

import shutil
import weakref
from typing import TYPE_CHECKING

from wirebroker.broker.controller_server import ControllerServer
from wirebroker.config.sources.sources import load_config
from wirebroker.testing.data.folders import new_folder
from wirebroker.testing.faults.fault_table import FaultTable
from wirebroker.testing.faults.faulty_files import FaultyFiles
from wirebroker.testing.hosts.process_log import PROCESS_LOG
from wirebroker.testing.settings.node_settings import controller_settings
from wirebroker.testing.settings.settings import as_texts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from wirebroker.testing.settings.node_settings import ListenerPorts
    from wirebroker.testing.settings.settings import Setting


class ClusterController:
    """A controller in the tests' process, so that any node may die; it never syncs to disk."""

    def __init__(self) -> None:
        self._folder = new_folder()
        self._clean = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._server: ControllerServer | None = None

    async def start(self, ports: ListenerPorts, count: int, config: Mapping[str, Setting]) -> None:
        """Start it for `count` nodes, which may then join."""
        settings = as_texts(controller_settings(ports, count, config))
        loaded = load_config(
            file=None, environment={}, flags=settings, data_directory=str(self.directory)
        )
        files = FaultyFiles(FaultTable())
        server = ControllerServer(loaded, files=files)
        PROCESS_LOG.open()
        try:
            await server.start()
        except BaseException:
            PROCESS_LOG.stop_listening()
            raise
        self._server = server

    @property
    def directory(self) -> Path:
        """The data directory."""
        return self._folder / "data"

    async def stop(self) -> None:
        """Stop it if it is running; keep its data."""
        server, self._server = self._server, None
        if server is not None:
            try:
                await server.stop()
            finally:
                PROCESS_LOG.stop_listening()

    async def close(self) -> None:
        """Stop it and remove its data."""
        try:
            await self.stop()
        finally:
            self._clean()
