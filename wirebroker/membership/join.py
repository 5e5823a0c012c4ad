"""`wirebroker join`: settings for a member that has no file, made of the cluster and a directory.

A directory that was used before says which node it is; for a new one the lowest id is taken that
neither a broker nor a controller of the cluster has. Of several that join at a time one gets it:
the others choose again (joining.py).
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wirebroker.clock import SystemClock
from wirebroker.config.listeners import to_controllers
from wirebroker.config.properties import parse_properties
from wirebroker.config.quorum import parse_address
from wirebroker.config.sources import load_config
from wirebroker.membership.quorum_image import lowest_free_id, read_image
from wirebroker.net.client.settings import PeerAddress
from wirebroker.security.outgoing import way_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.config import Config

_META_PROPERTIES: Final = "meta.properties"
_DATA_DIRECTORY: Final = "./data"


def config_of_member(
    controller: str,
    *,
    flags: Mapping[str, str],
    node_id: int,
    data_directory: str | None = None,
    host: str | None = None,
    port: int | None = None,
) -> Config:
    """Return the configuration of a broker that joins the controllers at an address.

    Args:
        controller: host:port of one of them.
        flags: Other settings, by name.
        node_id: Which broker it is.
        data_directory: Where its data lies.
        host: Where it listens.
        port: Where it listens; 0 for a free one.

    Raises:
        ConfigError: Something that was given cannot be used.
    """
    address = _address_of(controller)
    directory = _directory_of(flags, data_directory)
    member = {
        "process.roles": "broker",
        "node.id": str(node_id),
        "controller.quorum.bootstrap.servers": str(address),
        "controller.listener.names": "CONTROLLER",
        "listeners": "PLAINTEXT://127.0.0.1:9092",
    }
    return load_config(
        file=None,
        environment=os.environ,
        flags={**member, **flags},
        data_directory=directory if "log.dirs" not in flags else None,
        host=host,
        port=port,
        is_one_node=False,
    )


def node_id_of_directory(flags: Mapping[str, str], data_directory: str | None) -> int | None:
    """Return which node the directory belongs to; None if it is new. See config_of_member."""
    return _node_id_of(_directory_of(flags, data_directory))


def free_node_id(controller: str, config: Config, *, timeout_s: float, above: int = 0) -> int:
    """Return the lowest node id above one that the cluster of a controller has free.

    Args:
        controller: host:port of one of them.
        config: Of whoever joins, but for the id: how controllers are reached.
        timeout_s: How long controllers are looked for, and then asked.
        above: The id that was too low.

    Raises:
        ConfigError: The address is none, or what it takes to reach it cannot be used.
        StartError: The controllers don't answer.
    """
    addresses = [_address_of(controller)]
    looking = read_image(
        addresses, way=way_of(to_controllers(config)), clock=SystemClock(), timeout_s=timeout_s
    )
    image = asyncio.run(looking)
    return lowest_free_id(image, above=above)


def _address_of(controller: str) -> PeerAddress:
    return PeerAddress(*parse_address(controller, "the controller"))


def _directory_of(flags: Mapping[str, str], data_directory: str | None) -> str:
    return data_directory or flags.get("log.dirs") or _DATA_DIRECTORY


def _node_id_of(directory: str) -> int | None:
    """Return which node a directory belongs to, None if it is new or does not say it."""
    try:
        text = (Path(directory) / _META_PROPERTIES).read_text()
        return int(parse_properties(text)["node.id"])
    except (OSError, ValueError, KeyError):
        return None  # what is wrong with it is said when it is opened
