"""The voter in a controller's configuration file, for kafka-metadata-quorum."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from wirebroker.cli.kafka.plumbing.properties import properties_in
from wirebroker.client.cluster.quorum_voters import AddedVoter
from wirebroker.config.listeners.listeners import Address, parse_addresses
from wirebroker.config.rows.row import ConfigError
from wirebroker.storage.meta_properties import parse_meta_properties

if TYPE_CHECKING:
    from collections.abc import Mapping


def voter_in(file: Path) -> AddedVoter:
    """Return id, metadata directory and listeners of a controller.

    Raises:
        click.UsageError: The file is not a controller's, or its directory is not formatted.
    """
    properties = properties_in(file)

    def wrong(problem: str) -> click.UsageError:
        return click.UsageError(f"{problem} in {file}: is it the configuration of a controller?")

    node_id = properties.get("node.id", "")
    if not node_id.isdecimal():
        raise wrong("node.id is missing or no number")
    if "controller" not in properties.get("process.roles", ""):
        raise wrong("process.roles does not contain controller")
    log_dirs = properties.get("metadata.log.dir") or properties.get("log.dirs", "").split(",")[0]
    if not log_dirs:
        raise wrong("neither metadata.log.dir nor log.dirs is set")
    names = _listed(properties, "controller.listener.names")
    if not names:
        raise wrong("controller.listener.names is missing")
    try:
        addresses = {
            **parse_addresses("listeners", _listed(properties, "listeners")),
            **parse_addresses("advertised.listeners", _listed(properties, "advertised.listeners")),
        }
    except ConfigError as error:
        raise click.UsageError(f"{file} cannot be used: {error}") from None
    unknown = [name for name in names if name.upper() not in addresses]
    if unknown:
        raise wrong(f"no listener {unknown[0]}")
    endpoints = {name.upper(): addresses[name.upper()] for name in names}
    return AddedVoter(
        int(node_id),
        _directory_id(Path(log_dirs.strip())),
        {
            name: Address(address.host or "localhost", address.port)
            for name, address in endpoints.items()
        },
    )


def _listed(properties: Mapping[str, str], name: str) -> tuple[str, ...]:
    parts = (part.strip() for part in properties.get(name, "").split(","))
    return tuple(part for part in parts if part)


def _directory_id(directory: Path) -> bytes:
    file = directory / "meta.properties"
    try:
        properties = parse_meta_properties(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{file} cannot be read: {error}") from None
    if not any(properties.directory_id):
        raise click.UsageError(f"{file} has no directory.id: start the controller once")
    return properties.directory_id
