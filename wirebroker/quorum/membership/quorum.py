"""Where this node's metadata comes from and who its controller is, for server.py.

    OwnQuorum       a controller of one voter in this process (own_quorum.py)
    JoinedQuorum    controllers in other processes (joined_quorum.py)

Both are opened, registered with, left and closed alike; nothing above knows which one it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import Endpoint
    from wirebroker.disks.data_directory import DataDirectory
    from wirebroker.net.listeners.ready_lines import BoundListener
    from wirebroker.quorum.channel.broker_lifecycle import BrokerLifecycle
    from wirebroker.quorum.channel.controller_channel import ControllerChannel
    from wirebroker.quorum.image.metadata_follower import MetadataFollower


class Quorum(Protocol):
    """One side of the metadata log."""

    @property
    def metadata(self) -> MetadataFollower:
        """The cluster as this node sees it; from `open` on."""
        ...

    @property
    def channel(self) -> ControllerChannel:
        """The way to the active controller; from `open` on."""
        ...

    @property
    def lifecycle(self) -> BrokerLifecycle:
        """This broker's membership; from `open` on."""
        ...

    @property
    def listeners(self) -> list[BoundListener]:
        """The controller's in this process, once they are bound."""
        ...

    def bind(self) -> None:
        """Take the ports of the controller in this process, if it has any.

        Raises:
            StartError: One cannot be had.
        """
        ...

    async def find_cluster_id(self) -> str | None:
        """Return the cluster's id, before a directory is opened; None: the directory tells it.

        Raises:
            StartError: Nobody tells it.
        """
        ...

    async def open(self, metadata_home: str, *, cluster_id: str, directory_id: bytes) -> None:
        """Have the metadata up to what was committed just now.

        Args:
            metadata_home: The log directory in which the metadata log lies, locked.
            cluster_id: Of that directory.
            directory_id: Its own.

        Raises:
            StartError: It cannot be had, or cannot be used here.
            OSError: The disk.
        """
        ...

    async def endpoints(self, endpoints: Sequence[Endpoint]) -> Sequence[Endpoint]:
        """Return what is registered of the listeners: by addresses that others reach them at.

        Args:
            endpoints: Their hosts as configured; a wildcard stands for every interface.

        Raises:
            StartError: Others cannot reach them.
        """
        ...

    def on_disk_failure(self, tell: Callable[[str, OSError], None]) -> None:
        """Have somebody told of the path of the log when its disk has failed."""
        ...

    def watch_disks(self, directories: Sequence[DataDirectory]) -> None:
        """Have the controllers told which of this node's directories are offline."""
        ...

    def disk_failed(self) -> None:
        """Have the controllers told at once: one of these directories has failed."""
        ...

    def use_config(self, config: Config) -> None:
        """Go by a configuration that has changed."""
        ...

    def serve(self) -> None:
        """Take note that the node serves: what was put off for a quick start is done now."""
        ...

    async def retire(self) -> None:
        """Have the leaderships moved to others while this node still serves."""
        ...

    async def leave(self) -> int:
        """Follow and say nothing more; return the broker epoch that the stop counts for."""
        ...

    async def give_up(self) -> None:
        """End after a start that has failed, whatever of it had come about."""
        ...

    async def abandon(self) -> None:
        """End as by a kill."""
        ...
