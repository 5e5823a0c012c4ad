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

from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.codecs.records.control import Voter, VoterEndpoint
from wirebroker.config.quorum import (
    bootstrap_servers_of,
    controllers_of,
    has_other_voters,
    is_controller_alone,
    voters_of,
)
from wirebroker.coordinator.raft.model.replica_key import Destination
from wirebroker.coordinator.raft.model.voter_set import VoterSet
from wirebroker.quorum.controller.membership import Membership, alone

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import Endpoint
    from wirebroker.coordinator.raft.protocol.messages import RaftRequest, RaftResponse
    from wirebroker.quorum.controller.quorum_controller import QuorumController
    from wirebroker.quorum.membership.controller_registration import ControllerRegistration
    from wirebroker.quorum.raft.raft_channel import RaftTransport

# Bootstrap servers have ids from here downwards, because their node ids are unknown.
_FIRST_BOOTSTRAP_ID = -2
# Between attempts to connect, as in Kafka.
_RECONNECT_S = (0.05, 0.5)


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
    voters = _static_voters(config, name)
    servers = [server for server in bootstrap_servers_of(config) if not _is_own(server, endpoints)]
    static_voters = VoterSet() if servers and not voters else voters or own.static_voters

    def open_transport() -> RaftTransport:
        return _channel(config, clock, name)

    has_others = len(static_voters) > 1 or bool(servers)
    return Membership(
        directory_id,
        endpoints,
        static_voters,
        [Destination(_FIRST_BOOTSTRAP_ID - i, *server) for i, server in enumerate(servers)],
        name,
        open_transport() if has_others else TransportOnDemand(open_transport),
        random.Random(),  # noqa: S311 - timeouts, no secrets
        may_grow=is_controller_alone(config) or has_other_voters(config),
    )


def _static_voters(config: Config, listener_name: str) -> VoterSet | None:
    voters = voters_of(config)
    if not voters:
        return None
    return VoterSet(
        Voter(node_id, ZERO_UUID, (VoterEndpoint(listener_name, host, port),), 0, 1)
        for node_id, (host, port) in voters.items()
    )


def _is_own(server: tuple[str, int], endpoints: Sequence[Endpoint]) -> bool:
    return any((endpoint.host, endpoint.port) == server for endpoint in endpoints)


def _channel(config: Config, clock: Clock, listener_name: str) -> RaftTransport:
    # A node without other voters does not need the modules of clients.
    from wirebroker.config.listeners.listeners import to_controllers  # noqa: PLC0415
    from wirebroker.net.client.node import Node  # noqa: PLC0415
    from wirebroker.net.client.settings import (  # noqa: PLC0415
        Backoff,
        ClientSettings,
        PeerAddress,
    )
    from wirebroker.quorum.raft.raft_channel import RaftChannel  # noqa: PLC0415
    from wirebroker.security.login.outgoing import connection_method  # noqa: PLC0415

    way = connection_method(to_controllers(config))
    timeout_s = config.int("controller.quorum.request.timeout.ms") / 1000
    settings = ClientSettings(
        client_id=f"raft-client-{config.node_id}",
        connect_timeout_s=timeout_s,
        request_timeout_s=timeout_s,
        reconnect=Backoff(*_RECONNECT_S),
    )

    def make_node(address: PeerAddress) -> Node:
        return Node(
            address,
            dialer=way.dialer,
            handshake=way.handshake,
            settings=settings,
            clock=clock,
            random=random.Random(),  # noqa: S311 - jitter, no secrets
        )

    return RaftChannel(make_node, listener=listener_name, timeout_s=timeout_s)


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
    from wirebroker.quorum.membership.controller_registration import (  # noqa: PLC0415
        ControllerRegistration,
    )
    from wirebroker.quorum.membership.joined_quorum import (  # noqa: PLC0415
        controllers_at,
        registered_controllers,
    )
    from wirebroker.security.login.outgoing import connection_method  # noqa: PLC0415

    name = controller.endpoints[0].name
    controllers = controllers_at(
        [PeerAddress(*address) for address in controllers_of(config)],
        clock,
        way=connection_method(to_controllers(config)),
        node_id=config.node_id,
        more=lambda: registered_controllers(controller.follower.image, name),
    )
    channel = RemoteChannel(controllers, clock)
    return ControllerRegistration(channel, controller.follower, controller.registration)
