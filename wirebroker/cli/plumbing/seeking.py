"""Flags and output of `group seek` and `share seek`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click

from wirebroker.cli.plumbing.flags import (
    START_WORDS,
    TIME_FORMAT,
    dry_run_hint,
    start_position,
    time_ms,
)
from wirebroker.cli.plumbing.output import tell
from wirebroker.client.changes.offset_moves import OffsetTarget, check_moves, move_offsets
from wirebroker.client.topics.partition_choice import topic_choice

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.changes.offset_moves import GroupMoves
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.partition_choice import TopicChoice


_Command = TypeVar("_Command", bound="Callable[..., int]")


def target_flags(command: _Command) -> _Command:
    """Add `--to` and `--to-time`; see seek_target."""
    to_time = click.option(
        "--to-time",
        callback=time_ms,
        metavar="TIME",
        help=f"Move to the first record at or after this time: {TIME_FORMAT}.",
    )
    to = click.option(
        "--to", callback=start_position, metavar="WHERE", help="Move to start, end, or an offset."
    )
    return to(to_time(command))


def topic_choices(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...], /
) -> list[TopicChoice]:
    """Parse topics, each `orders` or `orders:0,1`."""
    try:
        return [topic_choice(text) for text in texts]
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def seek_choices(topics: list[TopicChoice], partitions: list[int] | None) -> list[TopicChoice]:
    """Return the topics of --topic, limited by --partition unless they name partitions.

    Raises:
        click.UsageError: --partition without --topic.
    """
    if partitions is None:
        return topics
    if not topics:
        raise click.UsageError("--partition needs --topic")
    return [
        choice if choice.partitions is not None else choice._replace(partitions=tuple(partitions))
        for choice in topics
    ]


def seek_target(to: int | str | None, to_time: int | None) -> OffsetTarget:
    """Return the target of --to (start, end or an offset) or --to-time, of which one is given."""
    if to_time is not None:
        return OffsetTarget(timestamp=to_time)
    if isinstance(to, int):
        return OffsetTarget(offset=to)
    assert to is not None
    return OffsetTarget(timestamp=START_WORDS[to])


async def show_moves(
    client: KafkaClient, out: Output, plan: GroupMoves, *, yes: bool, offset: str = "committed"
) -> None:
    """Move offsets, or with `yes` false check the moves, and print them.

    `offset` is the column's name of offsets before.
    """
    if yes:
        await move_offsets(client, plan)
    else:
        await check_moves(client, plan)
    rows = [
        {**move.place._asdict(), offset: move.committed, "goal": move.goal} for move in plan.moves
    ]
    data = {"group": plan.group, "done": yes, "partitions": rows}
    out.show(data, out.table(rows, ("topic", "partition", offset, "goal")))
    if not yes:
        tell(dry_run_hint("would be moved"))
