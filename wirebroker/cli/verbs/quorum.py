"""`wirebroker quorum`: controllers and their progress."""

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
        found = await quorum_of(client)
        rows = [
            {
                "node": each.node_id,
                "role": _role(each.node_id, found.leader_id, is_voter=each.is_voter),
                "end": each.end_offset,
                "lag": each.lag,
                "lag_ms": each.lag_ms,
            }
            for each in found.replicas
        ]
        data = {
            "leader_id": found.leader_id,
            "leader_epoch": found.leader_epoch,
            "high_watermark": found.high_watermark,
            "replicas": rows,
        }
        head = f"leader {found.leader_id}, epoch {found.leader_epoch}"
        lines = [f"{out.title('quorum')} {head}, high watermark {found.high_watermark}"]
        out.show(data, [*lines, *out.table(rows, ("node", "role", "end", "lag", "lag_ms"))])

    return run_verb(flags, work)


def _role(node_id: int, leader_id: int, *, is_voter: bool) -> str:
    if node_id == leader_id:
        return "leader"
    return "voter" if is_voter else "observer"
