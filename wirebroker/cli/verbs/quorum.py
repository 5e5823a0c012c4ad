"""`wirebroker quorum`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from wirebroker.cli.plumbing.running import ClusterFlags, cluster_flags, run_verb
from wirebroker.client.cluster.quorum import quorum_of

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient


@click.command()
@cluster_flags
def quorum(**flags: Unpack[ClusterFlags]) -> int:
    """Show the quorum of controllers and its observers."""

    async def work(client: KafkaClient, out: Output) -> None:
        description = await quorum_of(client)
        rows = [
            {
                "node": replica.node_id,
                "role": _role(replica.node_id, description.leader_id, is_voter=replica.is_voter),
                "end": replica.end_offset,
                "lag": replica.lag,
                "lag_ms": replica.lag_ms,
            }
            for replica in description.replicas
        ]
        data = {
            "leader_id": description.leader_id,
            "leader_epoch": description.leader_epoch,
            "high_watermark": description.high_watermark,
            "replicas": rows,
        }
        head = f"leader {description.leader_id}, epoch {description.leader_epoch}"
        lines = [f"{out.title('quorum')} {head}, high watermark {description.high_watermark}"]
        out.show(data, [*lines, *out.table(rows, ("node", "role", "end", "lag", "lag_ms"))])

    return run_verb(flags, work)


def _role(node_id: int, leader_id: int, *, is_voter: bool) -> str:
    if node_id == leader_id:
        return "leader"
    return "voter" if is_voter else "observer"
