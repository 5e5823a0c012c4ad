"""`wirebroker kafka-consumer-groups`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import click

from wirebroker.base.clock import SystemClock
from wirebroker.cli.kafka.group_descriptions import members_of, offsets_of, state_of
from wirebroker.cli.kafka.offset_resets import goals_of, places_of, scenario_of
from wirebroker.cli.kafka.plumbing.java_words import meaning, thrown, thrown_for
from wirebroker.cli.kafka.plumbing.script import (
    ScriptCommand,
    ScriptFlags,
    first_value,
    run_script,
    script_flags,
)
from wirebroker.cli.kafka.plumbing.tables import columns
from wirebroker.cli.plumbing.completed_names import GROUP_NAME, TOPIC_NAME
from wirebroker.cli.plumbing.file_path import FilePath
from wirebroker.client.errors import ClientError
from wirebroker.client.groups.groups import (
    commit,
    delete_group,
    delete_offsets,
    describe_group,
    list_groups,
)
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Unpack

    from wirebroker.cli.kafka.offset_resets import Scenario
    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.groups.groups import ListedGroup
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition

_STATES: Final = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
)
_TYPES: Final = ("classic", "consumer")
_AT_REST: Final = frozenset({"Empty", "Dead"})


class _GroupFlags(ScriptFlags):
    groups: tuple[str, ...]
    all_groups: bool
    topics: tuple[str, ...]
    all_topics: bool
    members: bool
    offsets: bool
    verbose: bool
    state: str | None
    kind: str | None
    execute: bool
    dry_run: bool
    export: bool


# Kafka's tool uses the first value.
_first_option = partial(click.option, multiple=True, callback=first_value)


@click.command(cls=ScriptCommand)
@click.option("--list", "list_", is_flag=True, help="List groups.")
@click.option("--describe", is_flag=True, help="Show the offsets and lag of groups.")
@click.option("--delete", is_flag=True, help="Delete groups.")
@click.option("--reset-offsets", is_flag=True, help="Reset the committed offsets of groups.")
@click.option(
    "--delete-offsets", "deletes_offsets", is_flag=True, help="Delete committed offsets of a group."
)
@click.option(
    "--group", "groups", multiple=True, type=GROUP_NAME, metavar="GROUP", help="Group to use."
)
@click.option("--all-groups", is_flag=True, help="Use all groups.")
@click.option(
    "--topic",
    "topics",
    multiple=True,
    type=TOPIC_NAME,
    metavar="TOPIC[:N,...]",
    help="Limit to these topics or partitions.",
)
@click.option("--all-topics", is_flag=True, help="Use all topics with committed offsets.")
@click.option("--members", is_flag=True, help="With --describe: show the members.")
@click.option("--offsets", is_flag=True, help="With --describe: show the offsets (the default).")
@click.option(
    "--state",
    is_flag=False,
    flag_value="",
    metavar="[STATE,...]",
    help="With --describe: show the state. With --list: show it, or only groups in these states.",
)
@click.option(
    "--type",
    "kind",
    is_flag=False,
    flag_value="",
    metavar="[TYPE,...]",
    help="With --list: show the type, or only groups of these types: classic, consumer.",
)
@click.option("--verbose", is_flag=True, help="With --describe: show more columns.")
@click.option("--execute", is_flag=True, help="With --reset-offsets: commit the new offsets.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="With --reset-offsets: show the new offsets without committing them.",
)
@click.option("--export", is_flag=True, help="With --reset-offsets: print the offsets as CSV.")
@_first_option("--to-offset", type=int, metavar="N", help="Reset to this offset.")
@_first_option(
    "--to-datetime",
    metavar="TIME",
    help="Reset to the first record at or after this time: 2026-11-22T10:00:00.000.",
)
@click.option(
    "--by-duration", metavar="DURATION", help="Reset to this duration before now: P1DT2H3M4S."
)
@click.option("--to-earliest", is_flag=True, help="Reset to the earliest offset.")
@click.option("--to-latest", is_flag=True, help="Reset to the latest offset.")
@click.option("--to-current", is_flag=True, help="Reset to the current offset.")
@click.option(
    "--shift-by", type=int, metavar="N", help="Shift forward by N records, or back with -N."
)
@_first_option(
    "--from-file",
    type=FilePath(exists=True),
    metavar="FILE",
    help="Reset to the offsets in a CSV file.",
)
@click.option("--timeout", type=int, metavar="MS", help="Request timeout.")
@script_flags
def kafka_consumer_groups(
    *,
    list_: bool,
    describe: bool,
    delete: bool,
    reset_offsets: bool,
    deletes_offsets: bool,
    to_offset: int | None,
    to_datetime: str | None,
    by_duration: str | None,
    to_earliest: bool,
    to_latest: bool,
    to_current: bool,
    shift_by: int | None,
    from_file: Path | None,
    timeout: int | None,
    **flags: Unpack[_GroupFlags],
) -> int:
    """List, describe and delete consumer groups, reset offsets, as kafka-consumer-groups.sh."""
    del timeout  # all requests wait longer than Kafka's default
    actions = [list_, describe, delete, reset_offsets, deletes_offsets]
    if actions.count(True) != 1:
        raise click.UsageError(
            "give one of --list, --describe, --delete, --reset-offsets and --delete-offsets"
        )
    _check(
        flags,
        needs_group=not list_,
        moves=reset_offsets,
        has_file=from_file is not None,
        deletes_offsets=deletes_offsets,
    )
    scenario: Scenario | None = None
    if reset_offsets:
        scenario = scenario_of(
            to_offset=to_offset,
            to_datetime=to_datetime,
            by_duration=by_duration,
            to_earliest=to_earliest,
            to_latest=to_latest,
            to_current=to_current,
            shift_by=shift_by,
            from_file=from_file,
            now_ms=SystemClock().now_ms(),
        )

    async def work(client: KafkaClient, out: Output) -> None:
        if scenario is not None:
            await _reset(client, out, flags, scenario)
            return
        action = (_list, _describe, _delete, None, _delete_offsets)[actions.index(True)]
        assert action is not None
        await action(client, out, flags)

    return run_script(
        flags,
        work,
        failed=lambda message: f"\nError: Executing consumer group command failed due to {message}",
    )


def _check(
    flags: _GroupFlags, *, needs_group: bool, moves: bool, has_file: bool, deletes_offsets: bool
) -> None:
    if needs_group and not (flags["groups"] or flags["all_groups"]):
        raise click.UsageError("give --group or --all-groups")
    if deletes_offsets and not flags["topics"]:
        raise click.UsageError("--delete-offsets needs --topic")
    if moves and not (flags["topics"] or flags["all_topics"] or has_file):
        raise click.UsageError("--reset-offsets needs --topic or --all-topics")
    if moves and flags["execute"] and flags["dry_run"]:
        raise click.UsageError("give one of --execute and --dry-run")
    if [flags["members"], flags["offsets"], flags["state"] is not None].count(True) > 1:
        raise click.UsageError("give one of --members, --offsets and --state")


# --- list, describe, delete


async def _list(client: KafkaClient, out: Output, flags: _GroupFlags) -> None:
    states = _chosen(flags["state"], _STATES)
    kinds = _chosen(flags["kind"], _TYPES)
    groups = [
        group
        for group in await _consumer_groups(client)
        if (not states or group.state in states) and (not kinds or group.kind in kinds)
    ]
    titles = ["GROUP", *(["TYPE"] if flags["kind"] is not None else [])]
    titles += ["STATE"] if flags["state"] is not None else []
    if titles == ["GROUP"]:
        for group in groups:
            out.line(group.name)
        return
    rows: list[Sequence[object]] = [list(titles)]
    for group in groups:
        row: list[object] = [group.name]
        row += [(group.kind or "").capitalize()] if "TYPE" in titles else []
        rows.append([*row, *([group.state] if "STATE" in titles else [])])
    for line in columns(rows, min_width=20):
        out.line(line)


def _chosen(text: str | None, choices: tuple[str, ...]) -> list[str]:
    by_lower_case = {choice.lower(): choice for choice in choices}
    requested = [item.strip().lower() for item in (text or "").split(",") if item.strip()]
    for item in requested:
        if item not in by_lower_case:
            raise click.UsageError(f"{item} is not among {', '.join(choices)}")
    return [by_lower_case[item] for item in requested]


async def _consumer_groups(client: KafkaClient) -> list[ListedGroup]:
    groups = await list_groups(client)
    return [group for group in groups if group.kind is None or group.kind in _TYPES]


async def _names(client: KafkaClient, flags: _GroupFlags) -> list[str]:
    if flags["all_groups"]:
        return [group.name for group in await _consumer_groups(client)]
    return list(dict.fromkeys(flags["groups"]))


async def _describe(client: KafkaClient, out: Output, flags: _GroupFlags) -> None:
    lines_of = offsets_of
    if flags["members"]:
        lines_of = members_of
    elif flags["state"] is not None:
        lines_of = state_of
    for name in await _names(client, flags):
        try:
            lines = await lines_of(client, name, verbose=flags["verbose"])
        except ClientError as error:
            if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            # Kafka's tool continues.
            message = thrown_for(error.code, f"Group {name} not found.")
            out.line(f"\nError: Executing consumer group command failed due to {message}")
            return
        for line in lines:
            out.line(line)


async def _delete(client: KafkaClient, out: Output, flags: _GroupFlags) -> None:
    deleted: list[str] = []
    failures: list[str] = []
    for name in await _names(client, flags):
        try:
            await delete_group(client, name)
            deleted.append(name)
        except ClientError as error:
            if not error.code:
                raise
            failures.append(f"* Group '{name}' could not be deleted due to: {thrown(error)}")
    names = ", ".join(f"'{group}'" for group in deleted)
    if not failures:
        out.line(f"Deletion of requested consumer groups ({names}) was successful.")
        return
    out.line("\nError: Deletion of some consumer groups failed:")
    for line in failures:
        out.line(line)
    if deleted:
        out.line(f"\nThese consumer groups were deleted successfully: {names}")


# --- offsets


async def _reset(client: KafkaClient, out: Output, flags: _GroupFlags, scenario: Scenario) -> None:
    if not (flags["execute"] or flags["dry_run"] or flags["export"]):
        click.echo("WARN: nothing is changed without --execute", err=True)
    goals: dict[str, dict[TopicPartition, int]] = {}
    for name in await _names(client, flags):
        state = await _state(client, name)
        if state not in _AT_REST:
            out.line(
                f"\nError: Assignments can only be reset if the group '{name}' is inactive, but the"
                f" current state is {state}."
            )
            continue
        topic_partitions = await places_of(
            client, name, flags["topics"], all_topics=flags["all_topics"]
        )
        goals[name] = await goals_of(client, name, topic_partitions, scenario)
        if flags["execute"] and goals[name]:
            await commit(client, name, goals[name])
    if flags["export"]:
        for name, offsets in goals.items():
            prefix = f"{name}," if len(goals) > 1 else ""
            for topic_partition, offset in sorted(offsets.items()):
                out.line(f"{prefix}{topic_partition.topic},{topic_partition.partition},{offset}")
        return
    rows: list[Sequence[object]] = [["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"]]
    rows += [
        [name, *topic_partition, offset]
        for name, offsets in goals.items()
        for topic_partition, offset in sorted(offsets.items())
    ]
    out.line("")
    for line in columns(rows):
        out.line(line)


async def _state(client: KafkaClient, name: str) -> str:
    try:
        return (await describe_group(client, name)).state
    except ClientError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return "Dead"


async def _delete_offsets(client: KafkaClient, out: Output, flags: _GroupFlags) -> None:
    for name in await _names(client, flags):
        topic_partitions = await places_of(client, name, flags["topics"], all_topics=False)
        code, codes = await delete_offsets(client, name, topic_partitions)
        if code:
            out.line(f"\nError: {meaning(code)}")
            codes = dict.fromkeys(topic_partitions, code)
        elif any(codes.values()):
            out.line("\nError: Encountered some partition-level error, see the follow-up details.")
        else:
            out.line(f"Request succeeded for deleting offsets from group {name}.")
        rows: list[Sequence[object]] = [["TOPIC", "PARTITION", "STATUS"]]
        rows += [
            [
                *topic_partition,
                f"Error: {thrown_for(partition_code)}" if partition_code else "Successful",
            ]
            for topic_partition, partition_code in sorted(codes.items())
        ]
        out.line("")
        for line in columns(rows):
            out.line(line)
