"""`wirebroker console`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from wirebroker.cli.plumbing.file_path import FilePath
from wirebroker.cli.plumbing.output import tell

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.console.model.settings import ClusterSettings

_DEFAULT_CLUSTER = "local=127.0.0.1:9092"


@click.command()
@click.option(
    "--cluster",
    "clusters",
    multiple=True,
    metavar="NAME=HOST:PORT,...",
    help=f"A cluster and its brokers (repeatable). [default: {_DEFAULT_CLUSTER}]",
)
@click.option(
    "--config",
    "file",
    type=FilePath(),
    metavar="FILE",
    help="Read clusters and their security settings from a file (docs/console.md).",
)
@click.option(
    "--host",
    default="127.0.0.1",
    metavar="HOST",
    help="Loopback address to listen on. [default: 127.0.0.1]",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8989,
    metavar="N",
    help="Port to listen on; 0 selects a free one. [default: 8989]",
)
@click.option(
    "--port-file",
    type=FilePath(),
    metavar="FILE",
    help="Write the port to this file when the console is ready.",
)
@click.option("--stop-with-stdin", is_flag=True, hidden=True)
def console(
    *,
    clusters: tuple[str, ...],
    file: Path | None,
    host: str,
    port: int,
    port_file: Path | None,
    stop_with_stdin: bool,
) -> int:
    """Show clusters in a browser (requires wirebroker[console]).

    It works with any Kafka, and only reads. It listens on loopback addresses only.
    """
    try:
        from wirebroker.console.web import address, server  # noqa: PLC0415 - an extra; slow
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"the console needs the package {error.name}: pip install 'wirebroker[console]'"
        ) from None
    from wirebroker.base.clock import SystemClock  # noqa: PLC0415 - keeps --help fast
    from wirebroker.broker.port_file import PortFile  # noqa: PLC0415
    from wirebroker.config import StartError  # noqa: PLC0415

    written_port = PortFile(port_file)
    try:
        checked_host = address.checked_host(host)
        chosen = _chosen_clusters(clusters, file)
        if stop_with_stdin:
            server.stop_with_parent()
        written_port.remove()

        def on_ready(bound_port: int) -> None:
            shown = f"[{checked_host}]" if ":" in checked_host else checked_host
            names = ", ".join(cluster.name for cluster in chosen)
            sys.stdout.write(f"console ready on http://{shown}:{bound_port}/ (clusters: {names})\n")
            sys.stdout.flush()
            written_port.write(bound_port)

        server.run(chosen, host=checked_host, port=port, clock=SystemClock(), on_ready=on_ready)
    except (address.AddressError, server.ListenError, StartError) as error:
        raise click.ClickException(str(error)) from None
    finally:
        written_port.remove()
    tell("console stopped")
    return 0


def _chosen_clusters(clusters: tuple[str, ...], file: Path | None) -> list[ClusterSettings]:
    from wirebroker.console.model.settings import (  # noqa: PLC0415 - keeps --help fast
        cluster_of_flag,
        clusters_of_file,
    )

    try:
        chosen = [] if file is None else clusters_of_file(file)
        flags = clusters or (() if chosen else (_DEFAULT_CLUSTER,))
        chosen += [cluster_of_flag(text) for text in flags]
    except (OSError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    names = [cluster.name for cluster in chosen]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise click.UsageError(f"two clusters have the name {twice}: give each its own")
    return chosen
