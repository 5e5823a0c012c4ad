"""`wirebroker kafka-console-share-consumer`."""

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
from wirebroker.cli.kafka.plumbing.java_words import message_of
from wirebroker.cli.kafka.plumbing.properties import (
    client_properties,
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
from wirebroker.cli.plumbing.completed_names import GROUP_NAME, TOPIC_NAME
from wirebroker.cli.plumbing.file_path import FilePath
from wirebroker.client.errors import ClientError
from wirebroker.client.groups.share_consuming import ShareReader
from wirebroker.client.groups.share_membership import ShareMembership
from wirebroker.client.groups.share_session import AcknowledgeType
from wirebroker.codecs.errors import without_frames

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Unpack

    from wirebroker.cli.kafka.formatters.named_formatters import Formatter
    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.groups.share_consuming import DeliveredRecord
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition

_DEFAULT_GROUP: Final = "console-share-consumer"
_NO_LIMIT: Final = -1


class _ShareFlags(ScriptFlags, FormatterFlags):
    topic: str
    group: str | None
    max_messages: int
    timeout_ms: int | None
    command_properties: tuple[str, ...]
    old_consumer_properties: tuple[str, ...]
    consumer_config: Path | None


@click.command(cls=ScriptCommand)
@click.option("--topic", required=True, type=TOPIC_NAME, metavar="TOPIC", help="Topic to read.")
@click.option(
    "--group",
    type=GROUP_NAME,
    metavar="GROUP",
    help="Share group to read as a member of. [default: console-share-consumer]",
)
@click.option(
    "--max-messages",
    type=int,
    default=_NO_LIMIT,
    metavar="N",
    help="Stop after this number of records.",
)
@click.option(
    "--timeout-ms", type=int, metavar="MS", help="Stop if no record arrives for this time."
)
@click.option("--reject", is_flag=True, help="Reject the records that are printed.")
@click.option("--release", is_flag=True, help="Release the records that are printed.")
@click.option(
    "--reject-message-on-error", is_flag=True, help="Reject records that cannot be printed."
)
@formatter_flags
@click.option(
    "--command-property",
    "command_properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="Consumer property: group.id has an effect.",
)
@click.option(
    "--consumer-property",
    "old_consumer_properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="Deprecated: use --command-property.",
)
@click.option(
    "--consumer-config",
    type=FilePath(exists=True, dir_okay=False),
    metavar="FILE",
    help="Deprecated: use --command-config.",
)
@click.option("--enable-systest-events", is_flag=True, hidden=True)
@script_flags
def kafka_console_share_consumer(
    *,
    reject: bool,
    release: bool,
    reject_message_on_error: bool,
    enable_systest_events: bool,
    **flags: Unpack[_ShareFlags],
) -> int:
    """Print the records of a topic by a share group, as kafka-console-share-consumer.sh."""
    if reject and release:
        raise click.UsageError("give one of --reject and --release")
    group = _group_of(flags)
    formatter = chosen_formatter(flags)
    acknowledgement = AcknowledgeType.ACCEPT
    if reject or release:
        acknowledgement = AcknowledgeType.REJECT if reject else AcknowledgeType.RELEASE
    session = _Session(
        flags, group, formatter, acknowledgement, rejects_errors=reject_message_on_error
    )
    try:
        return run_script(flags, session.run, failed=str, to_stderr=True)
    finally:
        click.echo(f"Processed a total of {session.count} messages", err=True)
        if enable_systest_events:
            click.echo("shutdown_complete")


def _group_of(flags: _ShareFlags) -> str:
    """Return the group; adopt the file of --consumer-config."""
    told_of_newer_names(
        {
            "--property": ("--formatter-property", flags["old_properties"]),
            "--consumer-property": ("--command-property", flags["old_consumer_properties"]),
        }
    )
    if flags["old_properties"] and flags["formatter_properties"]:
        raise click.UsageError("give one of --property and --formatter-property")
    if flags["old_consumer_properties"] and flags["command_properties"]:
        raise click.UsageError("give one of --consumer-property and --command-property")
    if flags["consumer_config"] is not None:
        if flags["command_config"] is not None:
            raise click.UsageError("give one of --consumer-config and --command-config")
        flags["command_config"] = flags["consumer_config"]
    texts = flags["old_consumer_properties"] + flags["command_properties"]
    client_properties(flags["command_config"], texts)  # refuses unusable ones
    names = {
        flags["group"],
        properties_in(flags["command_config"]).get("group.id"),
        pairs_of(texts).get("group.id"),
    } - {None}
    if len(names) > 1:
        raise click.UsageError("--group and the properties name different groups")
    return next((name for name in names if name), _DEFAULT_GROUP)


class _Session:
    """One run; `count` is the number of records read."""

    def __init__(
        self,
        flags: _ShareFlags,
        group: str,
        formatter: Formatter,
        acknowledgement: AcknowledgeType,
        *,
        rejects_errors: bool,
    ) -> None:
        self.count = 0
        self._topic = flags["topic"]
        self._limit = flags["max_messages"]
        self._timeout_ms = flags["timeout_ms"]
        self._group = group
        self._formatter = formatter
        self._acknowledgement = acknowledgement
        self._rejects_errors = rejects_errors
        self._timestamp_type = ""
        self._deadline: asyncio.Timeout | None = None
        self._out: Output | None = None
        # Why a record could not be printed.
        self._failure: ClientError | None = None

    async def run(self, client: KafkaClient, out: Output) -> None:
        self._out = out
        if self._is_full():
            return
        # Creates the topic where the cluster does so.
        await client.metadata([self._topic], may_create=True)
        self._timestamp_type = await timestamp_type_of(client, self._topic)
        membership = ShareMembership(client, self._group, [self._topic])
        reader = ShareReader(client, membership, [self._topic], self._take)
        limit_s = None if self._timeout_ms is None else self._timeout_ms / 1000
        try:
            async with asyncio.timeout(limit_s) as self._deadline:
                await reader.run()
        except TimeoutError:
            click.echo(f"nothing has come for {self._timeout_ms} ms", err=True)
        except ClientError as error:
            if not error.code:
                raise
            # Kafka's tool also ends with status 0.
            click.echo(f"cannot read from group {self._group}: {message_of(error)}", err=True)
        if self._failure is not None:
            raise self._failure

    def _is_full(self) -> bool:
        return self._limit != _NO_LIMIT and self.count >= self._limit

    def _take(
        self, topic_partition: TopicPartition, records: list[DeliveredRecord]
    ) -> tuple[list[AcknowledgeType], bool]:
        lines: list[bytes] = []
        acknowledged: list[AcknowledgeType] = []
        for delivered in records:
            if self._is_full():
                break
            self.count += 1
            try:
                line = self._formatter(
                    topic_partition,
                    delivered.record,
                    self._timestamp_type,
                    delivered.delivery_count,
                )
            except ClientError as error:
                if not self._rejects_errors:
                    self._failure = without_frames(error)
                    break
                click.echo(f"Error processing message, rejecting this message: {error}", err=True)
                acknowledged.append(AcknowledgeType.REJECT)
                continue
            lines.append(line)
            acknowledged.append(self._acknowledgement)
        assert self._out is not None
        self._out.write(b"".join(lines))
        if self._deadline is not None and self._timeout_ms is not None:
            now = asyncio.get_running_loop().time()
            self._deadline.reschedule(now + self._timeout_ms / 1000)
        return acknowledged, self._failure is None and not self._is_full()
