"""`wirebroker dlq …`."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import click

from wirebroker.base.clock import SystemClock
from wirebroker.base.text import counted
from wirebroker.cli.plumbing.completed_names import GROUP_NAME, TOPIC_NAME
from wirebroker.cli.plumbing.flags import dry_run_hint, time_ms, yes_flag
from wirebroker.cli.plumbing.output import Output, tell
from wirebroker.cli.plumbing.running import (
    FAILED,
    ClusterFlags,
    bootstrap_of,
    cluster_flags,
    run_verb,
)
from wirebroker.cli.plumbing.security_flags import client_settings
from wirebroker.delivery.letters.letter import LetterFilter
from wirebroker.delivery.letters.reading import (
    list_dead_letter_topics,
    purge_limits,
    read_letters,
)
from wirebroker.delivery.letters.reading import purge as purge_letters
from wirebroker.delivery.letters.targets import redrive_problem

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from wirebroker.client.kafka_client import KafkaClient

_Command = TypeVar("_Command", bound="Callable[..., int]")
_COLUMNS = (
    *("partition", "offset", "time_ms", "source", "source_offset", "group", "count"),
    *("key", "value_bytes", "message"),
)
_MOST_COUNTED = 1_000_000
_NO_LIBRARY = "dlq redrive needs confluent-kafka: pip install 'wirebroker[delivery]'"


class _FilterFlags(TypedDict):
    source: str | None
    group: str | None
    message: str | None
    since_ms: int | None
    until_ms: int | None


class _DlqFlags(_FilterFlags, ClusterFlags):
    pass


def _filter_flags(command: _Command) -> _Command:
    for flag in (
        click.option(
            "--until",
            "until_ms",
            callback=time_ms,
            metavar="TIME",
            help="Limit to those written before this time.",
        ),
        click.option(
            "--since",
            "since_ms",
            callback=time_ms,
            metavar="TIME",
            help="Limit to those written at this time or later.",
        ),
        click.option("--message", metavar="TEXT", help="Limit to reasons with this text."),
        click.option(
            "--group", type=GROUP_NAME, metavar="GROUP", help="Limit to records of this group."
        ),
        click.option(
            "--source", type=TOPIC_NAME, metavar="TOPIC", help="Limit to records of this topic."
        ),
    ):
        command = flag(command)
    return command


def _filter(flags: _DlqFlags) -> LetterFilter:
    return LetterFilter(
        source=flags["source"],
        group=flags["group"],
        message=flags["message"],
        since_ms=flags["since_ms"],
        until_ms=flags["until_ms"],
    )


@click.group()
def dlq() -> None:
    """List, show, redrive and delete dead letters.

    Dead letters are records that a share group, a pipeline, a consumer or the delivery service
    could not process. Their topics are named TOPIC.dead-letters or dlq.….
    """


@dlq.command(name="list")
@cluster_flags
def list_(**flags: Unpack[ClusterFlags]) -> int:
    """List the topics that are named like dead-letter topics, with their numbers of records."""

    async def work(client: KafkaClient, out: Output) -> None:
        rows = await list_dead_letter_topics(client)
        out.show(rows, out.table(rows, ("topic", "partitions", "records")) if rows else [])

    return run_verb(flags, work)


@dlq.command()
@click.argument("topic", type=TOPIC_NAME, metavar="TOPIC")
@_filter_flags
@click.option(
    "-n",
    "--count",
    type=click.IntRange(1, 100_000),
    default=20,
    metavar="N",
    help="Show at most N. [default: 20]",
)
@cluster_flags
def show(*, topic: str, count: int, **flags: Unpack[_DlqFlags]) -> int:
    """Show the dead letters of a topic, the oldest of each partition first."""

    async def work(client: KafkaClient, out: Output) -> None:
        letters = await read_letters(client, topic, _filter(flags), count)
        rows = [letter.row() for letter in letters]
        out.show(rows, out.table(rows, _COLUMNS) if rows else [])

    return run_verb(flags, work)


@dlq.command()
@click.argument("topic", type=TOPIC_NAME, metavar="TOPIC")
@_filter_flags
@click.option(
    "--to",
    "target",
    type=TOPIC_NAME,
    metavar="TOPIC",
    help="Send to this topic. [default: the record's topic]",
)
@click.option(
    "-n", "--count", type=click.IntRange(1), metavar="N", help="Redrive at most N records."
)
@click.option(
    "--rate", type=click.IntRange(1), metavar="N", help="Send at most N records a second."
)
@yes_flag
@cluster_flags
def redrive(
    *,
    topic: str,
    target: str | None,
    count: int | None,
    rate: int | None,
    yes: bool,
    **flags: Unpack[_DlqFlags],
) -> int:
    """Send dead letters to their topics again, each once; without --yes, only count them.

    Sends key, value and headers, except the headers of the dead letter. The progress is stored in
    the group wirebroker-redrive.TOPIC, so a repeated or interrupted redrive sends no record twice.
    All groups that read the target receive the record. Requires wirebroker[delivery].
    """
    if not yes:

        async def work(client: KafkaClient, out: Output) -> None:
            await _check_targets(client, topic, {target} if target else set())
            letters = await read_letters(
                client, topic, _filter(flags), count or _MOST_COUNTED, skips_redriven=True
            )
            if not target:
                sent = (letter for letter in letters if letter.has_content)
                named = {letter.named_target for letter in sent}
                await _check_targets(client, topic, {name for name in named if name})
            matching = len(letters)
            verbs = ("matches", "was") if matching == 1 else ("match", "were")
            found = f"{counted(matching, 'dead letter')} {verbs[0]}"
            out.show({"matching": matching}, [f"{found} that {verbs[1]} not redriven before"])
            tell(dry_run_hint("would redrive these"))

        return run_verb(flags, work)
    return _redrive(topic, target, count, rate, flags)


async def _check_targets(client: KafkaClient, topic: str, targets: set[str]) -> None:
    from wirebroker.client.errors import ClientError  # noqa: PLC0415 - keeps --help fast

    existing = {each.name for each in (await client.metadata()).topics}
    problem = redrive_problem(topic, targets, existing)
    if problem is not None:
        raise ClientError(problem)


def _redrive(
    topic: str, target: str | None, count: int | None, rate: int | None, flags: _DlqFlags
) -> int:
    try:
        from wirebroker.delivery.letters.redrive import (  # noqa: PLC0415 - an extra
            Redrive,
            RedriveRequest,
        )
    except ModuleNotFoundError as error:
        if error.name != "confluent_kafka":
            raise
        raise click.ClickException(_NO_LIBRARY) from None
    from wirebroker.config import ConfigError  # noqa: PLC0415 - keeps --help fast
    from wirebroker.delivery.service.connection import librdkafka_settings  # noqa: PLC0415
    from wirebroker.delivery.service.errors import ServiceError  # noqa: PLC0415

    request = RedriveRequest(topic, target, _filter(flags), count, rate)
    redrive: Redrive | None = None
    try:
        kafka = librdkafka_settings(bootstrap_of(flags), client_settings(flags))
        redrive = Redrive(request, kafka, SystemClock(), threading.Event().wait)
        result = redrive.run()
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    except ServiceError as error:
        done = [] if redrive is None else redrive.result.sentences()
        tell(f"wirebroker: {'; '.join([str(error), *done])}")
        return FAILED
    data: dict[str, Any] = {"sent": result.sent, "empty": result.empty}
    data |= {"without_topic": result.without_target, "unreadable": result.unreadable}
    output = Output(is_json=flags["output"] == "json")
    with output:
        output.show(data, result.sentences() or ["nothing to redrive"])
    return 0


@dlq.command()
@click.argument("topic", type=TOPIC_NAME, metavar="TOPIC")
@click.option(
    "--before",
    "before_ms",
    callback=time_ms,
    metavar="TIME",
    help="Delete only those written before this time.",
)
@yes_flag
@cluster_flags
def purge(*, topic: str, before_ms: int | None, yes: bool, **flags: Unpack[ClusterFlags]) -> int:
    """Delete the dead letters of a topic; without --yes only count them.

    Deletes nothing if the range contains a record that is not a dead letter; it reads the whole
    range first.
    """

    async def work(client: KafkaClient, out: Output) -> None:
        limits = await purge_limits(client, topic, before_ms)
        rows = [
            {"partition": place.partition, "start": start, "records": end - start}
            for place, (start, end) in sorted(limits.items())
        ]
        if yes:
            await purge_letters(client, limits)
        data = {"topic": topic, "done": yes, "partitions": rows}
        out.show(data, out.table(rows, ("partition", "start", "records")))
        if not yes:
            tell(dry_run_hint("would delete these records"))

    return run_verb(flags, work)
