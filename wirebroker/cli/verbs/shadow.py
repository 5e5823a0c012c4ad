"""`wirebroker shadow BOOTSTRAP`: partitions of any cluster, copied and verified."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from wirebroker.cli.plumbing.running import ClusterFlags, cluster_flags, run_verb
from wirebroker.client.errors import FLAG_NAMES, ClientError
from wirebroker.config import ConfigError, StartError
from wirebroker.shadow.choosing import topic_filter
from wirebroker.shadow.report import COLUMNS, is_fine, remarks, summary
from wirebroker.shadow.shadowing import shadowed

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
    help="Which topics, by the whole of their names; may be given many times. Internal ones only"
    " by their very names.",
)
@click.option("--data-dir", required=True, metavar="DIR", help="Where the copy lies, or goes on.")
@click.option("--once", is_flag=True, help="End where the partitions end now.")
@cluster_flags
def shadow(
    *,
    address: str,
    patterns: tuple[str, ...],
    data_dir: str,
    once: bool,
    **flags: Unpack[ClusterFlags],
) -> int:
    """Copy partitions of a cluster, byte for byte, and verify them on the way.

    BOOTSTRAP is one of its brokers, host:port. The copy is a data directory that `wirebroker serve`
    and Apache Kafka open. Stopped, by whatever, it goes on where it was. Exit status 1: something
    is wrong with what was copied, or with --once there was nothing to copy.
    """
    if flags["bootstrap"] is not None:
        raise click.UsageError("name the brokers once: BOOTSTRAP, not -b")
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
                    found = following.partitions.values()
                    reports.append(summary(found, cluster_id=following.cluster_id))
        except (ConfigError, StartError) as error:
            raise ClientError(str(error)) from None
        finally:
            for each in reports:
                rows = each["partitions"]
                table = out.table(rows, COLUMNS) if rows else ["no topic matches"]
                out.show(each, [*table, *remarks(each)])

    names = FLAG_NAMES._replace(address="BOOTSTRAP, as HOST:PORT")
    status = run_verb(flags, work, flag_names=names)
    # Whoever makes a backup and mistypes its topics must not take it for done.
    is_empty = once and not any(each["partitions"] for each in reports)
    return status or int(is_empty or not all(map(is_fine, reports)))
