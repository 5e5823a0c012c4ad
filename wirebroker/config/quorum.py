"""The controllers of a cluster, as the settings name them.

    process.roles=broker,controller                         or controller, or broker
    controller.quorum.voters=1@c1:9093,2@c2:9093            static voters (kraft.version 0)
    controller.quorum.bootstrap.servers=c1:9093,c2:9093     where to find dynamic voters

Source: Kafka's KafkaConfig, QuorumConfig and KafkaRaftServer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from wirebroker.config.rows.row import ConfigError

if TYPE_CHECKING:
    from wirebroker.config.rows.settings import Settings

_BOOTSTRAP: Final = "controller.quorum.bootstrap.servers"
_VOTERS: Final = "controller.quorum.voters"
_AUTO_JOIN: Final = "controller.quorum.auto.join.enable"
_GREATEST_ID: Final = (1 << 31) - 1
_ADDRESS = re.compile(r"(?:\[([0-9a-fA-F:.%]+)\]|([^\[\]:/@\s]+)):([0-9]{1,5})")
# The address of a quorum is not known yet.
_UNKNOWN: Final = "0.0.0.0"  # noqa: S104


def is_member(config: Settings) -> bool:
    """Return whether the controllers are other processes."""
    return set(config.list("process.roles")) == {"broker"}


def is_controller_alone(config: Settings) -> bool:
    """Return whether this process serves no clients."""
    return set(config.list("process.roles")) == {"controller"}


def has_other_voters(config: Settings) -> bool:
    """Return whether a controller of this process is, or may become, one of several voters."""
    is_reachable = is_controller(config) and bool(config.list("controller.listener.names"))
    return is_reachable and (len(voters_of(config)) > 1 or bool(config.list(_BOOTSTRAP)))


def is_controller(config: Settings) -> bool:
    """Return whether this process is a controller, perhaps among others."""
    return "controller" in config.list("process.roles")


def voters_of(config: Settings) -> dict[int, tuple[str, int]]:
    """Return the addresses of the static voters by node id; none if the voters are dynamic.

    Raises:
        ConfigError: An item is not id@host:port.
    """
    voters: dict[int, tuple[str, int]] = {}
    for item in config.list(_VOTERS):
        node_id, at, address = (part.strip() for part in item.partition("@"))
        if not at or not (node_id.isascii() and node_id.isdigit()) or int(node_id) > _GREATEST_ID:
            raise ConfigError(f"{_VOTERS}: {item} cannot be used: write id@host:port")
        voters[int(node_id)] = parse_address(address, _VOTERS)
    return voters


def bootstrap_servers_of(config: Settings) -> list[tuple[str, int]]:
    """Return the addresses of controller.quorum.bootstrap.servers.

    Raises:
        ConfigError: An item is not host:port.
    """
    return [parse_address(item, _BOOTSTRAP) for item in config.list(_BOOTSTRAP)]


def controllers_of(config: Settings) -> list[tuple[str, int]]:
    """Return the distinct addresses of the controllers to contact first.

    Raises:
        ConfigError: An item is not an address.
    """
    return list(dict.fromkeys([*bootstrap_servers_of(config), *voters_of(config).values()]))


def parse_address(text: str, name: str) -> tuple[str, int]:
    """Parse host:port, with IPv6 in brackets; `name` is the setting's.

    Raises:
        ConfigError: It is not an address.
    """
    match = _ADDRESS.fullmatch(text.strip())
    if match is None or not 0 < int(match[3]) <= 65535 or match[2] == _UNKNOWN:
        raise ConfigError(f"{name}: {text} cannot be used: write host:port")
    return match[1] or match[2], int(match[3])


def parse_addresses(text: str, name: str) -> list[tuple[str, int]]:
    """Parse a list host:port,host:port, of at least one address.

    Raises:
        ConfigError: An item is not an address.
    """
    items = [item for item in text.split(",") if item.strip()]
    return [parse_address(item, name) for item in items or [text]]


def check_quorum(config: Settings) -> None:
    """Check that the roles and the controllers are consistent.

    Raises:
        ConfigError: They are not.
    """
    voters, controllers = voters_of(config), controllers_of(config)
    node_id = config.node_id
    if is_controller(config):
        if voters and node_id not in voters:
            raise ConfigError(
                f"{_VOTERS} does not name node.id={node_id}: a node with the controller role is "
                "one of the voters; add it, or set process.roles=broker"
            )
        return
    if config.set_or_default(_AUTO_JOIN):
        raise ConfigError(
            f"{_AUTO_JOIN}=true cannot be used: process.roles=broker is not a controller; remove "
            "the setting, or add the controller role"
        )
    if node_id in voters:
        raise ConfigError(
            f"{_VOTERS} names node {node_id}: with process.roles=broker this node is not a "
            "voter; choose another node.id"
        )
    if not controllers:
        raise ConfigError(f"process.roles=broker needs controllers to join: set {_BOOTSTRAP}")
