"""The first voters of a dynamic quorum (kraft.version 1).

    1@host1:9093:JEXY6aqzQY-32P5TStzaFg,2@[::1]:9093:MvDxzVmcRsaTz33bUuRU6A

Each has a node id, an address and the id of its metadata directory. All nodes of the quorum are
formatted with the same list.

Source: Kafka's DynamicVoters and StorageTool (KIP-853).
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.primitives import random_uuid, uuid_from_text
from wirebroker.codecs.records.control import Voter, VoterEndpoint
from wirebroker.config.listeners.listeners import controller_listeners_of
from wirebroker.config.rows.row import ConfigError

if TYPE_CHECKING:
    from wirebroker.config import Config

VOTERS: Final = "controller.quorum.voters"
DEFAULT_LISTENER: Final = "CONTROLLER"
_NO_QUORUM: Final = (
    f"Because {VOTERS} is not set on this controller, you must specify one of the following:"
    " --standalone, --initial-controllers, or --no-initial-controllers."
)
_TWO_QUORUMS: Final = (
    f"You cannot specify {VOTERS} and format the node with --initial-controllers or --standalone."
    f" If you want to use dynamic quorum, please remove {VOTERS} and specify"
    " controller.quorum.bootstrap.servers instead."
)
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,10}")
_GREATEST_ID: Final = (1 << 31) - 1
_GREATEST_PORT: Final = 65535
# The levels of kraft.version that Kafka's tool and this version support.
_LEVELS: Final = (0, 1)


class QuorumFlags(NamedTuple):
    """The flags that determine the first voters; at most one is given.

    Attributes:
        is_standalone: This node is the only voter.
        joins: The quorum exists, and this node may become a voter later.
        listed: The voters.
    """

    is_standalone: bool = False
    joins: bool = False
    listed: str | None = None


def first_voters(config: Config, flags: QuorumFlags) -> tuple[Voter, ...]:
    """Return the first voters; none for static voters and for a node that joins a quorum.

    Raises:
        ConfigError: The flags contradict each other or the configuration.
    """
    if [flags.is_standalone, flags.joins, flags.listed is not None].count(True) > 1:
        raise ConfigError(
            "give one of --standalone, --no-initial-controllers and --initial-controllers"
        )
    is_formed = flags.is_standalone or flags.listed is not None
    if is_formed and config.list(VOTERS):
        raise ConfigError(_TWO_QUORUMS)
    if flags.listed is not None:
        names = config.list("controller.listener.names")
        return parse_voters(flags.listed, names[0] if names else DEFAULT_LISTENER)
    if flags.is_standalone:
        return (standalone_voter(config),)
    if is_controller(config) and not flags.joins and not config.list(VOTERS):
        raise ConfigError(_NO_QUORUM)
    return ()


def is_controller(config: Config) -> bool:
    """Return whether a node has the controller role."""
    return "controller" in config.list("process.roles")


def standalone_voter(config: Config, directory_id: bytes | None = None) -> Voter:
    """Return this node as the only voter; without `directory_id` it gets a random one.

    Raises:
        ConfigError: It has no controller, or no listener for one.
    """
    if not is_controller(config):
        raise ConfigError("You can only use --standalone on a controller.")
    listeners = controller_listeners_of(config)
    if not listeners:
        raise ConfigError(
            "a voter needs a listener: add one to listeners and name it in"
            " controller.listener.names"
        )
    # As in Kafka, the leader adds its other listeners later.
    listener = listeners[0]
    address = listener.advertised or listener
    endpoint = VoterEndpoint(listener.name, address.host or "localhost", address.port)
    return Voter(config.node_id, directory_id or random_uuid(), (endpoint,), *_LEVELS)


def parse_voters(text: str, listener_name: str = DEFAULT_LISTENER) -> tuple[Voter, ...]:
    """Parse a list of voters; `listener_name` is the controllers' first listener.

    Raises:
        ConfigError: It is invalid; the message is that of Kafka's tool.
    """
    parts = [part for part in text.strip().split(",") if part]
    if not parts:
        raise ConfigError("No voters given.")
    voters: dict[int, Voter] = {}
    for part in parts:
        voter = _parse_voter(part.strip(), listener_name.upper())
        if voter.voter_id in voters:
            raise ConfigError(f"Node id {voter.voter_id} was specified more than once.")
        voters[voter.voter_id] = voter
    return tuple(voters[voter_id] for voter_id in sorted(voters))


def _parse_voter(text: str, listener_name: str) -> Voter:
    id_text, at, address = text.partition("@")
    if not at:
        raise ConfigError("No @ found in dynamic voter string.")
    if not id_text:
        raise ConfigError("Invalid @ at beginning of dynamic voter string.")
    voter_id = _number(id_text, "node id")
    if voter_id < 0:
        raise ConfigError(f"Invalid negative node id {voter_id} in dynamic voter string.")
    host, rest = _split_host(address)
    port_text, colon, directory_text = rest.partition(":")
    if not colon:
        raise ConfigError("No colon following port could be found.")
    port = _number(port_text, "port")
    if not 0 <= port <= _GREATEST_PORT:
        raise ConfigError(f"Invalid port {port} in dynamic voter string.")
    try:
        directory_id = uuid_from_text(directory_text)
    except ValueError:
        raise ConfigError("Failed to parse directory ID in dynamic voter string.") from None
    endpoint = VoterEndpoint(listener_name, _java_host(host), port)
    return Voter(voter_id, directory_id, (endpoint,), *_LEVELS)


def _java_host(host: str) -> str:
    """Return a host as Java's InetSocketAddress shows it."""
    if ":" not in host:
        return host or "localhost"
    try:
        groups = IPv6Address(host).exploded.split(":")
    except ValueError:
        return host
    return ":".join(f"{int(group, 16):x}" for group in groups)


def _split_host(address: str) -> tuple[str, str]:
    """Return the host of host:port:directory, and the text after its colon."""
    if not address:
        raise ConfigError("No hostname found after node id.")
    if address.startswith("["):
        host, bracket, rest = address[1:].partition("]")
        if not bracket:
            raise ConfigError("Hostname began with left bracket, but no right bracket was found.")
        if not rest.startswith(":"):
            raise ConfigError("Port section must start with a colon.")
        return host, rest[1:]
    host, colon, rest = address.partition(":")
    if not colon:
        raise ConfigError("No colon following hostname could be found.")
    return host, rest


def _number(text: str, kind: str) -> int:
    if not _NUMBER.fullmatch(text) or not -_GREATEST_ID - 1 <= int(text) <= _GREATEST_ID:
        raise ConfigError(f"Failed to parse {kind} in dynamic voter string.")
    return int(text)
