"""`wirebroker join`: run a broker as a member of a running cluster until it is stopped.

Settings are checked before the server is imported, so that errors are immediate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from wirebroker.cli.plumbing.broker_flags import broker_flags, parse_settings
from wirebroker.cli.plumbing.file_path import FilePath

if TYPE_CHECKING:
    from pathlib import Path

_GREATEST_NODE_ID = (1 << 31) - 1


def _parse_node_id(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text) <= _GREATEST_NODE_ID):
        raise click.ClickException(
            f"--node-id {text} cannot be used: the id must be 0 to {_GREATEST_NODE_ID}"
        )
    return int(text)


@click.command()
@click.argument("controllers", metavar="HOST:PORT,...")
@click.option(
    "--node-id",
    callback=_parse_node_id,
    metavar="N",
    help=(
        "Id of this broker. [default: from the data directory or the file, else the lowest free id]"
    ),
)
@click.option(
    "--config",
    "file",
    type=FilePath(),
    metavar="FILE",
    help="A server.properties file, for listeners, TLS and logins.",
)
@click.option(
    "--voter",
    metavar="HOST:PORT",
    help="Be a controller too, with a listener at this address, and become a voter.",
)
@broker_flags
def join(
    *,
    controllers: str,
    node_id: int | None,
    file: Path | None,
    voter: str | None,
    data_dir: str | None,
    host: str | None,
    port: int | None,
    settings: tuple[str, ...],
    port_file: Path | None,
) -> int:
    """Start a broker as a member of a running cluster, wirebroker's or Apache Kafka's.

    HOST:PORT,... is a list of the cluster's controllers; at least one must be running. A new data
    directory is formatted for that cluster. The file (--config) needs neither the role nor the
    controllers; with a file that has them, use `serve --config` instead. With --voter the node is a
    controller too, and votes.
    """
    from wirebroker.broker.join_process import JoinProcess  # noqa: PLC0415
    from wirebroker.config import ConfigError, StartError  # noqa: PLC0415 - keeps --help fast

    flags = parse_settings(settings)
    try:
        joining = JoinProcess(
            controllers,
            flags=flags,
            file=file,
            data_directory=data_dir,
            host=host,
            port=port,
            voter=voter,
        )
        return joining.run(node_id, port_file=port_file)
    except (ConfigError, StartError) as error:
        raise click.ClickException(str(error)) from None
