"""A process that is only a controller (process.roles=controller).

Source: Kafka's ControllerServer and SharedServer.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from wirebroker.api.broker import dynamic_config
from wirebroker.base.clock import Clock, SystemClock
from wirebroker.base.threads import until_idle
from wirebroker.broker.controller_node import ControllerNode
from wirebroker.broker.port_file import PortFile
from wirebroker.codecs.errors import KafkaError
from wirebroker.coordinator.controller.controller import Controller
from wirebroker.disks.log_dir_locks import LogDirLocks, why_not_started
from wirebroker.net.listeners.listener import data_files_within, raise_open_file_limit
from wirebroker.storage.files import Files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.image.image_change import ImageChange
    from wirebroker.http.server import HttpServer
    from wirebroker.net.listeners.ready_lines import BoundListener
    from wirebroker.quorum.controller.quorum_controller import QuorumController

logger = logging.getLogger("wirebroker")


class ControllerServer:
    """One controller in one event loop; tests may pass their own clock and files."""

    def __init__(
        self,
        config: Config,
        *,
        port_file: Path | None = None,
        clock: Clock | None = None,
        files: Files | None = None,
        on_failure: Callable[[str], None] | None = None,
    ) -> None:
        """Build it; `on_failure` receives the reason why it cannot continue."""
        self.config = config
        self._on_failure = on_failure or logger.error
        self.files = files or Files(max_open_files=config.int("wirebroker.open.files"))
        self.clock = clock or SystemClock()
        self.node = ControllerNode(
            config,
            clock=self.clock,
            files=self.files,
            on_disk_failure=self._disk_failed,
            on_unusable=self._on_failure,
        )
        self._port_file = PortFile(port_file)
        self._directories = LogDirLocks(config, self.files)
        self.http: HttpServer | None = None

    @property
    def controller(self) -> QuorumController | None:
        """The controller, once it is open."""
        return self.node.controller

    @property
    def bound(self) -> list[BoundListener]:
        """The open listeners, in configuration order."""
        return self.node.bound

    @property
    def controllers(self) -> list[BoundListener]:
        """Empty: `bound` has the controller's listeners."""
        return []

    @property
    def cluster_id(self) -> str:
        """See Server."""
        return self._directories.cluster_id

    @property
    def data_directories(self) -> list[str]:
        """Absolute path of the metadata's directory."""
        return [self._directories.metadata_home]

    async def start(self) -> None:
        """Start all parts; return when other nodes are served.

        Raises:
            StartError: The user can fix the problem.
            ConfigError: A listener cannot be used.
        """
        requested = self.config.int("wirebroker.open.files")
        self.files.bound_open_files(data_files_within(raise_open_file_limit(), wanted=requested))
        try:
            self.node.bind()
            if self.config.list("wirebroker.http.listeners"):
                await self._open_http()
            self._directories.open()
            self._port_file.remove()
            await self._open()
            self._port_file.write(self.bound[0].port)
        except (OSError, KafkaError) as error:
            await self.node.abandon()
            await self._release()
            raise why_not_started(error) from error
        except BaseException:
            await self.node.close()
            await self._release()
            raise

    async def stop(self) -> None:
        """Finish requests in flight, and release everything."""
        self._port_file.remove()
        await self.node.close()
        await until_idle()
        await self._release()

    async def _open(self) -> None:
        node_id = self.config.node_id
        rules = Controller(self.config, node_id=node_id, cluster_id=self.cluster_id)
        controller = await self.node.open(
            self._directories.metadata_home,
            rules,
            directory_id=self._directories.metadata_directory_id,
        )
        rules.use_config(dynamic_config(self.config, controller.follower.image, node_id))

        async def follow(change: ImageChange, image: ClusterImage) -> None:
            if change.configs:
                rules.use_config(dynamic_config(self.config, image, node_id))

        controller.follower.subscribe("the configuration", follow)

    def _disk_failed(self, path: str, error: OSError) -> None:
        self._on_failure(f"the metadata log in {path} cannot be written: {error}")

    def not_ready_reason(self) -> str | None:
        """Return why other nodes are not served, or None."""
        return "starting" if self.node.controller is None else None

    async def _open_http(self) -> None:
        from wirebroker.http.opening import open_http  # noqa: PLC0415 - if asked for
        from wirebroker.metrics.controller_scrape import (  # noqa: PLC0415 - likewise
            add_controller_metrics,
        )

        self.http = await open_http(self.config, not_ready_reason=self.not_ready_reason)
        add_controller_metrics(self.http.routes, self)

    async def _release(self) -> None:
        if self.http is not None:
            await self.http.close()
        self.node.release()
        self._directories.close()
        self.files.close_all()
