"""`wirebroker cluster`: who is there, what is on the disks, who does not come back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from wirebroker.client.brokers import log_dirs_of, unregister_broker
from wirebroker.commands.flags import dry_run_hint, yes_flag
from wirebroker.commands.output import tell
from wirebroker.commands.running import ClusterFlags, cluster_flags, run_verb

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.commands.output import Output


@click.group(invoke_without_command=True)
@click.pass_context
@cluster_flags
def cluster(context: click.Context, **flags: Unpack[ClusterFlags]) -> int:
    """Show a cluster and its brokers."""
    return 0 if context.invoked_subcommand else _show(flags)


@cluster.command()
@cluster_flags
def info(**flags: Unpack[ClusterFlags]) -> int:
    """Show the cluster and its brokers, as `wirebroker cluster` does."""
    return _show(flags)


@cluster.command("log-dirs")
@click.option(
    "--broker", "brokers", type=int, multiple=True, metavar="ID", help="This one; may be repeated."
)
@cluster_flags
def log_dirs(*, brokers: tuple[int, ...], **flags: Unpack[ClusterFlags]) -> int:
    """Show the data directories of brokers, and how full they are."""

    async def work(client: KafkaClient, out: Output) -> None:
        rows = [each._asdict() for each in await log_dirs_of(client, brokers)]
        columns = (
            *("broker_id", "path", "error", "replica_count"),
            *("size_bytes", "usable_bytes", "total_bytes"),
        )
        out.show(rows, out.table(rows, columns))

    return run_verb(flags, work)


@cluster.command()
@click.argument("broker_id", type=int, metavar="ID")
@yes_flag
@cluster_flags
def unregister(*, broker_id: int, yes: bool, **flags: Unpack[ClusterFlags]) -> int:
    """Have the cluster forget a broker that is stopped for good; without --yes say so only.

    Its replicas are not moved: do that first (`wirebroker reassign`).
    """

    async def work(client: KafkaClient, out: Output) -> None:
        if not yes:
            tell(dry_run_hint(f"unregisters broker {broker_id}"))
            return
        await unregister_broker(client, broker_id)
        out.show({"broker_id": broker_id}, [f"broker {broker_id} is no longer registered"])

    return run_verb(flags, work)


def _show(flags: ClusterFlags) -> int:
    async def work(client: KafkaClient, out: Output) -> None:
        found = await client.metadata()
        rows = [
            {"broker": each.node_id, "host": each.host, "port": each.port, "rack": each.rack}
            for each in sorted(found.brokers, key=lambda each: each.node_id)
        ]
        partitions = [part for each in found.topics for part in each.partitions]
        summary = {
            "cluster_id": found.cluster_id,
            "controller_id": found.controller_id,
            "brokers": rows,
            "topic_count": len(found.topics),
            "partition_count": len(partitions),
            "leaderless_count": sum(each.leader_id < 0 for each in partitions),
            "under_replicated_count": sum(
                len(each.isr_nodes) < len(each.replica_nodes) for each in partitions
            ),
        }
        lines = [
            f"{out.title('cluster')} {found.cluster_id}, controller {found.controller_id}",
            f"{summary['topic_count']} topics, {summary['partition_count']} partitions:"
            f" {summary['leaderless_count']} without a leader,"
            f" {summary['under_replicated_count']} under-replicated",
        ]
        out.show(summary, [*lines, *out.table(rows, ("broker", "host", "port", "rack"))])

    return run_verb(flags, work)
