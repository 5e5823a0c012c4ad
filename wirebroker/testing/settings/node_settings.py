"""What the nodes of a cluster for tests are told, and where they listen.

The controller is apart from all nodes. Clients come to one listener of a node, other nodes to
another; nodes are told a place (node_links.py) where that one, or the controller's, is to be had as
long as the network is whole.
"""

from __future__ import annotations

import random
import socket
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.testing.settings.settings import Setting

HOST: Final = "127.0.0.1"
NODES_LISTENER: Final = "NODES"
CONTROLLER_ID: Final = 100
_MOST_REPLICAS: Final = 3
# Below those that the system gives to outgoing connections, so that a node finds its port again.
_PORTS: Final = range(12_000, 32_000)
_TRIES: Final = 200


class ListenerPorts(NamedTuple):
    """Where a listener of the network between nodes is, and where nodes are told that it is."""

    bound: int
    told: int


def free_port() -> int:
    """Return a port that nobody listens on.

    Raises:
        OSError: None of those that were tried is free.
    """
    chance = random.Random()  # noqa: S311 - no secret
    for _ in range(_TRIES):
        port = chance.choice(_PORTS)
        with socket.socket() as tried:
            try:
                tried.bind((HOST, port))
            except OSError:
                continue
        return port
    raise OSError(f"no port of {_PORTS.start} to {_PORTS.stop} is free")


def node_settings(
    node_id: int,
    *,
    count: int,
    clients: int,
    nodes: ListenerPorts,
    controller: ListenerPorts,
    config: Mapping[str, Setting],
) -> dict[str, Setting]:
    """Return a node's configs.

    Args:
        node_id: Which one it is.
        count: How many nodes there are.
        clients: The port that clients are told.
        nodes: The ports that other nodes go by.
        controller: The ports of the controller.
        config: What the user sets, which comes first.
    """
    here = f"PLAINTEXT://{HOST}:{clients},{NODES_LISTENER}://{HOST}:"
    settings: dict[str, Setting] = {
        "node.id": node_id,
        "process.roles": "broker",
        "listeners": f"{here}{nodes.bound}",
        "advertised.listeners": f"{here}{nodes.told}",
        "inter.broker.listener.name": NODES_LISTENER,
    }
    return {**settings, **_shared_settings(count, controller), **config}


def controller_settings(
    ports: ListenerPorts, count: int, config: Mapping[str, Setting]
) -> dict[str, Setting]:
    """Return the configs of the controller of so many nodes."""
    settings: dict[str, Setting] = {
        "node.id": CONTROLLER_ID,
        "process.roles": "controller",
        "listeners": f"CONTROLLER://{HOST}:{ports.bound}",
        "advertised.listeners": f"CONTROLLER://{HOST}:{ports.told}",
    }
    return {**settings, **_shared_settings(count, ports), **config}


def _shared_settings(count: int, controller: ListenerPorts) -> dict[str, Setting]:
    replicas = min(count, _MOST_REPLICAS)
    names = ("PLAINTEXT", NODES_LISTENER, "CONTROLLER")
    return {
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in names),
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"{CONTROLLER_ID}@{HOST}:{controller.told}",
        "default.replication.factor": replicas,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        # Of three one may be missing, and what was acknowledged is on two.
        "min.insync.replicas": max(1, replicas - 1),
        "transaction.state.log.min.isr": max(1, replicas - 1),
        # A node that died is missed soon, and one that has no processor for a while is not.
        "broker.session.timeout.ms": 3000,
        "broker.heartbeat.interval.ms": 300,
        "replica.lag.time.max.ms": 4000,
    }
