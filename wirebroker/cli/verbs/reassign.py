"""`wirebroker reassign …`."""

from __future__ import annotations

import sys
from typing import IO, TYPE_CHECKING, Any

import click

from wirebroker.base.text import counted
from wirebroker.cli.plumbing.completed_names import TOPIC_NAME
from wirebroker.cli.plumbing.flags import dry_run_hint, partition_list, yes_flag
from wirebroker.cli.plumbing.output import tell
from wirebroker.cli.plumbing.running import FAILED, ClusterFlags, cluster_flags, run_verb
from wirebroker.client.checks.dry_runs import check_moves
from wirebroker.client.errors import ClientError
from wirebroker.client.replicas.moves import (
    ReplicaPlan,
    cancel_moves,
    replicas_of_partitions,
    spread_replicas,
    start_moves,
    throttle_moves,
    unthrottle_moves,
)
from wirebroker.client.replicas.reassignment_plan import plan_text, read_plan
from wirebroker.client.replicas.reassignments import list_reassignments, origins_of

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition

_plan_file = click.argument("file", type=click.File(), metavar="PLAN")


@click.group()
def reassign() -> None:
    """Move replicas to other brokers.

    PLAN is a file in the format of the Kafka tool, or - for standard input.

    `wirebroker reassign plan orders --brokers 2,3 > plan.json` creates one.
    """


@reassign.command()
@click.argument("topics", nargs=-1, required=True, type=TOPIC_NAME, metavar="TOPIC...")
@click.option(
    "--brokers",
    callback=partition_list,
    metavar="ID,...",
    help="Brokers for the replicas. [default: all brokers]",
)
@click.option(
    "-r",
    "--replicas",
    type=click.IntRange(1),
    metavar="N",
    help="Replicas of each partition. [default: as many as now]",
)
@cluster_flags
def plan(
    *,
    topics: tuple[str, ...],
    brokers: list[int] | None,
    replicas: int | None,
    **flags: Unpack[ClusterFlags],
) -> int:
    """Generate a reassignment plan that spreads topics evenly and moves few replicas.

    Nothing is changed. The current assignment is printed to standard error, as a plan for the way
    back.
    """

    async def work(client: KafkaClient, out: Output) -> None:
        current, planned = found = await spread_replicas(client, topics, brokers, count=replicas)
        if not out.is_json:
            tell(f"current assignment: {plan_text(current)}")
            tell(f"changed: {len(found.moves)} of {counted(len(current), 'partition')}")
        out.line(plan_text(planned))

    return run_verb(flags, work)


@reassign.command()
@_plan_file
@click.option(
    "--throttle",
    "bytes_per_s",
    type=click.IntRange(1),
    metavar="BYTES",
    help="Limit the moves between two brokers, in bytes/s; `verify` removes the limit.",
)
@yes_flag
@cluster_flags
def execute(
    *, file: IO[str], bytes_per_s: int | None, yes: bool, **flags: Unpack[ClusterFlags]
) -> int:
    """Start the moves of a plan; without --yes only list them."""
    goals = _read(file)

    async def work(client: KafkaClient, out: Output) -> None:
        current = await replicas_of_partitions(client, goals)
        moves = ReplicaPlan(current, goals).moves
        rows = [
            {**topic_partition._asdict(), "replicas": current[topic_partition], "goal": goal}
            for topic_partition, goal in moves.items()
        ]
        silent: list[int] = []
        if yes:
            origins = await origins_of(client, current)
            silent = await start_moves(client, origins, moves, bytes_per_s)
            _warn_of_unthrottled(silent)
        elif moves:
            await check_moves(client, moves)
        data: dict[str, Any] = {"done": yes, "partitions": rows}
        if bytes_per_s is not None:
            data["not_responding"] = silent
        out.show(data, out.table(rows, ("topic", "partition", "replicas", "goal")))
        if not yes:
            tell(dry_run_hint("would be moved"))

    return run_verb(flags, work)


@reassign.command("list")
@cluster_flags
def list_(**flags: Unpack[ClusterFlags]) -> int:
    """List the moves in progress."""

    async def work(client: KafkaClient, out: Output) -> None:
        rows = [
            {
                **reassignment.place._asdict(),
                "replicas": reassignment.replicas,
                "adding": reassignment.adding,
                "removing": reassignment.removing,
            }
            for reassignment in await list_reassignments(client)
        ]
        columns = ("topic", "partition", "replicas", "adding", "removing")
        out.show(rows, out.table(rows, columns))

    return run_verb(flags, work)


