"""`wirebroker topic copy`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from wirebroker.base.text import counted
from wirebroker.cli.plumbing.completed_names import TOPIC_NAME
from wirebroker.cli.plumbing.flags import (
    TIME_FORMAT,
    compression_flag,
    dry_run_hint,
    partition_list,
    time_ms,
    yes_flag,
)
from wirebroker.cli.plumbing.output import tell
from wirebroker.cli.plumbing.running import ClusterFlags, cluster_flags, run_verb

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.records.copying import RangeBound
    from wirebroker.codecs.records.codec import Codec


@click.command()
@click.argument("source", type=TOPIC_NAME, metavar="SOURCE")
@click.argument("target", type=TOPIC_NAME, metavar="TARGET")
@click.option("--from-offset", type=click.IntRange(0), metavar="N", help="First offset to copy.")
@click.option(
    "--from-time",
    callback=time_ms,
    metavar="TIME",
    help=f"Start at the first record at or after this time: {TIME_FORMAT}.",
)
@click.option(
    "--until-offset", type=click.IntRange(0), metavar="N", help="First offset not to copy."
)
@click.option(
    "--until-time",
    callback=time_ms,
    metavar="TIME",
    help=f"End at the first record at or after this time: {TIME_FORMAT}.",
)
@click.option(
    "-p",
    "--partition",
    "partitions",
    callback=partition_list,
    metavar="N,...",
    help="Limit to these partitions of SOURCE.",
)
@click.option("-n", "--count", type=click.IntRange(1), metavar="N", help="Stop after N records.")
@click.option(
    "--keep-partitions",
    is_flag=True,
    help="Copy to the partitions with the same numbers. [default: by key, as Java's producer]",
)
@compression_flag
@yes_flag
@cluster_flags
def copy(
    *,
    source: str,
    target: str,
    from_offset: int | None,
    from_time: int | None,
    until_offset: int | None,
    until_time: int | None,
    partitions: list[int] | None,
    count: int | None,
    keep_partitions: bool,
    codec: Codec,
    yes: bool,
    **flags: Unpack[ClusterFlags],
) -> int:
    """Copy committed records to another topic; without --yes only show how many.

    Keys, values, headers and timestamps are kept.
    """
    from wirebroker.client.records.copying import (  # noqa: PLC0415 - keeps other verbs fast
        FROM_START,
        TO_END,
        RecordCopier,
        planned_copy,
    )

    begin = _bound(from_offset, from_time, "--from-offset", "--from-time") or FROM_START
    end = _bound(until_offset, until_time, "--until-offset", "--until-time") or TO_END

    async def work(client: KafkaClient, out: Output) -> None:
        plan = await planned_copy(
            client,
            source,
            target,
            partitions=partitions,
            begin=begin,
            end=end,
            keeps_partitions=keep_partitions,
            most=count,
        )
        rows = [
            {"partition": part.place.partition, "begin": part.begin, "end": part.end}
            for part in plan.ranges
        ]
        data = {"source": source, "target": target, "done": yes, "partitions": rows}
        if not yes:
            out.show(data, out.table(rows, ("partition", "begin", "end")))
            tell(dry_run_hint("would be copied"))
            return
        copier = RecordCopier(client, plan, codec)
        await copier.run()
        line = f"{counted(copier.copied, 'record')} copied from {source} to {target}"
        out.show(data | {"copied": copier.copied}, [line])

    return run_verb(flags, work)


def _bound(
    offset: int | None, timestamp: int | None, offset_flag: str, time_flag: str
) -> RangeBound | None:
    from wirebroker.client.records.copying import RangeBound  # noqa: PLC0415 - as above

    if offset is not None and timestamp is not None:
        raise click.UsageError(f"give one of {offset_flag} and {time_flag}")
    if offset is not None:
        return RangeBound(offset=offset)
    return None if timestamp is None else RangeBound(timestamp=timestamp)
