"""The place of this node's controller in its quorum, and its registration, from the configuration.

| settings | voters while the log contains none |
| --- | --- |
| `controller.quorum.voters` | those |
| `controller.quorum.bootstrap.servers` names other nodes | none: the log contains them |
| neither | this node alone |

Source: Kafka's QuorumConfig and KafkaRaftManager.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from wirebroker.config.quorum import (
    bootstrap_servers_of,
    controllers_of,
    has_other_voters,
    is_controller_alone,
)
from wirebroker.coordinator.raft.model.replica_key import bootstrap_destinations
from wirebroker.quorum.controller.membership import Membership, alone
from wirebroker.quorum.raft.quorum_settings import static_voters

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import Endpoint
    from wirebroker.coordinator.raft.model.replica_key import Destination
    from wirebroker.coordinator.raft.protocol.messages import RaftRequest, RaftResponse
    from wirebroker.quorum.controller.quorum_controller import QuorumController
    from wirebroker.quorum.membership.controller_registration import ControllerRegistration
    from wirebroker.quorum.raft.raft_channel import RaftTransport


class TransportOnDemand:
    """Connections that are prepared when the first request is sent.

    A node that is the only voter sends none until another node is added.
    """

    __slots__ = ("_open", "_transport")

    def __init__(self, open_transport: Callable[[], RaftTransport]) -> None:
        self._open = open_transport
        self._transport: RaftTransport | None = None

    async def request(self, destination: Destination, request: RaftRequest) -> RaftResponse:
        """See RaftTransport."""
        if self._transport is None:
            self._transport = self._open()
        return await self._transport.request(destination, request)

    def outcome(self, node_id: int) -> str:
        """See RaftTransport."""
        return "" if self._transport is None else self._transport.outcome(node_id)

    def abort(self) -> None:
        """See RaftTransport."""
        if self._transport is not None:
            self._transport.abort()


def membership_of(
    config: Config, *, clock: Clock, directory_id: bytes, endpoints: Sequence[Endpoint]
) -> Membership:
    """Return the place of a node with these controller listeners.

    Raises:
        ConfigError: The connections to the other voters cannot be used.
    """
    own = alone(config.node_id, directory_id, endpoints)
    if not endpoints:
        return own
    name = endpoints[0].name
    configured = static_voters(config, name)
    servers = [server for server in bootstrap_servers_of(config) if not _is_own(server, endpoints)]
    voters = configured if servers or configured else own.static_voters

    def open_transport() -> RaftTransport:
        return _channel(config, clock, name)

    has_others = len(voters) > 1 or bool(servers)
    return Membership(
        directory_id,
        endpoints,
        voters,
        bootstrap_destinations(servers),
        name,
        open_transport() if has_others else TransportOnDemand(open_transport),
        random.Random(),  # noqa: S311 - timeouts, no secrets
        may_grow=is_controller_alone(config) or has_other_voters(config),
    )


def _is_own(server: tuple[str, int], endpoints: Sequence[Endpoint]) -> bool:
    return any((endpoint.host, endpoint.port) == server for endpoint in endpoints)


def _channel(config: Config, clock: Clock, listener_name: str) -> RaftTransport:
    # A node without other voters does not need the modules of clients.
    from wirebroker.quorum.raft.raft_connections import raft_channel  # noqa: PLC0415

    return raft_channel(config, clock, node_id=config.node_id, listener_name=listener_name)


def registration_of(
    config: Config, clock: Clock, controller: QuorumController
) -> ControllerRegistration:
    """Return the registration of one of several controllers.

    Raises:
        ConfigError: The connections to the other controllers cannot be used.
    """
    from wirebroker.config.listeners.listeners import to_controllers  # noqa: PLC0415
    from wirebroker.net.client.settings import PeerAddress  # noqa: PLC0415
    from wirebroker.quorum.channel.remote_channel import RemoteChannel  # noqa: PLC0415
    from wirebroker.quorum.membership.cluster_lookup import (  # noqa: PLC0415
        controllers_at,
        registered_controllers,
    )
    from wirebroker.quorum.membership.controller_registration import (  # noqa: PLC0415
        ControllerRegistration,
    )
    from wirebroker.security.login.outgoing import connection_method  # noqa: PLC0415

    name = controller.endpoints[0].name
    controllers = controllers_at(
        [PeerAddress(*address) for address in controllers_of(config)],
        clock,
        way=connection_method(to_controllers(config)),
        node_id=config.node_id,
        more=lambda: list(registered_controllers(controller.follower.image, name).values()),
    )
    channel = RemoteChannel(controllers, clock)
    return ControllerRegistration(channel, controller.follower, controller.registration)
