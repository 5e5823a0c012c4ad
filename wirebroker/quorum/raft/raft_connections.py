"""Opens the connections of a replica to the other replicas, as its configuration says."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from wirebroker.config.listeners.listeners import to_controllers
from wirebroker.net.client.node import Node
from wirebroker.net.client.settings import Backoff, ClientSettings
from wirebroker.quorum.raft.raft_channel import RaftChannel
from wirebroker.security.login.outgoing import connection_method

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock
    from wirebroker.config import Config
    from wirebroker.net.client.settings import PeerAddress
    from wirebroker.quorum.raft.raft_channel import OnRefused

# Between attempts to connect, as in Kafka.
_RECONNECT: Final = Backoff(first_s=0.05, most_s=0.5)


def raft_channel(
    config: Config,
    clock: Clock,
    *,
    node_id: int,
    listener_name: str,
    on_refused: OnRefused | None = None,
) -> RaftChannel:
    """Return connections that are opened when they are used.

    `on_refused` is called when a replica refuses a whole request.

    Raises:
        ConfigError: The connections cannot be used.
    """
    way = connection_method(to_controllers(config))
    timeout_s = config.int("controller.quorum.request.timeout.ms") / 1000
    settings = ClientSettings(
        client_id=f"raft-client-{node_id}",
        connect_timeout_s=timeout_s,
        request_timeout_s=timeout_s,
        reconnect=_RECONNECT,
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

    return RaftChannel(
        make_node, listener=listener_name, timeout_s=timeout_s, on_refused=on_refused
    )
