"""`wirebroker kafka-console-producer`."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Final

import click

from wirebroker.cli.kafka.plumbing.java_words import with_replacements
from wirebroker.cli.kafka.plumbing.properties import (
    client_properties,
    is_true,
    pairs_of,
    properties_in,
    told_of_newer_names,
)
from wirebroker.cli.kafka.plumbing.script import (
    ScriptCommand,
    ScriptFlags,
    run_script,
    script_flags,
)
from wirebroker.cli.plumbing.completed_names import TOPIC_NAME
from wirebroker.cli.plumbing.file_path import FilePath
from wirebroker.cli.plumbing.flags import codec_named
from wirebroker.cli.plumbing.standard_input import lines_of, records_of
from wirebroker.client.errors import ClientError
from wirebroker.client.records.partitioning import Partitioner
from wirebroker.client.records.producing import TopicWriter

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.codecs.records.batch import BareRecord

_READER: Final = "org.apache.kafka.tools.LineMessageReader"
# wirebroker sends what has arrived and waits for all replicas.
_WITHOUT_EFFECT: Final = (
    "--batch-size",
    "--message-send-max-retries",
    "--retry-backoff-ms",
    "--timeout",
    "--request-required-acks",
    "--request-timeout-ms",
    "--metadata-expiry-ms",
    "--max-block-ms",
    "--max-memory-bytes",
    "--max-partition-memory-bytes",
    "--socket-buffer-size",
)


def _flags_without_effect(command: click.Command) -> click.Command:
    for name in _WITHOUT_EFFECT:
        command.params.append(
            click.Option([name, "_"], expose_value=False, metavar="N", help="Has no effect.")
        )
    return command


class _ProducerFlags(ScriptFlags):
    topic: str
    compression: str | None
    old_properties: tuple[str, ...]
    reader_properties: tuple[str, ...]
    reader_config: Path | None
    old_producer_properties: tuple[str, ...]
    command_properties: tuple[str, ...]
    producer_config: Path | None


@_flags_without_effect
@click.command(cls=ScriptCommand)
@click.option("--topic", required=True, type=TOPIC_NAME, metavar="TOPIC", help="Topic to write to.")
@click.option("--sync", is_flag=True, help="Has no effect: every record is acknowledged.")
@click.option(
    "--compression-codec",
    "compression",
    is_flag=False,
    flag_value="gzip",
    metavar="[CODEC]",
    help="Codec: none, gzip, snappy, lz4 or zstd; without a value gzip.",
)
@click.option(
    "--line-reader", "_reader", type=click.Choice([_READER]), expose_value=False, hidden=True
)
@click.option(
    "--reader-property",
    "reader_properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="Property of the line reader: parse.key, key.separator, parse.headers, headers.delimiter,"
    " headers.separator, headers.key.separator, ignore.error, null.marker.",
)
@click.option(
    "--property",
    "old_properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="Deprecated: use --reader-property.",
)
@click.option(
    "--reader-config",
    type=FilePath(exists=True),
    metavar="FILE",
    help="File with properties of the line reader.",
)
@click.option(
    "--command-property",
    "command_properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="Producer property; only compression.type has an effect.",
)
@click.option(
    "--producer-property",
    "old_producer_properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="Deprecated: use --command-property.",
)
@click.option(
    "--producer.config",
    "producer_config",
    type=FilePath(exists=True),
    metavar="FILE",
    help="Deprecated: use --command-config.",
)
@script_flags
def kafka_console_producer(*, sync: bool, **flags: Unpack[_ProducerFlags]) -> int:
    """Write each line of standard input to a topic, as kafka-console-producer.sh."""
    del sync
    told_of_newer_names(
        {
            "--property": ("--reader-property", flags["old_properties"]),
            "--producer-property": ("--command-property", flags["old_producer_properties"]),
        }
    )
    file = flags["producer_config"]
    if file is not None:
        flags["command_config"] = file
    property_flags = flags["old_producer_properties"] + flags["command_properties"]
    properties = client_properties(flags["command_config"], property_flags)
    codec = codec_named(flags["compression"] or properties.get("compression.type", "none"))
    reading = properties_in(flags["reader_config"])
    reading |= pairs_of(flags["old_properties"] + flags["reader_properties"])
    reader = LineReader(reading)

    async def work(client: KafkaClient, out: Output) -> None:
        del out
        writer = TopicWriter(client, flags["topic"], codec)
        await writer.open()
        partitioner = Partitioner(writer.partition_count, random.Random())  # noqa: S311
        async for lines in lines_of(sys.stdin.fileno(), as_java=True):
            records, fault = records_of(map(with_replacements, lines), reader.record_of)
            await writer.write(
                [(partitioner.partition_of(record[0]), record) for record in records]
            )
            partitioner.turn()
            if fault is not None:
                raise fault

    return run_script(flags, work, failed=str, to_stderr=True)


class LineReader:
    r"""Converts lines to records: headers, key and value with separators.

    h1:v1,h2:v2 \t key \t value         with parse.headers=true and parse.key=true
    """

    __slots__ = (
        "_count",
        "_header_separator",
        "_headers_delimiter",
        "_headers_separator",
        "_ignores_errors",
        "_key_separator",
        "_null",
    )

    def __init__(self, properties: Mapping[str, str]) -> None:
        """Take the properties; unknown ones have no effect, as in Kafka.

        Raises:
            click.UsageError: Separators are equal.
        """

        def separator(name: str, otherwise: str, *, unless: str | None = None) -> bytes | None:
            if unless is not None and not is_true(properties, unless):
                return None
            return properties.get(name, otherwise).encode()

        self._key_separator = separator("key.separator", "\t", unless="parse.key")
        self._headers_delimiter = separator("headers.delimiter", "\t", unless="parse.headers")
        self._headers_separator = properties.get("headers.separator", ",").encode()
        self._header_separator = properties.get("headers.key.separator", ":").encode()
        marker = properties.get("null.marker")
        self._null = None if marker is None else marker.encode()
        self._ignores_errors = is_true(properties, "ignore.error")
        self._count = 0
        used = [self._headers_separator, self._header_separator]
        used += [
            delimiter
            for delimiter in (self._headers_delimiter, self._null)
            if delimiter is not None
        ]
        if len(set(used)) < len(used) or not all(used):
            raise click.UsageError("headers need separators that differ, also from null.marker")

    def record_of(self, line: bytes) -> BareRecord:
        """Return a line's record; raise ClientError if a separator is missing."""
        self._count += 1
        headers, line = self._cut(line, self._headers_delimiter, "headers delimiter")
        key, value = self._cut(line, self._key_separator, "key separator")
        rows: list[tuple[str, bytes | None]] = []
        if headers is not None and headers != self._null:
            rows = [self._header(pair) for pair in headers.split(self._headers_separator)]
        return self._or_null(key), self._or_null(value), rows

    def _cut(self, line: bytes, separator: bytes | None, name: str) -> tuple[bytes | None, bytes]:
        if separator is None:
            return None, line
        before, found_separator, after = line.partition(separator)
        if found_separator:
            return before, after
        if self._ignores_errors:
            return None, line
        text = line.decode(errors="replace")
        raise ClientError(f"No {name} found on line number {self._count}: '{text}'")

    def _header(self, pair: bytes) -> tuple[str, bytes | None]:
        name, found_separator, value = pair.partition(self._header_separator)
        if not found_separator and not self._ignores_errors:
            raise ClientError(
                f"No header key separator found in pair '{pair.decode(errors='replace')}' on line"
                f" number {self._count}"
            )
        header_value = self._or_null(value) if found_separator else None
        return name.decode("utf-8", "surrogateescape"), header_value

    def _or_null(self, data: bytes | None) -> bytes | None:
        return None if data == self._null else data
