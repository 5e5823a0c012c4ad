"""`wirebroker kafka-streams-groups`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from wirebroker.cli.kafka.groups.group_flags import detail_flags, group_flag, state_flag
from wirebroker.cli.kafka.groups.group_selection import chosen_states, group_table, groups_of
from wirebroker.cli.kafka.groups.offset_deletion import offsets_deleted, topic_offsets_deleted
from wirebroker.cli.kafka.groups.reset_flags import ResetFlags, reset_flags, scenario_of
from wirebroker.cli.kafka.groups.streams_deletion import delete_streams_groups
from wirebroker.cli.kafka.groups.streams_descriptions import members_of, offsets_of, state_of
from wirebroker.cli.kafka.groups.streams_resets import StreamsReset, input_offsets_of
from wirebroker.cli.kafka.groups.topology_text import topology_text
from wirebroker.cli.kafka.plumbing.java_words import message_of, thrown
from wirebroker.cli.kafka.plumbing.script import (
    TIMEOUT_S,
    ScriptCommand,
    ScriptFlags,
    run_script,
    script_flags,
)
from wirebroker.cli.plumbing.completed_names import TOPIC_NAME
from wirebroker.client.errors import ClientError
from wirebroker.client.groups.streams_groups import (
    AVAILABLE,
    FAILED,
    NOT_STORED,
    STREAMS,
    describe_streams_group,
)

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.cli.kafka.groups.offset_resets import Scenario
    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.groups.groups import ListedGroup
    from wirebroker.client.groups.streams_groups import DescribedStreamsGroup
    from wirebroker.client.kafka_client import KafkaClient

_STATES: Final = ("Empty", "NotReady", "Stable", "Assigning", "Reconciling", "Dead")
_ACTIONS: Final = ("list_", "describe", "reset_offsets", "delete", "deletes_offsets")
_FAILED_STATUS: Final = 1


class _StreamsFlags(ScriptFlags, ResetFlags):
    list_: bool
    describe: bool
    delete: bool
    reset_offsets: bool
    deletes_offsets: bool
    groups: tuple[str, ...]
    all_groups: bool
    topics: tuple[str, ...]
    all_topics: bool
    members: bool
    offsets: bool
    topology: bool
    state: str | None
    verbose: bool
    internal_topics: tuple[str, ...]
    all_internal_topics: bool
    timeout: int | None


@click.command(cls=ScriptCommand)
@click.option("--list", "list_", is_flag=True, help="List streams groups.")
@click.option("--describe", is_flag=True, help="Show the offsets of streams groups.")
@click.option("--delete", is_flag=True, help="Delete streams groups.")
@click.option("--reset-offsets", is_flag=True, help="Reset the committed offsets of groups.")
@click.option(
    "--delete-offsets", "deletes_offsets", is_flag=True, help="Delete committed offsets of a group."
)
@group_flag
@click.option("--all-groups", is_flag=True, help="Use all streams groups.")
@click.option(
    "--input-topic",
    "topics",
    multiple=True,
    type=TOPIC_NAME,
    metavar="TOPIC[:N,...]",
    help="Limit to these input topics or partitions.",
)
@click.option(
    "--all-input-topics", "all_topics", is_flag=True, help="Use all input topics of the group."
)
@detail_flags
@click.option("--topology", is_flag=True, help="With --describe: show the stored topology.")
@state_flag
@click.option("--verbose", is_flag=True, help="With --describe: show more columns.")
@reset_flags(has_shifts=True)
@click.option(
    "--delete-internal-topic",
    "internal_topics",
    multiple=True,
    type=TOPIC_NAME,
    metavar="TOPIC",
    help="With --reset-offsets --execute: delete this internal topic.",
)
@click.option(
    "--delete-all-internal-topics",
    "all_internal_topics",
    is_flag=True,
    help="With --delete, or --reset-offsets --execute: delete the internal topics.",
)
@click.option("--timeout", type=int, metavar="MS", help="Request timeout. [default: 30000]")
@script_flags
def kafka_streams_groups(**flags: Unpack[_StreamsFlags]) -> int:
    """List, describe and delete streams groups, reset offsets, as kafka-streams-groups.sh."""
    if [flags[action] for action in _ACTIONS].count(True) != 1:
        raise click.UsageError(
            "give one of --list, --describe, --delete, --reset-offsets and --delete-offsets"
        )
    _check(flags)
    scenario = scenario_of(flags) if flags["reset_offsets"] else None

    async def work(client: KafkaClient, out: Output) -> None:
        try:
            await _act(client, out, flags, scenario)
        except ClientError as error:
            if not error.code:
                raise
            shown = thrown(error) if flags["describe"] else message_of(error)
            out.line(_failed(shown))
            raise click.exceptions.Exit(_FAILED_STATUS) from None

    timeout = flags["timeout"]
    return run_script(
        flags, work, failed=_failed, timeout_s=TIMEOUT_S if timeout is None else timeout / 1000
    )


def _failed(message: str) -> str:
    return f"\nError: Executing streams group command failed due to {message}"


async def _act(
    client: KafkaClient, out: Output, flags: _StreamsFlags, scenario: Scenario | None
) -> None:
    if scenario is not None:
        names = flags["groups"]
        if flags["all_groups"]:
            names = tuple(group.name for group in await _listed(client))
        reset = StreamsReset(
            scenario=scenario,
            has_one_group=len(flags["groups"]) == 1,
            topics=flags["topics"],
            all_topics=flags["all_topics"],
            internal_topics=flags["internal_topics"],
            all_internal_topics=flags["all_internal_topics"],
            execute=flags["execute"],
            export=flags["export"],
        )
        await reset.run(client, out, names)
    elif flags["list_"]:
        await _list(client, out, flags)
    elif flags["describe"]:
        await _describe(client, out, flags)
    elif flags["delete"]:
        await delete_streams_groups(
            client,
            out,
            None if flags["all_groups"] else flags["groups"],
            deletes_topics=flags["all_internal_topics"],
        )
    else:
        await _delete_offsets(client, out, flags)


def _check(flags: _StreamsFlags) -> None:
    shown = [flags["members"], flags["offsets"], flags["topology"], flags["state"] is not None]
    if flags["groups"] and flags["all_groups"]:
        raise click.UsageError("give one of --group and --all-groups")
    if (any(shown[:3]) or flags["verbose"]) and not flags["describe"]:
        raise click.UsageError("--members, --offsets, --topology and --verbose need --describe")
    if flags["state"] is not None and not (flags["describe"] or flags["list_"]):
        raise click.UsageError("--state needs --describe or --list")
    if shown.count(True) > 1:
        raise click.UsageError("give one of --members, --offsets, --state and --topology")
    if flags["describe"] and flags["state"]:
        raise click.UsageError("--describe takes --state without a value")
    _check_scope(flags)
    _check_execution(flags)


def _check_scope(flags: _StreamsFlags) -> None:
    has_group = bool(flags["groups"]) or flags["all_groups"]
    if flags["list_"] and flags["groups"]:
        raise click.UsageError("--list takes no --group")
    if not (flags["list_"] or flags["deletes_offsets"] or has_group):
        raise click.UsageError("give --group or --all-groups")
    if flags["topics"] and not (flags["reset_offsets"] or flags["deletes_offsets"]):
        raise click.UsageError("--input-topic needs --reset-offsets or --delete-offsets")
    if flags["delete"] and flags["all_topics"]:
        raise click.UsageError("--delete takes no --all-input-topics")
    if flags["deletes_offsets"]:
        if len(flags["groups"]) != 1:
            raise click.UsageError("--delete-offsets needs one --group")
        if not (flags["topics"] or flags["all_topics"]):
            raise click.UsageError("give --input-topic or --all-input-topics")


def _check_execution(flags: _StreamsFlags) -> None:
    if not flags["reset_offsets"] and (flags["execute"] or flags["dry_run"]):
        raise click.UsageError("--execute and --dry-run need --reset-offsets")
    if flags["reset_offsets"]:
        if flags["execute"] == flags["dry_run"]:
            raise click.UsageError("give one of --execute and --dry-run")
        if not (flags["topics"] or flags["all_topics"] or flags["from_file"]):
            raise click.UsageError("give --input-topic or --all-input-topics")
    if flags["all_internal_topics"]:
        if not (flags["delete"] or flags["execute"]):
            raise click.UsageError(
                "--delete-all-internal-topics needs --delete, or --reset-offsets and --execute"
            )
    elif flags["internal_topics"] and not flags["execute"]:
        raise click.UsageError("--delete-internal-topic needs --reset-offsets and --execute")


# --- list, describe, delete offsets


async def _list(client: KafkaClient, out: Output, flags: _StreamsFlags) -> None:
    states = chosen_states(flags["state"], _STATES)
    groups = await _listed(client)
    if flags["state"] is None:
        for group in groups:
            out.line(group.name)
        return
    for line in group_table([group for group in groups if not states or group.state in states]):
        out.line(line)


async def _listed(client: KafkaClient) -> list[ListedGroup]:
    return await groups_of(client, (STREAMS,))


async def _names(client: KafkaClient, flags: _StreamsFlags) -> list[str]:
    if flags["all_groups"]:
        return [group.name for group in await _listed(client)]
    return list(flags["groups"])


async def _describe(client: KafkaClient, out: Output, flags: _StreamsFlags) -> None:
    verbose = flags["verbose"]
    is_shown = True
    for name in await _names(client, flags):
        group = await describe_streams_group(client, name, has_topology=flags["topology"])
        if flags["topology"]:
            is_shown &= group.topology_status == AVAILABLE
            lines = _topology_lines(group)
        elif flags["members"]:
            lines = members_of(group, verbose=verbose)
        elif flags["state"] is not None:
            lines = state_of(group, await client.coordinator_of(name), verbose=verbose)
        else:
            lines = await offsets_of(client, group, verbose=verbose)
        for line in lines:
            out.line(line)
    if not is_shown:
        raise click.exceptions.Exit(_FAILED_STATUS)


def _topology_lines(group: DescribedStreamsGroup) -> list[str]:
    if group.topology_status == AVAILABLE:
        return [topology_text(group.topology)]
    name = f"streams group '{group.name}'"
    if group.topology_status == NOT_STORED:
        return ["", f"Error: No topology description is stored for {name}."]
    if group.topology_status == FAILED:
        return [
            "",
            f"Error: The broker failed to fetch the topology description for {name}. See the broker"
            " logs for details.",
        ]
    return [
        "",
        f"Error: No topology description is available for {name} (status: NOT_REQUESTED).",
    ]


async def _delete_offsets(client: KafkaClient, out: Output, flags: _StreamsFlags) -> None:
    (name,) = flags["groups"]
    if flags["all_topics"]:
        lines = await offsets_deleted(client, name, await input_offsets_of(client, name), {})
    else:
        lines = await topic_offsets_deleted(client, name, flags["topics"])
    for line in lines:
        out.line(line)
