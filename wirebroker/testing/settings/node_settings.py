"""Settings and ports of a test cluster; its nodes are connected by node_links.py."""

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
# Below the ephemeral ports: a restarted broker can bind its port.
_PORTS: Final = range(12_000, 32_000)
_TRIES: Final = 200


class ListenerPorts(NamedTuple):
    """A listener's own port, and the one that nodes connect to."""

    bound: int
    told: int


def free_port() -> int:
    """Return a free port.

    Raises:
        OSError: No free port was found.
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
    """Return the configs of one of `count` nodes; `clients` is its port, `config` overrides."""
    listeners_prefix = f"PLAINTEXT://{HOST}:{clients},{NODES_LISTENER}://{HOST}:"
    settings: dict[str, Setting] = {
        "node.id": node_id,
        "process.roles": "broker",
        "listeners": f"{listeners_prefix}{nodes.bound}",
        "advertised.listeners": f"{listeners_prefix}{nodes.told}",
        "inter.broker.listener.name": NODES_LISTENER,
    }
    return {**settings, **_shared_settings(count, controller), **config}


def controller_settings(
    ports: ListenerPorts, count: int, config: Mapping[str, Setting]
) -> dict[str, Setting]:
    """Return the controller's configs."""
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
        # One of three may be down.
        "min.insync.replicas": max(1, replicas - 1),
        "transaction.state.log.min.isr": max(1, replicas - 1),
        # Detects a dead node soon, but tolerates one without CPU.
        "broker.session.timeout.ms": 3000,
        "broker.heartbeat.interval.ms": 300,
        "replica.lag.time.max.ms": 4000,
    }
