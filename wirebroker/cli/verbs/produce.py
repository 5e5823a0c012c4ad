"""`wirebroker produce TOPIC < lines`."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING

import click

from wirebroker.base.text import counted
from wirebroker.cli.plumbing.completed_names import TOPIC_NAME
from wirebroker.cli.plumbing.flags import compression_flag, escaped_text
from wirebroker.cli.plumbing.running import ClusterFlags, cluster_flags, pairs, run_verb
from wirebroker.cli.plumbing.standard_input import lines_of, records_of
from wirebroker.client.errors import ClientError
from wirebroker.client.records.json_lines import record_of_line
from wirebroker.client.records.partitioning import Partitioner
from wirebroker.client.records.producing import TopicWriter

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.codecs.records.batch import BareRecord
    from wirebroker.codecs.records.codec import Codec


@click.command()
@click.argument("topic", type=TOPIC_NAME, metavar="TOPIC")
@click.option("-k", "--key", metavar="KEY", help="Key of all records.")
@click.option(
    "--key-separator",
    metavar="TEXT",
    callback=escaped_text,
    help="Text between key and value in each line; \\t is a tab, as in `consume --format`.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Read each line as JSON with key, value and headers, as `consume --json` prints.",
)
@click.option(
    "-H",
    "--header",
    "headers",
    multiple=True,
    metavar="KEY=VALUE",
    help=("Header of all records (repeatable)."),
)
@click.option(
    "-p",
    "--partition",
    type=click.IntRange(0),
    metavar="N",
    help=(
        "Partition of all records. [default: by key, as Java's producer; without keys one per "
        "batch]"
    ),
)
@compression_flag
@cluster_flags
def produce(
    *,
    topic: str,
    key: str | None,
    key_separator: bytes | None,
    as_json: bool,
    headers: tuple[str, ...],
    partition: int | None,
    codec: Codec,
    **flags: Unpack[ClusterFlags],
) -> int:
    """Write each line of standard input to a topic, as a record.

    Lines are sent as they arrive, in batches, and acknowledged by all in-sync replicas. A missing
    topic is created if the cluster allows it.
    """
    if key is not None and key_separator is not None:
        raise click.UsageError("give one of --key and --key-separator")
    if key_separator == b"":
        raise click.UsageError("--key-separator must not be empty")
    if as_json and (key is not None or key_separator is not None or headers):
        raise click.UsageError("--json reads keys and headers from the lines: omit their flags")
    lines_as_records: _JsonLines | _Shape = (
        _JsonLines() if as_json else _Shape(key, key_separator, pairs(headers, "--header"))
    )

    async def work(client: KafkaClient, out: Output) -> None:
        writer = TopicWriter(client, topic, codec)
        await writer.open()
        if partition is not None and partition >= writer.partition_count:
            raise ClientError(
                f"there is no partition {partition}: {topic} has {writer.partition_count}, from 0"
            )
        partitioner = Partitioner(writer.partition_count, random.Random())  # noqa: S311
        try:
            async for lines in lines_of(sys.stdin.fileno()):
                records, fault = records_of(lines, lines_as_records.record_of)
                await writer.write(
                    [
                        (
                            partitioner.partition_of(record[0]) if partition is None else partition,
                            record,
                        )
                        for record in records
                    ]
                )
                partitioner.turn()
                if fault is not None:
                    raise fault
        except ClientError as error:
            count = sum(stored_range.records for stored_range in writer.stored)
            before = f"{counted(count, 'record')} before it {'is' if count == 1 else 'are'} stored"
            raise ClientError(f"{error}; {before}") from error
        columns = ("partition", "records", "first_offset", "last_offset")
        rows = [
            {name: getattr(stored_range, name) for name in columns}
            for stored_range in writer.stored
        ]
        summary_lines = [
            f"{topic}-{stored_range.partition}: {stored_range.records} stored,"
            f" offsets {stored_range.first_offset} to {stored_range.last_offset}"
            for stored_range in writer.stored
        ]
        out.show({"topic": topic, "partitions": rows}, summary_lines)

    return run_verb(flags, work)


class _Shape:
    def __init__(self, key: str | None, separator: bytes | None, headers: dict[str, str]) -> None:
        self._key = None if key is None else key.encode()
        self._separator = separator
        self._headers = [(name, value.encode()) for name, value in headers.items()]
        self._count = 0

    def record_of(self, line: bytes) -> BareRecord:
        self._count += 1
        if self._separator is None:
            return self._key, line, self._headers
        key, found_separator, value = line.partition(self._separator)
        if not found_separator:
            text = self._separator.decode()
            raise ClientError(f"line {self._count} has no {text!r} between key and value")
        return key, value, self._headers


class _JsonLines:
    def __init__(self) -> None:
        self._count = 0

    def record_of(self, line: bytes) -> BareRecord:
        self._count += 1
        try:
            return record_of_line(line)
        except ValueError as error:
            raise ClientError(f"line {self._count} is not a record: {error}") from None
