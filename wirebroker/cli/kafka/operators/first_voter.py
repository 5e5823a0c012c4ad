"""The first voter of a quorum, from flags of kafka-storage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from wirebroker.codecs.primitives import random_uuid, uuid_from_text

if TYPE_CHECKING:
    from wirebroker.codecs.records.control import Voter
    from wirebroker.config import Config

_VOTERS: Final = "controller.quorum.voters"
_NO_QUORUM: Final = (
    f"Because {_VOTERS} is not set on this controller, you must specify one of the following:"
    " --standalone, --initial-controllers, or --no-initial-controllers."
)
_TWO_QUORUMS: Final = (
    f"You cannot specify {_VOTERS} and format the node with --initial-controllers or --standalone."
    f" If you want to use dynamic quorum, please remove {_VOTERS} and specify"
    " controller.quorum.bootstrap.servers instead."
)


def first_voter(
    config: Config, *, roles: str, is_standalone: bool, joins: bool, listed: str | None
) -> Voter | None:
    """Return this node as the first voter of a dynamic quorum; None for another quorum.

    Raises:
        click.UsageError: The flags contradict each other or the configuration.
    """
    alternatives = [is_standalone, joins, listed is not None]
    if alternatives.count(True) > 1:
        raise click.UsageError(
            "give one of --standalone, --no-initial-controllers and --initial-controllers"
        )
    is_dynamic = is_standalone or listed is not None
    if config.list(_VOTERS):
        if is_dynamic:
            raise click.UsageError(_TWO_QUORUMS)
        return None
    if is_dynamic and "controller" not in roles:
        raise click.UsageError("a node without the controller role is no voter")
    if not any(alternatives) and "controller" in roles:
        raise click.UsageError(_NO_QUORUM)
    if not is_dynamic:
        return None
    return _own_voter(config, random_uuid() if listed is None else _directory_id(listed, config))


def _own_voter(config: Config, directory_id: bytes) -> Voter:
    from wirebroker.codecs.records.control import Voter, VoterEndpoint  # noqa: PLC0415
    from wirebroker.config.listeners.listeners import controller_listeners_of  # noqa: PLC0415 - rarely used

    endpoints = tuple(
        VoterEndpoint(listener.name, listener.host or "localhost", listener.port)
        for listener in controller_listeners_of(config)
    )
    if not endpoints:
        raise click.UsageError("a voter needs a listener that controller.listener.names names")
    return Voter(config.node_id, directory_id, endpoints, 0, 1)


def _directory_id(text: str, config: Config) -> bytes:
    """Return this node's directory id in ID@HOST:PORT:DIRECTORY."""
    other_voters = [
        voter_text
        for voter_text in text.split(",")
        if voter_text.partition("@")[0] != str(config.node_id)
    ]
    if other_voters:
        raise click.UsageError(
            f"--initial-controllers names {other_voters[0]}: a quorum here has one voter, node"
            f" {config.node_id}; format quorums of more with Apache Kafka"
        )
    try:
        return uuid_from_text(text.rpartition(":")[2])
    except ValueError:
        raise click.UsageError(
            f"--initial-controllers {text}: write ID@HOST:PORT:DIRECTORY"
        ) from None
