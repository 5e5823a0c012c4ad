"""`wirebroker shadow BOOTSTRAP`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from wirebroker.cli.plumbing.running import ClusterFlags, cluster_flags, run_verb
from wirebroker.client.errors import FLAG_NAMES, ClientError
from wirebroker.config import ConfigError, StartError
from wirebroker.shadow.shadowing import COLUMNS, is_fine, remarks, shadowed, summary, topic_filter

if TYPE_CHECKING:
    from typing import Any, Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient


@click.command()
@click.argument("address", metavar="BOOTSTRAP")
@click.option(
    "--topics",
    "patterns",
    multiple=True,
    required=True,
    metavar="REGEX",
    help=(
        "Topics to copy, by a pattern of the whole name (repeatable). Internal topics need their "
        "exact names."
    ),
)
@click.option(
    "--data-dir", required=True, metavar="DIR", help=("Directory of the new or existing copy.")
)
@click.option("--once", is_flag=True, help="Stop at the current end of the partitions.")
@cluster_flags
def shadow(
    *,
    address: str,
    patterns: tuple[str, ...],
    data_dir: str,
    once: bool,
    **flags: Unpack[ClusterFlags],
) -> int:
    """Copy partitions of a cluster byte for byte, and verify them.

    BOOTSTRAP is one of its brokers, host:port. The copy is a data directory for `wirebroker serve`
    or Apache Kafka. A stopped copy continues where it was. The exit status is 1 if the copy has a
    problem, or with --once if no topic matches --topics.
    """
    if flags["bootstrap"] is not None:
        raise click.UsageError("give the brokers once: as BOOTSTRAP, not with -b")
    flags["bootstrap"] = address
    try:
        is_wanted = topic_filter(patterns)
    except ClientError as error:
        raise click.UsageError(str(error)) from None
    path = str(Path(data_dir).absolute())
    reports: list[dict[str, Any]] = []

    async def work(client: KafkaClient, out: Output) -> None:
        try:
            async with shadowed(client, is_wanted, path=path, is_once=once) as following:
                try:
                    await following.run()
                finally:
                    partitions = following.partitions.values()
                    reports.append(summary(partitions, cluster_id=following.cluster_id))
        except (ConfigError, StartError) as error:
            raise ClientError(str(error)) from None
        finally:
            for report in reports:
                rows = report["partitions"]
                table = out.table(rows, COLUMNS) if rows else ["no topic matches"]
                out.show(report, [*table, *remarks(report)])

    names = FLAG_NAMES._replace(address="BOOTSTRAP, as HOST:PORT")
    status = run_verb(flags, work, flag_names=names)
    # A backup with mistyped topics must not look successful.
    is_empty = once and not any(report["partitions"] for report in reports)
    return status or int(is_empty or not all(map(is_fine, reports)))
