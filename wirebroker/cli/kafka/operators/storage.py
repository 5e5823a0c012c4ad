"""`wirebroker kafka-storage`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

import click

from wirebroker.cli.kafka.operators.first_voter import first_voter
from wirebroker.cli.kafka.operators.release_tables import (
    add_release_commands,
    known_release,
    level_of,
)
from wirebroker.cli.kafka.plumbing.properties import properties_in
from wirebroker.cli.kafka.plumbing.subcommands import ScriptGroup
from wirebroker.cli.plumbing.file_path import FilePath
from wirebroker.codecs.primitives import random_uuid, uuid_text
from wirebroker.config.rows.release_features import (
    LATEST_RELEASE,
    METADATA_VERSION,
    RELEASED,
    levels_of_release,
    release_name,
)
from wirebroker.config.rows.row import ConfigError

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.config import Config

_KRAFT_VERSION: Final = "kraft.version"
_SCRAM_RELEASE: Final = "3.5-IV2"
_config_file = click.option(
    "--config",
    "-c",
    "file",
    type=FilePath(exists=True, dir_okay=False),
    required=True,
    metavar="FILE",
    help="The configuration of the node.",
)


class _FormatFlags(TypedDict):
    file: Path
    cluster_id: str
    add_scram: tuple[str, ...]
    ignore_formatted: bool
    release: str
    features: tuple[str, ...]
    standalone: bool
    no_initial_controllers: bool
    initial_controllers: str | None


@click.group(cls=ScriptGroup)
def kafka_storage() -> None:
    """Format data directories and show whether they are formatted, as kafka-storage.sh."""


@kafka_storage.command()
@_config_file
def info(*, file: Path) -> int:
    """Show which directories are formatted, and their cluster and node."""
    from wirebroker.cli.kafka.operators.directory_format import facts_of  # noqa: PLC0415
    from wirebroker.inspect.views.read_only_files import ReadOnlyFiles  # noqa: PLC0415 - after --help

    try:
        directories, metadata, problems = facts_of(_directories(_config_of(file)), ReadOnlyFiles())
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    _print_list("Found log director", directories, ("y", "ies"))
    if metadata is not None:
        click.echo(f"Found metadata: {metadata}\n")
    _print_list("Found problem", problems, ("", "s"))
    return 1 if problems else 0


@kafka_storage.command("format")
@_config_file
@click.option("--cluster-id", "-t", required=True, metavar="ID", help="The id of the cluster.")
@click.option(
    "--add-scram",
    "-S",
    multiple=True,
    metavar="USER",
    help=(
        "Create a user in the new cluster: SCRAM-SHA-256=[name=NAME,password=PASSWORD] "
        "(repeatable)."
    ),
)
@click.option(
    "--ignore-formatted", "-g", is_flag=True, help="Leave formatted directories as they are."
)
@click.option(
    "--release-version",
    "-r",
    "release",
    default=LATEST_RELEASE,
    metavar="VERSION",
    help=f"Release whose features the new cluster starts with. [default: {LATEST_RELEASE}]",
)
@click.option(
    "--feature",
    "-f",
    "features",
    multiple=True,
    metavar="NAME=LEVEL",
    help="Feature level, overriding --release-version (repeatable).",
)
@click.option(
    "--standalone",
    "-s",
    is_flag=True,
    help="Make this node the only voter of a dynamic quorum.",
)
@click.option(
    "--no-initial-controllers", "-N", is_flag=True, help="Join an existing dynamic quorum."
)
@click.option(
    "--initial-controllers",
    "-I",
    metavar="ID@HOST:PORT:DIRECTORY",
    help="Make this node the only voter, as --standalone does, with the given directory id.",
)
def format_(**flags: Unpack[_FormatFlags]) -> int:
    """Format the directories of a stopped node.

    `wirebroker serve` formats its directories when it starts.
    """
    from wirebroker.cli.kafka.operators.directory_format import (  # noqa: PLC0415 - after --help
        Formatting,
        format_directories,
    )
    from wirebroker.storage.files import Files  # noqa: PLC0415

    config = _config_of(flags["file"])
    voter = first_voter(
        config,
        roles=properties_in(flags["file"]).get("process.roles", ""),
        is_standalone=flags["standalone"],
        joins=flags["no_initial_controllers"],
        listed=flags["initial_controllers"],
    )
    levels = _levels(flags)
    try:
        formatting = Formatting(
            flags["cluster_id"],
            config.node_id,
            _directories(config),
            _metadata_directory(config),
            release_name(levels[METADATA_VERSION]) or "",
            _records(levels, flags["add_scram"]),
            voter,
        )
        lines: list[str] = []
        format_directories(
            formatting, Files(), lines.append, ignores_formatted=flags["ignore_formatted"]
        )
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.UsageError(f"{error.filename}: {error.strerror}") from None
    if len(lines) > 1 or lines[0].startswith("Formatting "):
        click.echo(_bootstrap_line(levels))
    for line in lines:
        click.echo(line)
    return 0


@kafka_storage.command("random-uuid")
def random_uuid_() -> int:
    """Print a random id for a cluster or directory."""
    click.echo(uuid_text(random_uuid()))
    return 0


add_release_commands(kafka_storage, short=True)


def _config_of(file: Path) -> Config:
    from wirebroker.config.sources.sources import load_config  # noqa: PLC0415 - 20 ms, after --help

    try:
        return load_config(file=file, environment=os.environ, flags={})
    except ConfigError as error:
        raise click.UsageError(f"{file} cannot be used: {error}") from None


def _metadata_directory(config: Config) -> str:
    directory = config.optional_str("metadata.log.dir") or config.log_directories[0]
    return str(Path(directory).absolute())


def _directories(config: Config) -> list[str]:
    paths = {str(Path(directory).absolute()) for directory in config.log_directories}
    return sorted(paths | {_metadata_directory(config)})


def _print_list(title: str, lines: list[str], ends: tuple[str, str]) -> None:
    if lines:
        click.echo(f"{title}{ends[len(lines) > 1]}:")
        for line in lines:
            click.echo(f"  {line}")
        click.echo()


def _levels(flags: _FormatFlags) -> dict[str, int]:
    """Return a new cluster's levels, in the order of the Kafka tool."""
    from wirebroker.config.rows.releases import NEWEST_LEVEL  # noqa: PLC0415 - after --help

    highest_levels = {feature.name: len(feature.since) for feature in RELEASED}
    requested_levels = dict(level_of(feature) for feature in flags["features"])
    metadata = requested_levels.pop(METADATA_VERSION, None) or known_release(flags["release"])
    if metadata > NEWEST_LEVEL:
        raise click.UsageError(f"this version reads metadata.version up to {LATEST_RELEASE}")
    for name, level in requested_levels.items():
        if name not in highest_levels:
            supported = ", ".join(sorted(highest_levels))
            raise click.UsageError(
                f"Unsupported feature: {name}. Supported features are: {supported}"
            )
        if not 0 <= level <= highest_levels[name]:
            raise click.UsageError(f"No feature:{name} with feature level {level}")
    levels = {**levels_of_release(metadata), **requested_levels}
    levels.pop(_KRAFT_VERSION, None)  # the voters determine it
    return {METADATA_VERSION: metadata} | {
        name: level for name, level in sorted(levels.items()) if level
    }


def _records(levels: dict[str, int], users: tuple[str, ...]) -> list[MetadataRecord]:
    from wirebroker.coordinator.controller.features.feature_control import feature_level  # noqa: PLC0415
    from wirebroker.security.sasl.first_users import first_users  # noqa: PLC0415 - rarely used

    if users and levels[METADATA_VERSION] < known_release(_SCRAM_RELEASE):
        raise click.UsageError(
            f"SCRAM is only supported in metadata.version {_SCRAM_RELEASE} or later."
        )
    records = [feature_level(name, level) for name, level in levels.items()]
    return records + first_users(users)


def _bootstrap_line(levels: dict[str, int]) -> str:
    """Return the levels as Kafka's tool does, without users."""
    records = ", ".join(
        f"ApiMessageAndVersion(FeatureLevelRecord(name='{name}', featureLevel={level})"
        " at version 0)"
        for name, level in levels.items()
    )
    return (
        f"Bootstrap metadata: BootstrapMetadata(records=[{records}],"
        f" metadataVersionLevel={levels[METADATA_VERSION]}, source=format command)"
    )
