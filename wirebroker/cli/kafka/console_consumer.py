"""`wirebroker kafka-console-consumer`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import click

from wirebroker.cli.kafka.formatters.formatter_flags import (
    FormatterFlags,
    chosen_formatter,
    formatter_flags,
    timestamp_type_of,
)
from wirebroker.cli.kafka.plumbing.properties import client_properties, told_of_newer_names
from wirebroker.cli.kafka.plumbing.script import (
    ScriptCommand,
    ScriptFlags,
    run_script,
    script_flags,
)
from wirebroker.cli.kafka.plumbing.topic_filter import topic_filter
from wirebroker.cli.plumbing.completed_names import GROUP_NAME, TOPIC_NAME
from wirebroker.cli.plumbing.file_path import FilePath
from wirebroker.client.errors import ClientError
from wirebroker.client.groups.group_consuming import GroupReader
from wirebroker.client.groups.group_membership import GroupMembership
from wirebroker.client.records.consuming import PartitionsReader
from wirebroker.client.topics.leaders import TopicPartition, clamped, offsets_at, partitions_of
from wirebroker.codecs.special_offsets import EARLIEST, LATEST

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Unpack

    from wirebroker.cli.kafka.formatters.named_formatters import Formatter
    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.codecs.records.record import Record

_OFFSETS: Final = {"earliest": EARLIEST, "latest": LATEST}


class _ConsumerFlags(ScriptFlags, FormatterFlags):
    topic: str | None
    include: str | None
    partition: int | None
    offset: str | None
    from_beginning: bool
    max_messages: int | None
    timeout_ms: int | None
    group: str | None
    isolation_level: str | None
    command_properties: tuple[str, ...]
    old_consumer_properties: tuple[str, ...]
    consumer_config: Path | None


_FILE: Final = FilePath(exists=True, dir_okay=False)


@click.command(cls=ScriptCommand)
@click.option("--topic", type=TOPIC_NAME, metavar="TOPIC", help="Topic to read.")
@click.option("--include", metavar="REGEX", help="Regular expression of the topics to read.")
@click.option("--partition", type=click.IntRange(0), metavar="N", help="Read only this partition.")
@click.option(
    "--offset", metavar="WHERE", help="Offset to start at in the partition, or earliest or latest."
)
@click.option("--from-beginning", is_flag=True, help="Start at the earliest record.")
@click.option("--max-messages", type=int, metavar="N", help="Stop after this number of records.")
@click.option(
    "--timeout-ms", type=int, metavar="MS", help="Stop if no record arrives for this time."
)
@click.option(
    "--group", type=GROUP_NAME, metavar="GROUP", help="Read as a member of this group, and commit."
)
@click.option(
    "--isolation-level",
    type=click.Choice(["read_committed", "read_uncommitted"]),
    help="With read_committed, skip aborted transactions.",
)
@formatter_flags
@click.option(
    "--command-property",
    "command_properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="Consumer property: group.id, auto.offset.reset and isolation.level have an effect.",
)
@click.option(
    "--consumer-property",
    "old_consumer_properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="Deprecated: use --command-property.",
)
@click.option(
    "--consumer.config",
    "consumer_config",
    type=_FILE,
    metavar="FILE",
    help="Deprecated: use --command-config.",
)
@click.option("--skip-message-on-error", is_flag=True, help="Skip records that cannot be printed.")
@click.option("--enable-systest-events", is_flag=True, hidden=True)
@script_flags
def kafka_console_consumer(
    *,
    skip_message_on_error: bool,
    enable_systest_events: bool,
    **flags: Unpack[_ConsumerFlags],
) -> int:
    """Print the records of a topic, as kafka-console-consumer.sh."""
    _check(flags)
    told_of_newer_names(
        {
            "--property": ("--formatter-property", flags["old_properties"]),
            "--consumer-property": ("--command-property", flags["old_consumer_properties"]),
        }
    )
    file = flags["consumer_config"]
    if file is not None:
        flags["command_config"] = file
    property_flags = flags["old_consumer_properties"] + flags["command_properties"]
    properties = client_properties(flags["command_config"], property_flags)
    formatter = chosen_formatter(flags)
    session = _Session(flags, properties, formatter, skips_errors=skip_message_on_error)
    try:
        return run_script(flags, session.run, failed=str, to_stderr=True)
    finally:
        click.echo(f"Processed a total of {session.count} messages", err=True)
        if enable_systest_events:
            click.echo("shutdown_complete")


def _check(flags: _ConsumerFlags) -> None:
    if (flags["topic"] is None) == (flags["include"] is None):
        raise click.UsageError("give one of --topic and --include")
    if flags["partition"] is not None and flags["topic"] is None:
        raise click.UsageError("--partition needs --topic")
    if flags["partition"] is not None and flags["group"] is not None:
        raise click.UsageError("give one of --partition and --group")
    offset = flags["offset"]
    if offset is not None:
        if flags["partition"] is None:
            raise click.UsageError("--offset needs --partition")
        if flags["from_beginning"]:
            raise click.UsageError("give one of --offset and --from-beginning")
        if offset.lower() not in _OFFSETS and not offset.isdecimal():
            raise click.UsageError(f"--offset {offset}: write a number, earliest or latest")


class _Session:
    """One run; `count` is the number of records read."""

    def __init__(
        self,
        flags: _ConsumerFlags,
        properties: dict[str, str],
        formatter: Formatter,
        *,
        skips_errors: bool,
    ) -> None:
        self.count = 0
        self._flags = flags
        self._formatter = formatter
        self._skips_errors = skips_errors
        self._group = flags["group"] or properties.get("group.id")
        level = flags["isolation_level"] or properties.get("isolation.level")
        self._read_committed = level == "read_committed"
        reset = properties.get("auto.offset.reset", "latest")
        self._is_early = flags["from_beginning"] or reset == "earliest"
        self._timestamp_types: dict[str, str] = {}
        self._deadline: asyncio.Timeout | None = None
        self._out: Output | None = None

    async def run(self, client: KafkaClient, out: Output) -> None:
        self._out = out
        topics = await self._topics(client)
        for topic in topics:
            self._timestamp_types[topic] = await timestamp_type_of(client, topic)
        timeout_ms = self._flags["timeout_ms"]
        limit_s = None if timeout_ms is None else timeout_ms / 1000
        try:
            async with asyncio.timeout(limit_s) as self._deadline:
                await self._read(client, topics)
        except TimeoutError:
            click.echo(f"nothing has come for {timeout_ms} ms", err=True)

    async def _topics(self, client: KafkaClient) -> list[str]:
        topic = self._flags["topic"]
        if topic is not None:
            return [topic]
        is_wanted = topic_filter(self._flags["include"], exclude_internal=True)
        candidates = (await client.metadata()).topics
        names = sorted(
            candidate.name
            for candidate in candidates
            if is_wanted(candidate.name, candidate.is_internal)
        )
        if not names:
            raise ClientError(f"no topic matches {self._flags['include']}")
        return names

    async def _read(self, client: KafkaClient, topics: list[str]) -> None:
        topic_partitions = list(await partitions_of(client, topics, may_create=True))
        if self._group is not None:
            membership = GroupMembership(client, self._group, topics)
            reader = GroupReader(client, membership, self._take)

            async def begin(topic_partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
                return await self._begin(client, topic_partitions)

            await reader.run(begin, None, read_committed=self._read_committed)
            return
        partition = self._flags["partition"]
        chosen = [
            topic_partition
            for topic_partition in topic_partitions
            if partition is None or topic_partition.partition == partition
        ]
        if not chosen:
            raise ClientError(
                f"there is no partition {partition}: {topics[0]} has {len(topic_partitions)}"
            )
        positions = await self._begin(client, chosen)
        await PartitionsReader(
            client, positions, self._take, read_committed=self._read_committed
        ).run()

    async def _begin(
        self, client: KafkaClient, topic_partitions: list[TopicPartition]
    ) -> dict[TopicPartition, int]:
        offset = self._flags["offset"]
        if offset is not None and offset.lower() not in _OFFSETS:
            return await clamped(client, dict.fromkeys(topic_partitions, int(offset)))
        word = offset.lower() if offset else "earliest" if self._is_early else "latest"
        return await offsets_at(client, dict.fromkeys(topic_partitions, _OFFSETS[word]))

    def _take(self, topic_partition: TopicPartition, records: list[Record]) -> bool:
        max_messages = self._flags["max_messages"]
        if max_messages is not None and max_messages >= 0:
            del records[max_messages - self.count :]
        kind = self._timestamp_types[topic_partition.topic]
        lines: list[bytes] = []
        try:
            for record in records:
                self.count += 1
                lines += self._lines(topic_partition, record, kind)
        finally:
            assert self._out is not None
            self._out.write(b"".join(lines))
        limit_ms = self._flags["timeout_ms"]
        if self._deadline is not None and limit_ms is not None:
            now = asyncio.get_running_loop().time()
            self._deadline.reschedule(now + limit_ms / 1000)
        return self.count != max_messages

    def _lines(self, topic_partition: TopicPartition, record: Record, kind: str) -> list[bytes]:
        try:
            return [self._formatter(topic_partition, record, kind)]
        except ClientError as error:
            if not self._skips_errors:
                raise
            click.echo(f"Error processing message, skipping this message: {error}", err=True)
            return []
