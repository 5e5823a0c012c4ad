"""Whether a controller's settings name controllers of other processes.

Only a controller without others may begin a new cluster by itself. An address counts as this node's
if its port is that of a controller listener and its host is the listener's, or, for a listener on
all interfaces, a name of this machine.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final

from wirebroker.config.listeners.listeners import controller_listeners_of, is_wildcard
from wirebroker.config.quorum import bootstrap_servers_of, is_controller, voters_of

if TYPE_CHECKING:
    from wirebroker.config import Config

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def names_other_controllers(config: Config) -> bool:
    """Return whether this node is one of several controllers.

    Raises:
        ConfigError: A listener or an address is invalid.
    """
    if not is_controller(config):
        return False
    if voters_of(config).keys() - {config.node_id}:
        return True
    bootstrap_servers = set(bootstrap_servers_of(config))
    return bool(bootstrap_servers) and not bootstrap_servers <= _own_addresses(config)


def _own_addresses(config: Config) -> set[tuple[str, int]]:
    addresses: set[tuple[str, int]] = set()
    for listener in controller_listeners_of(config):
        hosts = {listener.host} if listener.host else set[str]()
        if is_wildcard(listener.host):
            hosts |= _LOOPBACK | {socket.gethostname()}
        addresses |= {(host, listener.port) for host in hosts}
        if listener.advertised is not None:
            addresses.add((listener.advertised.host, listener.advertised.port or listener.port))
    return addresses
