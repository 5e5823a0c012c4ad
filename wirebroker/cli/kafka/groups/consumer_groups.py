"""`wirebroker kafka-consumer-groups`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import click

from wirebroker.cli.kafka.groups.chosen_partitions import check_existing, existing_partitions
from wirebroker.cli.kafka.groups.consumer_descriptions import members_of, offsets_of, state_of
from wirebroker.cli.kafka.groups.group_flags import detail_flags, group_flag, state_flag, topic_flag
from wirebroker.cli.kafka.groups.group_selection import chosen_states, group_failures, groups_of
from wirebroker.cli.kafka.groups.offset_deletion import topic_offsets_deleted
from wirebroker.cli.kafka.groups.offset_resets import Reset
from wirebroker.cli.kafka.groups.regex_validation import validate_regex_flag
from wirebroker.cli.kafka.groups.reset_flags import ResetFlags, reset_flags, scenario_of
from wirebroker.cli.kafka.groups.reset_output import reset_csv, reset_table
from wirebroker.cli.kafka.plumbing.java_map import in_map_order
from wirebroker.cli.kafka.plumbing.java_words import message_of, thrown
from wirebroker.cli.kafka.plumbing.script import (
    ScriptCommand,
    ScriptFlags,
    run_script,
    script_flags,
)
from wirebroker.cli.kafka.plumbing.tables import aligned, width_of
from wirebroker.client.errors import ClientError
from wirebroker.client.groups.groups import (
    commit,
    committed_of,
    delete_group,
    describe_group,
)
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from wirebroker.cli.kafka.groups.offset_resets import Scenario
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


class _GroupFlags(ScriptFlags, ResetFlags):
    groups: tuple[str, ...]
    all_groups: bool
    topics: tuple[str, ...]
    all_topics: bool
    members: bool
    offsets: bool
    verbose: bool
    state: str | None
    kind: str | None


@click.command(cls=ScriptCommand)
@click.option("--list", "list_", is_flag=True, help="List groups.")
@click.option("--describe", is_flag=True, help="Show the offsets and lag of groups.")
@click.option("--delete", is_flag=True, help="Delete groups.")
@click.option("--reset-offsets", is_flag=True, help="Reset the committed offsets of groups.")
@click.option(
    "--delete-offsets", "deletes_offsets", is_flag=True, help="Delete committed offsets of a group."
)
@group_flag
@click.option("--all-groups", is_flag=True, help="Use all groups.")
@topic_flag
@click.option("--all-topics", is_flag=True, help="Use all topics with committed offsets.")
@detail_flags
@state_flag
@click.option(
    "--type",
    "kind",
    is_flag=False,
    flag_value="",
    metavar="[TYPE,...]",
    help="With --list: show the type, or only groups of these types: classic, consumer.",
)
@click.option("--verbose", is_flag=True, help="With --describe: show more columns.")
@reset_flags(has_shifts=True)
@click.option("--timeout", type=int, metavar="MS", help="Request timeout.")
@validate_regex_flag
@script_flags
def kafka_consumer_groups(
    *,
    list_: bool,
    describe: bool,
    delete: bool,
    reset_offsets: bool,
    deletes_offsets: bool,
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
        has_file=flags["from_file"] is not None,
        deletes_offsets=deletes_offsets,
    )
    scenario = scenario_of(flags) if reset_offsets else None

    async def work(client: KafkaClient, out: Output) -> None:
        try:
            if scenario is not None:
                await _reset(client, out, flags, scenario)
                return
            action = (_list, _describe, _delete, None, _delete_offsets)[actions.index(True)]
            assert action is not None
            await action(client, out, flags)
        except ClientError as error:
            if not error.code:
                raise
            # Kafka's tool also ends with status 0.
            out.line(_failed(thrown(error) if describe else message_of(error)))

    return run_script(flags, work, failed=_failed)


def _failed(message: str) -> str:
    return f"\nError: Executing consumer group command failed due to {message}"


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
    states = chosen_states(flags["state"], _STATES)
    kinds = chosen_states(flags["kind"], _TYPES)
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
    widths = [width_of(group.name for group in groups) + 10, 20, 20]
    for line in aligned(rows, widths[: len(titles)]):
        out.line(line)


async def _consumer_groups(client: KafkaClient) -> list[ListedGroup]:
    # Before Kafka 3.8 groups have no type.
    return await groups_of(client, (None, *_TYPES))


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
    described = {
        name: await lines_of(client, name, verbose=flags["verbose"])
        for name in in_map_order(await _names(client, flags), str)
    }
    for _, lines in sorted(described.items()):
        for line in lines:
            out.line(line)


async def _delete(client: KafkaClient, out: Output, flags: _GroupFlags) -> None:
    deleted: list[str] = []
    failures: dict[str, str] = {}
    for name in await _names(client, flags):
        try:
            await delete_group(client, name)
            deleted.append(name)
        except ClientError as error:
            if not error.code:
                raise
            failures[name] = thrown(error)
    for line in group_failures("consumer groups", deleted, failures):
        out.line(line)


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
            goals[name] = {}
            continue
        reset = Reset(
            name, scenario, partial(committed_of, client, name), len(flags["groups"]) == 1
        )
        partitions = await _partitions_to_reset(client, name, flags)
        goals[name] = await reset.goals(client, out, partitions)
        if flags["execute"] and goals[name]:
            await commit(client, name, goals[name])
    if flags["export"]:
        lines = reset_csv(goals, has_group=len(flags["groups"]) != 1)
    else:
        lines = reset_table(goals)
    for line in lines:
        out.line(line)


async def _partitions_to_reset(
    client: KafkaClient, name: str, flags: _GroupFlags
) -> list[TopicPartition]:
    if not flags["all_topics"]:
        return await existing_partitions(client, flags["topics"])
    partitions = list(await committed_of(client, name))
    await check_existing(client, partitions)
    return partitions


async def _state(client: KafkaClient, name: str) -> str:
    try:
        return (await describe_group(client, name)).state
    except ClientError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return "Dead"


async def _delete_offsets(client: KafkaClient, out: Output, flags: _GroupFlags) -> None:
    for name in await _names(client, flags):
        for line in await topic_offsets_deleted(client, name, flags["topics"]):
            out.line(line)
