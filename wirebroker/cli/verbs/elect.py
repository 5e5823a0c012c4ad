"""`wirebroker elect …`: leader elections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from wirebroker.base.wording import counted
from wirebroker.cli.plumbing.completed_names import TOPIC_NAME
from wirebroker.cli.plumbing.flags import chosen_partitions, dry_run_hint, partition_list, yes_flag
from wirebroker.cli.plumbing.output import tell
from wirebroker.cli.plumbing.running import ClusterFlags, cluster_flags, run_verb
from wirebroker.client.checks.dry_runs import check_cluster_rights
from wirebroker.client.errors import ClientError
from wirebroker.client.replicas.elections import PREFERRED, UNCLEAN, elect_leaders
from wirebroker.client.topics.leaders import TopicPartition

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient


@click.group()
def elect() -> None:
    """Elect leaders of partitions."""


_topics = click.argument("topics", nargs=-1, type=TOPIC_NAME, metavar="[TOPIC...]")
_partitions = click.option(
    "-p",
    "--partition",
    "partitions",
    callback=partition_list,
    metavar="N,...",
    help=("Limit to these partitions."),
)


@elect.command()
@_topics
@_partitions
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
        places = list(await _leaders(client, topics, partitions)) if topics else None
        await _elect(client, out, PREFERRED, places)

    return run_verb(flags, work)


@elect.command()
@_topics
@_partitions
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
        lost = [place for place, leader in leaders.items() if leader < 0]
        if yes:
            await _elect(client, out, UNCLEAN, lost)
            return
        if lost:
            await check_cluster_rights(client, "alter", "leaders cannot be elected")
        rows = [place._asdict() for place in lost]
        out.show({"would_elect": rows}, out.table(rows, ("topic", "partition")))
        tell(dry_run_hint("would elect replicas that may lack records"))

    return run_verb(flags, work)


async def _leaders(
    client: KafkaClient, topics: tuple[str, ...], partitions: list[int] | None
) -> dict[TopicPartition, int]:
    leaders: dict[TopicPartition, int] = {}
    for topic in (await client.metadata(topics)).topics:
        found = {
            TopicPartition(topic.name, each.partition_index): int(each.leader_id)
            for each in sorted(topic.partitions, key=lambda each: each.partition_index)
        }
        if not found:
            raise ClientError(f"there is no topic {topic.name}", code=topic.error_code)
        leaders |= {place: found[place] for place in chosen_partitions(list(found), partitions)}
    return leaders


async def _elect(
    client: KafkaClient, out: Output, kind: int, places: list[TopicPartition] | None
) -> None:
    found = await elect_leaders(client, kind, places) if places is None or places else []
    rows: list[dict[str, Any]] = [
        {
            **each.place._asdict(),
            "elected": not each.code,
            "message": each.message if each.is_refused else None,
        }
        for each in found
    ]
    said = [
        f"{each.place}: {each.message if each.is_refused else _result(each.code)}" for each in found
    ]
    out.show(rows, said or ["every leader is the preferred one"])
    refused = sum(each.is_refused for each in found)
    if refused:
        raise ClientError(f"refused: {refused} of {counted(len(found), 'election')}")


def _result(code: int) -> str:
    return "already has that leader" if code else "elected"
