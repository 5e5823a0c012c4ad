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


def controllers_of(config: Settings) -> list[tuple[str, int]]:
    """Return the distinct addresses of the controllers to contact first.

    Raises:
        ConfigError: An item is not an address.
    """
    texts = [(_BOOTSTRAP, item) for item in config.list(_BOOTSTRAP)]
    texts += [(_VOTERS, item.partition("@")[2]) for item in config.list(_VOTERS)]
    return list(dict.fromkeys(parse_address(text, name) for name, text in texts))


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
    voters = {voter.partition("@")[0].strip() for voter in config.list(_VOTERS)}
    if not is_member(config):
        if voters - {str(config.node_id)}:
            raise ConfigError(
                f"{_VOTERS} names nodes other than node.id={config.node_id}: with "
                "process.roles=broker,controller this node is the only voter; remove the "
                "setting, or set process.roles=broker to join the other nodes"
            )
        return
    if str(config.node_id) in voters:
        raise ConfigError(
            f"{_VOTERS} names node {config.node_id}: with process.roles=broker this node is not a "
            "voter; choose another node.id"
        )
    if not controllers_of(config):
        raise ConfigError(f"process.roles=broker needs controllers to join: set {_BOOTSTRAP}")
