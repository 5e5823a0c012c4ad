"""`wirebroker join`: settings for a member, made of the cluster, a directory, and a file if given.

A directory that was used before says which node it is, else the file may; for a new one the lowest
id is taken that neither a broker nor a controller of the cluster has. Of several that join at a
time one gets it: the others choose again (joining.py).
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wirebroker.base.clock import SystemClock
from wirebroker.config import Config
from wirebroker.config.java.properties import parse_properties
from wirebroker.config.listeners.listeners import to_controllers
from wirebroker.config.quorum import parse_address
from wirebroker.config.sources.sources import load_config, read_properties, without_placeholders
from wirebroker.net.client.settings import PeerAddress
from wirebroker.quorum.membership.quorum_image import lowest_free_id, read_image
from wirebroker.security.login.outgoing import way_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_META_PROPERTIES: Final = "meta.properties"
_DATA_DIRECTORY: Final = "./data"
# What a member has unless somebody says otherwise.
_DEFAULTS: Final = {
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
}


def config_of_member(
    controller: str,
    *,
    flags: Mapping[str, str],
    node_id: int,
    file: Path | None = None,
    data_directory: str | None = None,
    host: str | None = None,
    port: int | None = None,
) -> Config:
    """Return the configuration of a broker that joins the controllers at an address.

    Args:
        controller: host:port of one of them.
        flags: Other settings, by name.
        node_id: Which broker it is.
        file: A properties file, for what flags don't say; it need not say what a member is.
        data_directory: Where its data lies.
        host: Where it listens.
        port: Where it listens; 0 for a free one.

    Raises:
        ConfigError: Something that was given cannot be used.
    """
    address = _address_of(controller)
    filed = _settings_of(file)
    if data_directory is None and not _listed_in({**filed, **flags}):
        data_directory = _DATA_DIRECTORY
    member = {
        "process.roles": "broker",
        "node.id": str(node_id),
        "controller.quorum.bootstrap.servers": str(address),
        **{name: value for name, value in _DEFAULTS.items() if name not in filed},
    }
    return load_config(
        file=file,
        environment=os.environ,
        flags={**member, **flags},
        data_directory=data_directory,
        host=host,
        port=port,
        is_one_node=False,
    )


def node_id_given(
    flags: Mapping[str, str], data_directory: str | None, file: Path | None = None
) -> int | None:
    """Return which node the directory belongs to, or the file is for; None if any will do.

    See config_of_member.

    Raises:
        ConfigError: The file can't be read, or its node.id is none.
    """
    filed = _settings_of(file)
    listed = _listed_in({**filed, **flags})
    # Of several directories the first says it: each has the same meta.properties.
    directory = data_directory or listed.split(",")[0].strip() or _DATA_DIRECTORY
    found = _node_id_of(directory)
    if found is None and "node.id" in filed:
        return Config(filed).int("node.id")
    return found


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


def _settings_of(file: Path | None) -> Mapping[str, str]:
    return {} if file is None else without_placeholders(read_properties(file), os.environ)


def _listed_in(settings: Mapping[str, str]) -> str:
    """Return the data directories that settings name, divided by commas; empty if none."""
    return settings.get("log.dirs") or settings.get("log.dir") or ""


def _node_id_of(directory: str) -> int | None:
    """Return which node a directory belongs to, None if it is new or does not say it."""
    try:
        text = (Path(directory) / _META_PROPERTIES).read_text()
        return int(parse_properties(text)["node.id"])
    except (OSError, ValueError, KeyError):
        return None  # what is wrong with it is said when it is opened
