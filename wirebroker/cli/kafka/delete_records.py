"""`wirebroker kafka-delete-records`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from wirebroker.cli.kafka.plumbing.java_words import thrown
from wirebroker.cli.kafka.plumbing.script import (
    ScriptCommand,
    ScriptFlags,
    run_script,
    script_flags,
)
from wirebroker.cli.plumbing.file_path import FilePath
from wirebroker.client.errors import ClientError
from wirebroker.client.topics.leaders import TopicPartition, delete_records
from wirebroker.codecs.json_text import parse_json

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient

_VERSION: Final = 1


@click.command(cls=ScriptCommand)
@click.option(
    "--offset-json-file",
    "file",
    type=FilePath(exists=True, dir_okay=False),
    required=True,
    metavar="FILE",
    help='{"partitions": [{"topic": "t", "partition": 0, "offset": 3}], "version": 1}',
)
@script_flags
def kafka_delete_records(*, file: Path, **flags: Unpack[ScriptFlags]) -> int:
    """Delete the records before given offsets, as kafka-delete-records.sh."""
    before = _read(file)

    async def work(client: KafkaClient, out: Output) -> None:
        out.line("Executing records delete operation")
        lines: list[str] = []
        for topic_partition, offset in before.items():
            try:
                starts = await delete_records(client, {topic_partition: offset})
                lines.append(
                    f"partition: {topic_partition}\tlow_watermark: {starts[topic_partition]}"
                )
            except ClientError as error:
                lines.append(f"partition: {topic_partition}\terror: {thrown(error)}")
        out.line("Records delete operation completed:")
        for line in lines:
            out.line(line)

    return run_script(flags, work, failed=str, to_stderr=True)


def _read(file: Path) -> dict[TopicPartition, int]:
    try:
        document: Any = parse_json(file.read_text(encoding="utf-8"))
        version = document.get("version", _VERSION)
        if version != _VERSION:
            raise click.UsageError(f"Not supported version field value {version}")
        rows = [
            (TopicPartition(row["topic"], row["partition"]), int(row["offset"]))
            for row in document["partitions"]
        ]
    except (ValueError, TypeError, AttributeError):
        raise click.UsageError("The input string is not a valid JSON") from None
    except KeyError as error:
        raise click.UsageError(f"Missing {error} in {file}") from None
    before = dict(rows)
    if len(before) < len(rows):
        raise click.UsageError(f"{file} names a partition twice")
    return before
