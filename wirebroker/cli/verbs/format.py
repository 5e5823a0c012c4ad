"""`wirebroker format`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypedDict

import click

from wirebroker.cli.plumbing.file_path import FilePath

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Unpack

    from wirebroker.quorum.formatting.node_format import FormatRequest


class _FormatFlags(TypedDict):
    file: Path
    cluster_id: str | None
    standalone: bool
    initial_controllers: str | None
    no_initial_controllers: bool
    release: str | None
    features: tuple[str, ...]
    users: tuple[str, ...]
    ignore_formatted: bool


@click.command("format")
@click.option(
    "--config",
    "file",
    type=FilePath(exists=True, dir_okay=False),
    required=True,
    metavar="FILE",
    help="The server.properties of the node.",
)
@click.option(
    "--cluster-id",
    metavar="ID",
    help="Id of the cluster, the same on all nodes. [default: wirebroker.cluster.id; with "
    "--standalone, else a random one]",
)
@click.option("--standalone", is_flag=True, help="Begin a quorum with this controller alone.")
@click.option(
    "--initial-controllers",
    metavar="ID@HOST:PORT:DIRECTORY,...",
    help="Begin a quorum with these controllers; format each with the same list.",
)
@click.option(
    "--no-initial-controllers",
    is_flag=True,
    help="Prepare a controller that is added to a running quorum.",
)
@click.option(
    "--release-version",
    "release",
    metavar="RELEASE",
    help="Release of Apache Kafka whose features the cluster starts with. [default: 4.4-IV2]",
)
@click.option(
    "--feature",
    "features",
    multiple=True,
    metavar="NAME=LEVEL",
    help="Feature level, overriding --release-version (repeatable).",
)
@click.option(
    "--add-scram",
    "users",
    multiple=True,
    metavar="USER",
    help="Create a user: SCRAM-SHA-512=[name=NAME,password=PASSWORD] (repeatable).",
)
@click.option("--ignore-formatted", is_flag=True, help="Leave formatted directories as they are.")
def format_(**flags: Unpack[_FormatFlags]) -> int:
    """Format the data directories of a stopped node.

    Only controllers of a quorum with dynamic voters need it. `serve` formats the directories of a
    single node and of static voters, and `join` those of a broker.
    """
    from wirebroker.config.rows.row import ConfigError  # noqa: PLC0415 - keeps --help fast
    from wirebroker.quorum.formatting.node_format import format_node  # noqa: PLC0415
    from wirebroker.storage.files import Files  # noqa: PLC0415

    try:
        request = _request_of(flags)
        format_node(request, Files(), click.echo)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}") from None
    click.echo(f"The cluster id is {request.cluster_id}.")
    return 0


def _request_of(flags: _FormatFlags) -> FormatRequest:
    from wirebroker.codecs.primitives import random_uuid, uuid_text  # noqa: PLC0415
    from wirebroker.config.rows.releases import RELEASE_VERSION  # noqa: PLC0415
    from wirebroker.config.rows.row import ConfigError  # noqa: PLC0415
    from wirebroker.config.sources.sources import load_config  # noqa: PLC0415
    from wirebroker.quorum.formatting.first_voters import QuorumFlags  # noqa: PLC0415
    from wirebroker.quorum.formatting.node_format import FormatRequest  # noqa: PLC0415

    config = load_config(file=flags["file"], environment=os.environ, flags={})
    cluster_id = flags["cluster_id"] or config.optional_str("wirebroker.cluster.id")
    if cluster_id is None and not flags["standalone"]:
        raise ConfigError(
            "give the id of the cluster, the same on all nodes: --cluster-id ID"
            " (`wirebroker kafka-storage random-uuid` prints a new one)"
        )
    # A default would exclude --feature metadata.version.
    configured = config.str(RELEASE_VERSION) if config.is_set(RELEASE_VERSION) else None
    return FormatRequest(
        config=config,
        cluster_id=cluster_id or uuid_text(random_uuid()),
        quorum=QuorumFlags(
            flags["standalone"], flags["no_initial_controllers"], flags["initial_controllers"]
        ),
        release=flags["release"] or configured,
        features=flags["features"],
        users=flags["users"],
        ignores_formatted=flags["ignore_formatted"],
    )
