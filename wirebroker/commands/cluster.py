"""`wirebroker cluster`: who is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from wirebroker.commands.running import ClusterFlags, cluster_flags, run_verb

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.commands.output import Output


@click.command()
@cluster_flags
def cluster(**flags: Unpack[ClusterFlags]) -> int:
    """Show a cluster and its brokers."""

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
