"""Controllers that this node uses: its own, or those that the settings name.

    process.roles=broker
    controller.quorum.bootstrap.servers=c1:9093,c2:9093     or controller.quorum.voters=1@c1:9093

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
    is_reachable = not is_member(config) and bool(config.list("controller.listener.names"))
    return is_reachable and (len(config.list(_VOTERS)) > 1 or bool(config.list(_BOOTSTRAP)))


def controllers_of(config: Settings) -> list[tuple[str, int]]:
    """Return the distinct addresses of the controllers to contact first.

    Raises:
        ConfigError: An item is not an address.
    """
    return list(dict.fromkeys((*bootstrap_servers_of(config), *voters_of(config).values())))


def bootstrap_servers_of(config: Settings) -> list[tuple[str, int]]:
    """Return the addresses in controller.quorum.bootstrap.servers.

    Raises:
        ConfigError: An item is not an address.
    """
    return [parse_address(item, _BOOTSTRAP) for item in config.list(_BOOTSTRAP)]


def voters_of(config: Settings) -> dict[int, tuple[str, int]]:
    """Return the voters in controller.quorum.voters and their addresses.

    Raises:
        ConfigError: An item is not a node id and an address.
    """
    voters: dict[int, tuple[str, int]] = {}
    for item in config.list(_VOTERS):
        voter_id, _, address = item.partition("@")
        if not voter_id.strip().isdecimal():
            raise ConfigError(f"{_VOTERS}: {item} cannot be used: write id@host:port")
        voters[int(voter_id)] = parse_address(address, _VOTERS)
    return voters


def parse_address(text: str, name: str) -> tuple[str, int]:
    """Parse host:port, with IPv6 in brackets; `name` is the setting's.

    Raises:
        ConfigError: It is not an address.
    """
    match = _ADDRESS.fullmatch(text.strip())
    if match is None or not 0 < int(match[3]) <= 65535 or match[2] == _UNKNOWN:
        raise ConfigError(f"{name}: {text} cannot be used: write host:port")
    return match[1] or match[2], int(match[3])


def check_quorum(config: Settings) -> None:
    """Check that the roles and the controllers are consistent.

    Raises:
        ConfigError: They are not.
    """
    voters = voters_of(config)
    if not is_member(config):
        if voters and config.node_id not in voters:
            raise ConfigError(
                f"{_VOTERS} does not name node.id={config.node_id}: with the role controller this "
                "node is a voter; add it, or set process.roles=broker to join the other nodes"
            )
        if len(voters) > 1 and not config.list("controller.listener.names"):
            raise ConfigError(
                f"{_VOTERS} names other nodes, which need a listener of this controller: add one "
                "to listeners and to controller.listener.names"
            )
        return
    if config.node_id in voters:
        raise ConfigError(
            f"{_VOTERS} names node {config.node_id}: with process.roles=broker this node is not a "
            "voter; choose another node.id"
        )
    if not controllers_of(config):
        raise ConfigError(f"process.roles=broker needs controllers to join: set {_BOOTSTRAP}")