@reassign.command()
@_plan_file
@cluster_flags
def verify(*, file: IO[str], **flags: Unpack[ClusterFlags]) -> int:
    """Show the progress of a plan's moves; remove their throttle when all are done.

    The exit status is 1 until they are done.
    """
    goals = _read(file)
    is_done = True

    async def work(client: KafkaClient, out: Output) -> None:
        nonlocal is_done
        current = await replicas_of_partitions(client, goals)
        under_way = {reassignment.place for reassignment in await list_reassignments(client)}
        rows = [
            {
                **topic_partition._asdict(),
                "replicas": current[topic_partition],
                "goal": goal,
                "state": _state(
                    current[topic_partition], goal, is_under_way=topic_partition in under_way
                ),
            }
            for topic_partition, goal in goals.items()
        ]
        is_done = all(row["state"] == "done" for row in rows)
        if is_done:
            topics = {topic_partition.topic for topic_partition in goals}
            _warn_of_silent(await unthrottle_moves(client, topics) if topics else [])
        out.show(
            {"done": is_done, "partitions": rows},
            out.table(rows, ("topic", "partition", "replicas", "goal", "state")),
        )

    status = run_verb(flags, work)
    return status or (0 if is_done else FAILED)


@reassign.command()
@click.argument("file", type=click.File(), required=False, metavar="[PLAN]")
@yes_flag
@cluster_flags
def cancel(*, file: IO[str] | None, yes: bool, **flags: Unpack[ClusterFlags]) -> int:
    """Cancel moves in progress, those of a plan or all; without --yes only list them."""
    goals = None if file is None else _read(file)

    async def work(client: KafkaClient, out: Output) -> None:
        reassignments = [
            reassignment
            for reassignment in await list_reassignments(client)
            if goals is None or reassignment.place in goals
        ]
        if yes and reassignments:
            _warn_of_silent((await cancel_moves(client, reassignments)).silent)
        elif reassignments:
            await check_moves(client, {})
        rows: list[dict[str, Any]] = [
            {
                **reassignment.place._asdict(),
                "replicas": reassignment.replicas,
                "goal": reassignment.goal,
            }
            for reassignment in reassignments
        ]
        data = {"done": yes, "partitions": rows}
        out.show(data, out.table(rows, ("topic", "partition", "replicas", "goal")))
        if not yes:
            tell(dry_run_hint("would be canceled"))

    return run_verb(flags, work)


@reassign.command("throttle")
@click.argument("bytes_per_s", type=click.IntRange(1), metavar="BYTES")
@cluster_flags
def throttle_(*, bytes_per_s: int, **flags: Unpack[ClusterFlags]) -> int:
    """Limit the moves in progress, in bytes/s between two brokers.

    `wirebroker reassign unthrottle` removes the limit.
    """

    async def work(client: KafkaClient, out: Output) -> None:
        reassignments = await list_reassignments(client)
        if not reassignments:
            raise ClientError("no moves are in progress")
        silent = await throttle_moves(client, reassignments, bytes_per_s)
        _warn_of_unthrottled(silent)
        rows = [row.place._asdict() for row in reassignments]
        data = {"bytes_per_s": bytes_per_s, "partitions": rows, "not_responding": silent}
        out.show(data, out.table(rows, ("topic", "partition")))

    return run_verb(flags, work)


@reassign.command("unthrottle")
@click.argument("topics", nargs=-1, type=TOPIC_NAME, metavar="[TOPIC...]")
@cluster_flags
def unthrottle_(*, topics: tuple[str, ...], **flags: Unpack[ClusterFlags]) -> int:
    """Remove the limit of moves from all brokers.

    This also removes the lists of throttled replicas from the given topics, by default from those
    with moves in progress.
    """

    async def work(client: KafkaClient, out: Output) -> None:
        moving = {row.place.topic for row in await list_reassignments(client)}
        names = sorted(topics or moving)
        silent = await unthrottle_moves(client, names)
        _warn_of_silent(silent)
        out.show({"topics": names, "not_responding": silent}, ["the throttle is removed"])

    return run_verb(flags, work)


def _read(file: IO[str]) -> dict[TopicPartition, list[int]]:
    try:
        return read_plan(file.read())
    except ValueError as error:
        name = "standard input" if file is sys.stdin else file.name
        raise click.UsageError(f"{name} is not a plan: {error}") from None


def _warn_of_silent(broker_ids: list[int]) -> None:
    for broker_id in broker_ids:
        tell(
            f"broker {broker_id} does not respond and may still be throttled: repeat this when it"
            " does"
        )


def _warn_of_unthrottled(broker_ids: list[int]) -> None:
    for broker_id in broker_ids:
        tell(
            f"broker {broker_id} does not respond and is not throttled: run"
            " `wirebroker reassign throttle` when it does"
        )


def _state(current: list[int], goal: list[int], *, is_under_way: bool) -> str:
    if is_under_way:
        return "under way"
    return "done" if current == goal else "not begun"
