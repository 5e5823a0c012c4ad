"""Whose controllers this node goes by: its own, or those that the settings name.

    process.roles=broker
    controller.quorum.bootstrap.servers=c1:9093,c2:9093     or controller.quorum.voters=1@c1:9093

A leaf.  Source: Kafka's KafkaConfig, QuorumConfig and KafkaRaftServer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from wirebroker.config.rows.row import ConfigError

if TYPE_CHECKING:
    from wirebroker.config.values import Config

_BOOTSTRAP: Final = "controller.quorum.bootstrap.servers"
_VOTERS: Final = "controller.quorum.voters"
_ADDRESS = re.compile(r"(?:\[([0-9a-fA-F:.%]+)\]|([^\[\]:/@\s]+)):([0-9]{1,5})")
# Where a quorum that is being set up will be told later.
_UNKNOWN: Final = "0.0.0.0"  # noqa: S104 - compared with


def is_member(config: Config) -> bool:
    """Tell whether the controllers are other processes."""
    return set(config.list("process.roles")) == {"broker"}


def is_controller_alone(config: Config) -> bool:
    """Tell whether this process serves no clients."""
    return set(config.list("process.roles")) == {"controller"}


def controllers_of(config: Config) -> list[tuple[str, int]]:
    """Return host and port of the controllers to ask first, each once.

    Raises:
        ConfigError: One is no address.
    """
    texts = [(_BOOTSTRAP, item) for item in config.list(_BOOTSTRAP)]
    texts += [(_VOTERS, item.partition("@")[2]) for item in config.list(_VOTERS)]
    return list(dict.fromkeys(parse_address(text, name) for name, text in texts))


def parse_address(text: str, name: str) -> tuple[str, int]:
    """Read host:port.

    Args:
        text: IPv6 addresses in brackets.
        name: Of the setting, for the error.

    Raises:
        ConfigError: It is none.
    """
    match = _ADDRESS.fullmatch(text.strip())
    if match is None or not 0 < int(match[3]) <= 65535 or match[2] == _UNKNOWN:
        raise ConfigError(f"{name}: {text} cannot be used: write host:port")
    return match[1] or match[2], int(match[3])


def check_quorum(config: Config) -> None:
    """Check that the roles and the controllers that are named fit together.

    Raises:
        ConfigError: They don't.
    """
    voters = {voter.partition("@")[0].strip() for voter in config.list(_VOTERS)}
    if not is_member(config):
        if voters - {str(config.node_id)}:
            raise ConfigError(
                f"{_VOTERS} names other nodes than node.id={config.node_id}: as broker,controller "
                "this node brings its own controller; leave the setting out, or set "
                "process.roles=broker to join them"
            )
        return
    if str(config.node_id) in voters:
        raise ConfigError(
            f"{_VOTERS} names node {config.node_id}: with process.roles=broker this node is no "
            "voter; choose another node.id"
        )
    if not controllers_of(config):
        raise ConfigError(f"process.roles=broker needs controllers to join: set {_BOOTSTRAP}")
