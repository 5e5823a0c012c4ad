"""`wirebroker join --voter`: what a new voter must know of the quorum that it joins.

Source: Kafka's controller.quorum.auto.join.enable (KIP-853).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.clock import SystemClock
from wirebroker.config.listeners.listeners import to_controllers
from wirebroker.config.quorum import parse_address, parse_addresses
from wirebroker.config.rows.row import ConfigError, StartError
from wirebroker.net.client.errors import PeerError
from wirebroker.net.client.settings import PeerAddress
from wirebroker.quorum.membership.cluster_lookup import controllers_at, find_cluster
from wirebroker.quorum.membership.voters import described_quorum
from wirebroker.security.login.outgoing import connection_method

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.config import Config

_LISTENER: Final = "CONTROLLER"
_NAMES: Final = "controller.listener.names"
_LISTENERS: Final = "listeners"


def settings_of_voter(settings: Mapping[str, str], address: str) -> dict[str, str]:
    """Return the settings that make a joining broker a controller too.

    `settings` are those of the file and the flags; `address` is host:port of its controller
    listener.

    Raises:
        ConfigError: The address is invalid, or the listeners have a controller's already.
    """
    host, port = parse_address(address, "--voter")
    name = settings.get(_NAMES, _LISTENER).partition(",")[0].strip().upper() or _LISTENER
    listeners = settings[_LISTENERS]
    if f"{name}://" in listeners.upper():
        raise ConfigError(f"--voter cannot be used: listeners has {name} already")
    host_text = f"[{host}]" if ":" in host else host
    return {
        "process.roles": "broker,controller",
        "controller.quorum.auto.join.enable": "true",
        _NAMES: name,
        _LISTENERS: f"{listeners},{name}://{host_text}:{port}",
    }


def cluster_id_for_voter(controllers: str, config: Config, *, timeout_s: float) -> str:
    """Return the id of a cluster whose voters are dynamic.

    `controllers` is a list of host:port; `timeout_s` is for finding controllers, and again for a
    response.

    Raises:
        ConfigError: The address or a connection setting is invalid.
        StartError: The controllers do not respond, or the voters are static.
    """
    addresses = [
        PeerAddress(*address) for address in parse_addresses(controllers, "the controller")
    ]
    return asyncio.run(_cluster_id(addresses, config, timeout_s))


async def _cluster_id(addresses: list[PeerAddress], config: Config, timeout_s: float) -> str:
    clock = SystemClock()
    way = connection_method(to_controllers(config))
    controllers = controllers_at(addresses, clock, way=way)
    try:
        cluster_id, _ = await find_cluster(controllers, config, clock=clock, timeout_s=timeout_s)
        async with asyncio.timeout(timeout_s):
            code, described = await described_quorum(controllers, timeout_s)
    except (PeerError, TimeoutError) as error:
        reason = str(error) or f"no leader responded within {timeout_s:g} s"
        raise StartError(
            f"cannot get the voters from the controllers: {reason}",
            "check that a majority of the controllers runs",
        ) from error
    finally:
        await controllers.close()
    if not code and not any(map(_has_dynamic_voters, described)):
        raise StartError(
            "the voters of this cluster are static (kraft.version 0): none can be added",
            "run `wirebroker features upgrade kraft.version=1` first",
        )
    return cluster_id


def _has_dynamic_voters(partition: Any) -> bool:
    """Return whether the leader knows its own directory, which it needs for dynamic voters."""
    return any(
        voter.replica_id == partition.leader_id and any(voter.replica_directory_id)
        for voter in partition.current_voters
    )
