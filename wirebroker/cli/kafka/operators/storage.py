"""`wirebroker kafka-storage`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypedDict

import click

from wirebroker.cli.kafka.operators.release_tables import add_release_commands
from wirebroker.cli.kafka.plumbing.subcommands import ScriptGroup
from wirebroker.cli.plumbing.file_path import FilePath
from wirebroker.codecs.primitives import random_uuid, uuid_text
from wirebroker.config.rows.release_features import LATEST_RELEASE
from wirebroker.config.rows.row import ConfigError

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Unpack

    from wirebroker.config import Config
    from wirebroker.quorum.formatting.first_levels import FirstLevels

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
    release: str | None
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
    from wirebroker.inspect.views.read_only_files import ReadOnlyFiles  # noqa: PLC0415 - after --help
    from wirebroker.quorum.formatting.directory_format import facts_of  # noqa: PLC0415
    from wirebroker.quorum.formatting.node_format import directories_of  # noqa: PLC0415

    try:
        directories, metadata, problems = facts_of(
            directories_of(_config_of(file)), ReadOnlyFiles()
        )
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
    metavar="ID@HOST:PORT:DIRECTORY,...",
    help="First voters of a dynamic quorum; format all nodes with the same list.",
)
def format_(**flags: Unpack[_FormatFlags]) -> int:
    """Format the directories of a stopped node.

    `wirebroker serve` formats the directories of a node without other controllers itself.
    """
    from wirebroker.quorum.formatting.first_voters import QuorumFlags  # noqa: PLC0415 - after --help
    from wirebroker.quorum.formatting.node_format import FormatRequest, format_node  # noqa: PLC0415
    from wirebroker.storage.files import Files  # noqa: PLC0415

    request = FormatRequest(
        config=_config_of(flags["file"]),
        cluster_id=flags["cluster_id"],
        quorum=QuorumFlags(
            flags["standalone"], flags["no_initial_controllers"], flags["initial_controllers"]
        ),
        release=flags["release"],
        features=flags["features"],
        users=flags["add_scram"],
        ignores_formatted=flags["ignore_formatted"],
    )
    lines: list[str] = []
    try:
        levels = format_node(request, Files(), lines.append)
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


def _print_list(title: str, lines: list[str], ends: tuple[str, str]) -> None:
    if lines:
        click.echo(f"{title}{ends[len(lines) > 1]}:")
        for line in lines:
            click.echo(f"  {line}")
        click.echo()


def _bootstrap_line(levels: FirstLevels) -> str:
    """Return the levels as Kafka's tool does, without users."""
    records = ", ".join(
        f"ApiMessageAndVersion(FeatureLevelRecord(name='{name}', featureLevel={level})"
        " at version 0)"
        for name, level in levels.recorded.items()
    )
    return (
        f"Bootstrap metadata: BootstrapMetadata(records=[{records}],"
        f" metadataVersionLevel={levels.metadata_level}, source=format command)"
    )
