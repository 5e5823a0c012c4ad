"""`wirebroker join`: settings of a new member, from the cluster, a directory and a file.

The node id is that of a used directory or of the file. Otherwise it is the lowest free id, which
several members may choose at once (broker/join_process.py).
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wirebroker.base.clock import SystemClock
from wirebroker.config import Config
from wirebroker.config.java.properties import parse_properties
from wirebroker.config.quorum import parse_addresses
from wirebroker.config.sources.sources import load_config, read_properties, without_placeholders
from wirebroker.net.client.settings import PeerAddress
from wirebroker.quorum.membership.quorum_image import lowest_free_id, read_image
from wirebroker.quorum.membership.voting_join import settings_of_voter

if TYPE_CHECKING:
    from collections.abc import Mapping

_META_PROPERTIES: Final = "meta.properties"
_DATA_DIRECTORY: Final = "./data"
_DEFAULTS: Final = {"listeners": "PLAINTEXT://127.0.0.1:9092"}


def config_of_member(
    controllers: str,
    *,
    flags: Mapping[str, str],
    node_id: int,
    file: Path | None = None,
    data_directory: str | None = None,
    host: str | None = None,
    port: int | None = None,
    voter: str | None = None,
    cluster_id: str | None = None,
) -> Config:
    """Return the configuration of a broker that joins a cluster.

    `controllers` is a list of host:port; `flags` are settings by name, which override those in
    `file`; port 0 means a free one. With `voter`, the address of its controller listener, it votes
    as well; its new directory gets `cluster_id`.

    Raises:
        ConfigError: A setting is invalid.
    """
    servers = ",".join(map(str, _addresses_of(controllers)))
    file_settings = _settings_of(file)
    if data_directory is None and not _listed_in({**file_settings, **flags}):
        data_directory = _DATA_DIRECTORY
    member = {
        "process.roles": "broker",
        "node.id": str(node_id),
        "controller.quorum.bootstrap.servers": servers,
        **{name: value for name, value in _DEFAULTS.items() if name not in file_settings},
    }
    if voter is not None:
        member |= settings_of_voter({**file_settings, **member, **flags}, voter)
    if cluster_id is not None:
        member["wirebroker.cluster.id"] = cluster_id
    return load_config(
        file=file,
        environment=os.environ,
        flags={**flags, **member} if voter is not None else {**member, **flags},
        data_directory=data_directory,
        host=host,
        port=port,
        is_one_node=False,
    )


def configured_node_id(
    flags: Mapping[str, str], data_directory: str | None, file: Path | None = None
) -> int | None:
    """Return the node id of the directory or the file, or None.

    Raises:
        ConfigError: The file is unreadable, or its node.id is invalid.
    """
    node_id = formatted_node_id(flags, data_directory, file)
    file_settings = _settings_of(file)
    if node_id is None and "node.id" in file_settings:
        return Config(file_settings).int("node.id")
    return node_id


def formatted_node_id(
    flags: Mapping[str, str], data_directory: str | None, file: Path | None = None
) -> int | None:
    """Return the node id of the directory, or None if it is new.

    Raises:
        ConfigError: The file is unreadable.
    """
    listed_directories = _listed_in({**_settings_of(file), **flags})
    # All directories have the same meta.properties.
    directory = data_directory or listed_directories.split(",")[0].strip() or _DATA_DIRECTORY
    return _node_id_of(directory)


def free_node_id(controllers: str, config: Config, *, timeout_s: float, above: int = 0) -> int:
    """Return the lowest free node id greater than `above` in the controllers' cluster.

    `controllers` is a list of host:port; `timeout_s` is for finding controllers, and again for
    their responses.

    Raises:
        ConfigError: The address or a connection setting is invalid.
        StartError: The controllers do not respond.
    """
    reading = read_image(
        _addresses_of(controllers), config, clock=SystemClock(), timeout_s=timeout_s
    )
    image = asyncio.run(reading)
    return lowest_free_id(image, above=above)


def _addresses_of(controllers: str) -> list[PeerAddress]:
    return [PeerAddress(*address) for address in parse_addresses(controllers, "the controller")]


def _settings_of(file: Path | None) -> Mapping[str, str]:
    return {} if file is None else without_placeholders(read_properties(file), os.environ)


def _listed_in(settings: Mapping[str, str]) -> str:
    return settings.get("log.dirs") or settings.get("log.dir") or ""


def _node_id_of(directory: str) -> int | None:
    try:
        text = (Path(directory) / _META_PROPERTIES).read_text()
        return int(parse_properties(text)["node.id"])
    except (OSError, ValueError, KeyError):
        return None  # opening the directory reports the problem
