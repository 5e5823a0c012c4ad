"""`wirebroker join`: settings for a member that has no file, made of the cluster and a directory.

A directory that was used before says which node it is; for a new one the lowest id is taken that
neither a broker nor a controller of the cluster has.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wirebroker.clock import SystemClock
from wirebroker.config.properties import parse_properties
from wirebroker.config.quorum import parse_address
from wirebroker.config.sources import load_config
from wirebroker.membership.quorum_image import lowest_free_id, read_image
from wirebroker.net.client.settings import PeerAddress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.config import Config

_META_PROPERTIES: Final = "meta.properties"
_DATA_DIRECTORY: Final = "./data"
_LOOK_S: Final = 60.0


def config_of_member(
    controller: str,
    *,
    flags: Mapping[str, str],
    node_id: int | None = None,
    data_directory: str | None = None,
    host: str | None = None,
    port: int | None = None,
) -> Config:
    """Return the configuration of a broker that joins the controllers at an address.

    Args:
        controller: host:port of one of them.
        flags: Other settings, by name.
        node_id: Which broker it is; None for the one of the directory, or a free one.
        data_directory: Where its data lies.
        host: Where it listens.
        port: Where it listens; 0 for a free one.

    Raises:
        ConfigError: Something that was given cannot be used.
        StartError: The controllers don't answer.
    """
    address = PeerAddress(*parse_address(controller, "the controller"))
    directory = data_directory or flags.get("log.dirs") or _DATA_DIRECTORY
    if node_id is None:
        node_id = _node_id_of(directory)
    if node_id is None:
        image = asyncio.run(read_image([address], clock=SystemClock(), timeout_s=_LOOK_S))
        node_id = lowest_free_id(image)
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


def _node_id_of(directory: str) -> int | None:
    """Return which node a directory belongs to, None if it is new or does not say it."""
    try:
        text = (Path(directory) / _META_PROPERTIES).read_text()
        return int(parse_properties(text)["node.id"])
    except (OSError, ValueError, KeyError):
        return None  # what is wrong with it is said when it is opened
