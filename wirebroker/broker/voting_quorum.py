"""A quorum of several voters, of which one is in this process, next to its broker.

The broker reads the metadata of the controller in its process, and sends its requests to the active
controller, wherever that is, over the controllers' listeners.

Source: Kafka's SharedServer, with the roles broker and controller.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from wirebroker.base.clock import pause
from wirebroker.broker.controller_node import ControllerNode
from wirebroker.config import StartError
from wirebroker.config.listeners.listeners import is_wildcard
from wirebroker.coordinator.controller.controller import Controller
from wirebroker.coordinator.controller.image.cluster_image import METADATA_VERSION
from wirebroker.quorum.membership.joined_quorum import JoinedQuorum, check_joinable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import Endpoint
    from wirebroker.net.listeners.ready_lines import BoundListener
    from wirebroker.quorum.controller.quorum_controller import QuorumController
    from wirebroker.quorum.raft.raft_figures import RaftFigures
    from wirebroker.storage.files import Files

LOGGER = logging.getLogger("wirebroker")

_SOON_S: Final = 0.05
# A controlled shutdown without a leader ends after this time: the other voters have stopped, too.
_LEADERLESS_S: Final = 10.0


class VotingQuorum(JoinedQuorum):
    """This broker's side of a quorum in which its own process votes; see quorum.Quorum."""

    __slots__ = ("_first_users", "_node")

    def __init__(
        self,
        config: Config,
        *,
        files: Files,
        clock: Clock,
        on_failure: Callable[[str], None],
        first_users: Sequence[MetadataRecord] = (),
    ) -> None:
        """`first_users` are records for a new cluster."""
        super().__init__(config, files=files, clock=clock, on_failure=on_failure)
        self._node = ControllerNode(
            config,
            clock=clock,
            files=files,
            on_disk_failure=self._disk_failed,
            on_unusable=self._fail,
        )
        self._first_users = first_users

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

    async def find_cluster_id(self) -> str | None:
        """Return None: the directory or the configuration has the id."""
        return None

    async def open(self, metadata_home: str, *, cluster_id: str, directory_id: bytes) -> None:
        """Take part in the quorum, and wait for a leader and its committed metadata."""
        config = self._config
        rules = Controller(config, node_id=config.node_id, cluster_id=cluster_id)
        controller = await self._node.open(
            metadata_home, rules, directory_id=directory_id, first_users=self._first_users
        )
        self.metadata = controller.follower
        await self._until_led(controller)
        check_joinable(self.metadata.image, config)
        self._lifecycle = self._new_lifecycle()

    def _has_leader(self) -> bool:
        controller = self._node.controller
        return controller is not None and controller.node.has_working_leader

    def _disk_failed(self, path: str, error: OSError) -> None:
        self._fail(f"the metadata log in {path} cannot be written: {error}")

    async def _until_led(self, controller: QuorumController) -> None:
        node, follower = controller.node, controller.follower
        deadline = self._clock.monotonic() + self._patience_s
        while not (
            node.has_working_leader
            and METADATA_VERSION in follower.image.features
            # The leader's first record is applied, and so all earlier ones.
            and follower.image.epoch == node.leadership.epoch
        ):
            if self._failure is not None:
                raise StartError(self._failure, "see docs/controller.md")
            if self._clock.monotonic() >= deadline:
                raise StartError(
                    f"no controller leads after {self._patience_s:g} s: {self._node.voters}",
                    "start a majority of the voters within that time",
                )
            await pause(_SOON_S)

    async def endpoints(self, endpoints: Sequence[Endpoint]) -> Sequence[Endpoint]:
        """Return the listeners, with the host of the own controller for wildcard addresses."""
        assert self.controller is not None, "the quorum is not open"
        host = self.controller.endpoints[0].host
        return [
            endpoint._replace(host=host) if is_wildcard(endpoint.host) else endpoint
            for endpoint in endpoints
        ]

    def use_config(self, config: Config) -> None:
        """Apply a configuration to the controller, and report the broker's changes."""
        assert self.controller is not None, "the quorum is not open"
        self.controller.rules.use_config(config)
        super().use_config(config)

    async def retire(self) -> None:
        """Request a controlled shutdown while a controller leads."""
        retiring = asyncio.create_task(super().retire(), name="controlled shutdown")
        led_at = self._clock.monotonic()
        assert self.controller is not None, "the quorum is not open"
        while not retiring.done():
            await asyncio.wait([retiring], timeout=_SOON_S)
            now = self._clock.monotonic()
            if self.controller.node.has_working_leader:
                led_at = now
            elif now - led_at >= _LEADERLESS_S:
                LOGGER.warning("stopping without moving the leaderships: no controller leads")
                retiring.cancel()
                await asyncio.wait([retiring])
                return
        await retiring

    async def leave(self) -> int:
        """Stop the broker's side; then the controller resigns."""
        await super().abandon()
        await self._node.close()
        self._node.release()
        return self.lifecycle.broker_epoch

    async def abandon(self) -> None:
        """End both roles as if killed; may be repeated."""
        await super().abandon()
        await self._node.abandon()
        self._node.release()
