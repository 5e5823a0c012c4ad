"""`wirebroker elect …`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from wirebroker.base.text import counted
from wirebroker.cli.plumbing.completed_names import TOPIC_NAME
from wirebroker.cli.plumbing.flags import dry_run_hint, partitions_flag, yes_flag
from wirebroker.cli.plumbing.output import tell
from wirebroker.cli.plumbing.running import ClusterFlags, cluster_flags, run_verb
from wirebroker.client.checks.dry_runs import check_cluster_rights
from wirebroker.client.errors import ClientError
from wirebroker.client.replicas.elections import PREFERRED, UNCLEAN, elect_leaders, led_partitions
from wirebroker.client.topics.partition_choice import of_topic

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition


@click.group()
def elect() -> None:
    """Elect leaders of partitions."""


_topics = click.argument("topics", nargs=-1, type=TOPIC_NAME, metavar="[TOPIC...]")


@elect.command()
@_topics
@partitions_flag
@cluster_flags
def preferred(
    *, topics: tuple[str, ...], partitions: list[int] | None, **flags: Unpack[ClusterFlags]
) -> int:
    """Elect preferred leaders: the first replica of each partition, if it is in sync.

    Without topics, for all partitions of the cluster.
    """
    if partitions is not None and not topics:
        raise click.UsageError("--partition needs a topic")

    async def work(client: KafkaClient, out: Output) -> None:
        topic_partitions = list(await _leaders(client, topics, partitions)) if topics else None
        await _elect(client, out, PREFERRED, topic_partitions)

    return run_verb(flags, work)


@elect.command()
@_topics
@partitions_flag
@yes_flag
@cluster_flags
def unclean(
    *,
    topics: tuple[str, ...],
    partitions: list[int] | None,
    yes: bool,
    **flags: Unpack[ClusterFlags],
) -> int:
    """Elect any live replica as leader of partitions without a leader.

    Records that the replica lacks are lost. Without --yes only list partitions without a leader.
    """
    if not topics:
        raise click.UsageError("name the topics: records that the new leaders lack are lost")

    async def work(client: KafkaClient, out: Output) -> None:
        leaders = await _leaders(client, topics, partitions)
        leaderless = [topic_partition for topic_partition, leader in leaders.items() if leader < 0]
        if yes:
            await _elect(client, out, UNCLEAN, leaderless)
            return
        if leaderless:
            await check_cluster_rights(client, "alter", "leaders cannot be elected")
        rows = [topic_partition._asdict() for topic_partition in leaderless]
        out.show({"would_elect": rows}, out.table(rows, ("topic", "partition")))
        tell(dry_run_hint("would elect replicas that may lack records"))

    return run_verb(flags, work)


async def _leaders(
    client: KafkaClient, topics: tuple[str, ...], partitions: list[int] | None
) -> dict[TopicPartition, int]:
    leaders: dict[str, dict[TopicPartition, int]] = {}
    for row in await led_partitions(client, topics):
        leaders.setdefault(row.place.topic, {})[row.place] = row.leader
    return {
        topic_partition: topic_leaders[topic_partition]
        for topic_leaders in leaders.values()
        for topic_partition in of_topic(list(topic_leaders), partitions)
    }


async def _elect(
    client: KafkaClient, out: Output, kind: int, topic_partitions: list[TopicPartition] | None
) -> None:
    results = (
        await elect_leaders(client, kind, topic_partitions)
        if topic_partitions is None or topic_partitions
        else []
    )
    rows: list[dict[str, Any]] = [
        {
            **result.place._asdict(),
            "elected": not result.code,
            "message": result.message if result.is_refused else None,
        }
        for result in results
    ]
    lines = [
        f"{result.place}: {result.message if result.is_refused else _result(result.code)}"
        for result in results
    ]
    out.show(rows, lines or ["every leader is the preferred one"])
    refused = sum(result.is_refused for result in results)
    if refused:
        raise ClientError(f"refused: {refused} of {counted(len(results), 'election')}")


def _result(code: int) -> str:
    return "already has that leader" if code else "elected"
