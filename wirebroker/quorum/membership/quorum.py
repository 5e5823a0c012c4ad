"""The source of this node's metadata and its controller."""

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
    from wirebroker.quorum.controller.quorum_controller import QuorumController
    from wirebroker.quorum.image.metadata_follower import MetadataFollower
    from wirebroker.quorum.raft.raft_figures import RaftFigures


class Quorum(Protocol):
    """This node's side of the metadata quorum; its parts exist from `open` on."""

    @property
    def metadata(self) -> MetadataFollower:
        """The applied cluster image."""
        ...

    @property
    def channel(self) -> ControllerChannel:
        """The channel to the active controller."""
        ...

    @property
    def lifecycle(self) -> BrokerLifecycle:
        """This broker's membership."""
        ...

    @property
    def controller(self) -> QuorumController | None:
        """The controller in this process, if any, once it is open."""
        ...

    def raft_figures(self) -> RaftFigures:
        """Return the figures of this node's replica of the metadata log."""
        ...

    @property
    def listeners(self) -> list[BoundListener]:
        """The bound listeners of a controller in this process."""
        ...

    def bind(self) -> None:
        """Bind the ports of a controller in this process.

        Raises:
            StartError: A port is unavailable.
        """
        ...

    async def find_cluster_id(self) -> str | None:
        """Return the cluster's id before a directory is opened, or None if the directory has it.

        Raises:
            StartError: The id is unavailable.
        """
        ...

    async def open(self, metadata_home: str, *, cluster_id: str, directory_id: bytes) -> None:
        """Load the metadata up to the current committed end.

        `metadata_home` is the locked directory of the metadata log; both ids belong to it.

        Raises:
            StartError: The metadata is unavailable or unusable.
            OSError: The disk failed.
        """
        ...

    async def endpoints(self, endpoints: Sequence[Endpoint]) -> Sequence[Endpoint]:
        """Return the listeners to register, with hosts that other nodes can reach.

        Raises:
            StartError: Other nodes cannot reach them.
        """
        ...

    def on_disk_failure(self, tell: Callable[[str, OSError], None]) -> None:
        """Call `tell` with the log's path when its disk fails."""
        ...

    def watch_disks(self, directories: Sequence[DataDirectory]) -> None:
        """Report offline directories among these to the controllers."""
        ...

    def disk_failed(self) -> None:
        """Report now that a directory has failed."""
        ...

    def use_config(self, config: Config) -> None:
        """Apply a changed configuration."""
        ...

    def serve(self) -> None:
        """Start work that was postponed for a quick start."""
        ...

    async def retire(self) -> None:
        """Move the leaderships to other brokers while this node still serves."""
        ...

    async def leave(self) -> int:
        """Stop following; return the broker epoch of the clean stop."""
        ...

    async def give_up(self) -> None:
        """Clean up after a failed start."""
        ...

    async def abandon(self) -> None:
        """End as if killed."""
        ...
