"""A quorum whose only controller is in this process."""

from __future__ import annotations

import logging
import socket
from typing import TYPE_CHECKING

from wirebroker.broker.controller_node import ControllerNode
from wirebroker.codecs.errors import KafkaError
from wirebroker.coordinator.controller.controller import Controller
from wirebroker.quorum.channel.controller_channel import LocalChannel
from wirebroker.quorum.membership.own_lifecycle import OwnLifecycle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import Endpoint
    from wirebroker.disks.data_directory import DataDirectory
    from wirebroker.net.listeners.ready_lines import BoundListener
    from wirebroker.quorum.channel.controller_channel import ControllerChannel
    from wirebroker.quorum.controller.quorum_controller import QuorumController
    from wirebroker.quorum.image.metadata_follower import MetadataFollower
    from wirebroker.quorum.raft.raft_figures import RaftFigures
    from wirebroker.storage.files import Files

LOGGER = logging.getLogger("wirebroker")


class OwnQuorum:
    """The controller, and this node as its first broker; see quorum.Quorum."""

    __slots__ = (
        "_channel",
        "_config",
        "_disk_failure",
        "_first_users",
        "_lifecycle",
        "_node",
        "_tell_disk_failure",
    )

    def __init__(
        self,
        config: Config,
        *,
        files: Files,
        clock: Clock,
        first_users: Sequence[MetadataRecord] = (),
    ) -> None:
        """Store the parts."""
        self._config = config
        self._first_users = first_users
        self._node = ControllerNode(
            config,
            clock=clock,
            files=files,
            on_disk_failure=self._disk_failed,
            on_unusable=LOGGER.error,
        )
        # A failure before the broker has its replicas.
        self._disk_failure: tuple[str, OSError] | None = None
        self._tell_disk_failure: Callable[[str, OSError], None] | None = None
        self._channel: LocalChannel | None = None
        self._lifecycle: OwnLifecycle | None = None

    @property
    def controller(self) -> QuorumController | None:
        """The controller, once it is open."""
        return self._node.controller

    def raft_figures(self) -> RaftFigures:
        """Return the figures of the controller's replica."""
        assert self._node.controller is not None, "the quorum is not open"
        return self._node.controller.figures()

    @property
    def listeners(self) -> list[BoundListener]:
        """The controller's listeners."""
        return self._node.bound

    def bind(self) -> None:
        """See Quorum."""
        self._node.bind()

    @property
    def metadata(self) -> MetadataFollower:
        """See Quorum."""
        assert self.controller is not None, "the quorum is not open"
        return self.controller.follower

    @property
    def channel(self) -> ControllerChannel:
        """See Quorum."""
        assert self._channel is not None, "the quorum is not open"
        return self._channel

    @property
    def lifecycle(self) -> OwnLifecycle:
        """See Quorum."""
        assert self._lifecycle is not None, "the quorum is not open"
        return self._lifecycle

    async def find_cluster_id(self) -> str | None:
        """Return None: the directory has the id, or a new one is generated."""
        return None

    async def open(self, metadata_home: str, *, cluster_id: str, directory_id: bytes) -> None:
        """Replay the log and become its leader."""
        node_id = self._config.node_id
        rules = Controller(self._config, node_id=node_id, cluster_id=cluster_id)
        controller = await self._node.open(
            metadata_home, rules, directory_id=directory_id, first_users=self._first_users
        )
        controller.node.snapshots.is_held = True
        self._channel = LocalChannel(controller)
        self._lifecycle = OwnLifecycle(self._channel, controller.follower, node_id=node_id)

    async def endpoints(self, endpoints: Sequence[Endpoint]) -> Sequence[Endpoint]:
        """Return the listeners, with this machine's name for wildcard addresses."""
        return [
            endpoint._replace(host=endpoint.host or socket.gethostname()) for endpoint in endpoints
        ]

    def on_disk_failure(self, tell: Callable[[str, OSError], None]) -> None:
        """See Quorum."""
        self._tell_disk_failure = tell
        if self._disk_failure is not None:
            tell(*self._disk_failure)

    def _disk_failed(self, path: str, error: OSError) -> None:
        if self._tell_disk_failure is None:
            self._disk_failure = path, error
        else:
            self._tell_disk_failure(path, error)

    def watch_disks(self, directories: Sequence[DataDirectory]) -> None:
        """See Quorum."""
        self.lifecycle.watch_disks(directories)

    def disk_failed(self) -> None:
        """See Quorum."""
        self.lifecycle.disk_failed()

    def use_config(self, config: Config) -> None:
        """Apply a configuration to the controller and the broker's cordoned directories."""
        assert self.controller is not None, "the quorum is not open"
        self.controller.rules.use_config(config)
        self.lifecycle.report_cordoned()

    def serve(self) -> None:
        """Start the pending snapshot."""
        assert self.controller is not None, "the quorum is not open"
        self.controller.allow_snapshots()

    async def retire(self) -> None:
        """Move the leaderships to other brokers, if any serve."""
        if self.lifecycle.has_others:
            await self._shut_down()

    async def leave(self) -> int:
        """End this node's leaderships and the controller; return the broker epoch."""
        await self._shut_down()
        await self._node.close()
        self._node.release()
        return self.lifecycle.broker_epoch

    async def _shut_down(self) -> None:
        try:
            await self.lifecycle.shut_down()
        except KafkaError as error:
            # The next start handles this like a kill.
            LOGGER.warning(
                "cannot move the leaderships to other brokers: %s", error.message or error.code.name
            )

    async def give_up(self) -> None:
        """End background tasks and close the ports; leave the log as after a kill."""
        if self._lifecycle is not None:
            await self._lifecycle.end()
        await self._node.end_duties()
        self._node.release()

    async def abandon(self) -> None:
        """See Quorum."""
        await self.lifecycle.end()
        await self._node.abandon()
        self._node.release()
