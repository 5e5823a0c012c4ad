"""`wirebroker consume TOPIC...`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from wirebroker.cli.plumbing.completed_names import GROUP_NAME, TOPIC_NAME
from wirebroker.cli.plumbing.flags import (
    START_WORDS,
    TIME_FORMAT,
    partitions_flag,
    record_flags,
    time_ms,
)
from wirebroker.cli.plumbing.record_format import record_writer
from wirebroker.cli.plumbing.running import ClusterFlags, cluster_flags, run_verb
from wirebroker.client.groups.group_consuming import GroupReader
from wirebroker.client.groups.group_membership import GroupMembership
from wirebroker.client.records.consuming import PartitionsReader
from wirebroker.client.topics.leaders import clamped, offsets_at, partitions_of
from wirebroker.client.topics.partition_choice import of_topic
from wirebroker.codecs.special_offsets import LATEST

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.cli.plumbing.record_format import Writer
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.codecs.records.record import Record

_ISOLATIONS: Final = ["read_uncommitted", "read_committed"]


def _offset(_context: click.Context, _option: click.Parameter, text: str | None) -> Any:
    if text is None or text in START_WORDS:
        return text
    try:
        return int(text)
    except ValueError:
        raise click.UsageError(f"--offset {text}: write start, end, N, or -N") from None


@click.command()
@click.argument("topics", nargs=-1, required=True, type=TOPIC_NAME, metavar="TOPIC...")
@click.option("--from-beginning", is_flag=True, help="Same as --offset start.")
@click.option(
    "-o",
    "--offset",
    callback=_offset,
    metavar="WHERE",
    help=(
        "Start at start, end, an offset, or -N for the last N records of each partition. "
        "[default: end]"
    ),
)
@click.option(
    "--from-time",
    callback=time_ms,
    metavar="TIME",
    help=f"Start at the first record at or after this time: {TIME_FORMAT}.",
)
@click.option("-n", "--count", type=click.IntRange(1), metavar="N", help="Stop after N records.")
@click.option("-e", "--exit", "exits", is_flag=True, help="Stop at the current end of the topics.")
@partitions_flag
@click.option(
    "-g",
    "--group",
    type=GROUP_NAME,
    metavar="GROUP",
    help=(
        "Read as a member of a consumer group: start at its committed offsets and commit what is "
        "printed. The flags for the start apply to partitions without committed offsets."
    ),
)
@click.option(
    "--isolation",
    type=click.Choice(_ISOLATIONS),
    default="read_uncommitted",
    help=(
        "read_committed skips records of aborted and open transactions. [default: read_uncommitted]"
    ),
)
@record_flags
@cluster_flags
def consume(
    *,
    topics: tuple[str, ...],
    from_beginning: bool,
    offset: int | str | None,
    from_time: int | None,
    count: int | None,
    exits: bool,
    partitions: list[int] | None,
    group: str | None,
    isolation: str,
    as_json: bool,
    form: str | None,
    **flags: Unpack[ClusterFlags],
) -> int:
    """Print the records of topics, and wait for more."""
    if [from_beginning, offset is not None, from_time is not None].count(True) > 1:
        raise click.UsageError("give one of --from-beginning, --offset and --from-time")
    if group is not None and partitions is not None:
        raise click.UsageError(
            "give one of --group and --partition: a group assigns partitions itself"
        )
    writer = record_writer(form, as_json=as_json or flags["output"] == "json")
    start = "start" if from_beginning else "end" if offset is None else offset
    read_committed = isolation == "read_committed"

    async def work(client: KafkaClient, out: Output) -> None:
        available = await partitions_of(client, topics)
        sink = _Sink(out, writer, count)

        async def positions(topic_partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
            return await _positions(client, topic_partitions, start, from_time)

        async def ends(topic_partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
            latest = dict.fromkeys(topic_partitions, LATEST)
            return await offsets_at(client, latest, read_committed=read_committed)

        if group is not None:
            reader = GroupReader(client, GroupMembership(client, group, topics), sink.take)
            await reader.run(positions, ends if exits else None, read_committed=read_committed)
            return
        topic_partitions = [
            topic_partition
            for topic in topics
            for topic_partition in of_topic(
                [candidate for candidate in available if candidate[0] == topic], partitions
            )
        ]
        until = await ends(topic_partitions) if exits else None
        await PartitionsReader(
            client,
            await positions(topic_partitions),
            sink.take,
            until=until,
            read_committed=read_committed,
        ).run()

    return run_verb(flags, work)


async def _positions(
    client: KafkaClient,
    topic_partitions: list[TopicPartition],
    start: int | str,
    from_time: int | None,
) -> dict[TopicPartition, int]:
    if from_time is not None:
        return await offsets_at(client, dict.fromkeys(topic_partitions, from_time))
    if isinstance(start, str):
        return await offsets_at(client, dict.fromkeys(topic_partitions, START_WORDS[start]))
    if start >= 0:
        return await clamped(client, dict.fromkeys(topic_partitions, start))
    ends = await offsets_at(client, dict.fromkeys(topic_partitions, LATEST))
    return await clamped(
        client,
        {topic_partition: ends[topic_partition] + start for topic_partition in topic_partitions},
    )


class _Sink:
    def __init__(self, out: Output, writer: Writer, max_records: int | None) -> None:
        self._out = out
        self._writer = writer
        self._remaining = max_records

    def take(self, topic_partition: TopicPartition, records: list[Record]) -> bool:
        """Print records; return whether to continue."""
        if self._remaining is not None:
            del records[self._remaining :]
            self._remaining -= len(records)
        self._out.write(b"".join([self._writer(topic_partition, record) for record in records]))
        return self._remaining != 0
