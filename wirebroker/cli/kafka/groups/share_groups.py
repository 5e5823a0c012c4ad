"""`wirebroker kafka-share-groups`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import click

from wirebroker.cli.kafka.groups.group_flags import detail_flags, group_flag, state_flag, topic_flag
from wirebroker.cli.kafka.groups.group_selection import (
    chosen_states,
    group_failures,
    group_table,
    groups_of,
)
from wirebroker.cli.kafka.groups.offset_resets import Reset
from wirebroker.cli.kafka.groups.reset_flags import ResetFlags, reset_flags, scenario_of
from wirebroker.cli.kafka.groups.share_descriptions import (
    members_of,
    offsets_of,
    state_of,
)
from wirebroker.cli.kafka.groups.share_offset_changes import (
    delete_topic_offsets,
    reset_share_offsets,
)
from wirebroker.cli.kafka.plumbing.java_map import in_map_order
from wirebroker.cli.kafka.plumbing.java_words import message_of, thrown
from wirebroker.cli.kafka.plumbing.script import (
    TIMEOUT_S,
    ScriptCommand,
    ScriptFlags,
    run_script,
    script_flags,
)
from wirebroker.client.errors import ClientError
from wirebroker.client.groups.groups import delete_group
from wirebroker.client.groups.share_groups import SHARE, describe_share_group
from wirebroker.client.groups.share_offsets import share_starts_of, shared_progress_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Unpack

    from wirebroker.cli.kafka.groups.offset_resets import Scenario
    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient

_STATES: Final = ("Dead", "Stable", "Empty")
_ACTIONS: Final = ("list_", "describe", "delete", "reset_offsets", "deletes_offsets")


class _ShareFlags(ScriptFlags, ResetFlags):
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
    state: str | None
    verbose: bool
    timeout: int | None


@click.command(cls=ScriptCommand)
@click.option("--list", "list_", is_flag=True, help="List share groups.")
@click.option("--describe", is_flag=True, help="Show the offsets of share groups.")
@click.option("--delete", is_flag=True, help="Delete share groups.")
@click.option("--reset-offsets", is_flag=True, help="Reset the start offsets of a share group.")
@click.option(
    "--delete-offsets", "deletes_offsets", is_flag=True, help="Delete offsets of a share group."
)
@group_flag
@click.option("--all-groups", is_flag=True, help="Use all share groups.")
@topic_flag
@click.option("--all-topics", is_flag=True, help="Use all topics that the group has read.")
@detail_flags
@state_flag
@click.option("--verbose", is_flag=True, help="With --describe: show more columns.")
@reset_flags(has_shifts=False)
@click.option("--timeout", type=int, metavar="MS", help="Request timeout. [default: 30000]")
@script_flags
def kafka_share_groups(**flags: Unpack[_ShareFlags]) -> int:
    """List, describe and delete share groups, reset offsets, as kafka-share-groups.sh."""
    actions = [action for action in _ACTIONS if flags[action]]
    if len(actions) != 1:
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
            # Kafka's tool also ends with status 0.
            out.line(_failed(message_of(error)))

    timeout = flags["timeout"]
    return run_script(
        flags, work, failed=_failed, timeout_s=TIMEOUT_S if timeout is None else timeout / 1000
    )


def _failed(message: str) -> str:
    return f"\nError: Executing share group command failed due to {message}"


async def _act(
    client: KafkaClient, out: Output, flags: _ShareFlags, scenario: Scenario | None
) -> None:
    if scenario is not None:
        (name,) = flags["groups"]
        await reset_share_offsets(
            client,
            out,
            Reset(name, scenario, partial(share_starts_of, client, name), has_one_group=True),
            flags["topics"],
            execute=flags["execute"],
            export=flags["export"],
        )
    elif flags["list_"]:
        await _list(client, out, flags)
    elif flags["describe"]:
        await _describe(client, out, flags)
    elif flags["delete"]:
        await _delete(client, out, flags)
    else:
        (name,) = flags["groups"]
        await delete_topic_offsets(client, out, name, flags["topics"])


def _check(flags: _ShareFlags) -> None:
    shown = [flags["members"], flags["offsets"], flags["state"] is not None]
    if flags["groups"] and flags["all_groups"]:
        raise click.UsageError("give one of --group and --all-groups")
    if any(shown[:2]) and not flags["describe"]:
        raise click.UsageError("--members and --offsets need --describe")
    if flags["verbose"] and not flags["describe"]:
        raise click.UsageError("--verbose needs --describe")
    if flags["state"] is not None and not (flags["describe"] or flags["list_"]):
        raise click.UsageError("--state needs --describe or --list")
    if shown.count(True) > 1:
        raise click.UsageError("give one of --members, --offsets and --state")
    if flags["describe"] and flags["state"]:
        raise click.UsageError("--describe takes --state without a value")
    _check_scope(flags)
    _check_reset(flags)


def _check_scope(flags: _ShareFlags) -> None:
    has_group = bool(flags["groups"]) or flags["all_groups"]
    if (flags["describe"] or flags["delete"]) and not has_group:
        raise click.UsageError("give --group or --all-groups")
    if flags["list_"] and flags["groups"]:
        raise click.UsageError("--list takes no --group")
    if flags["topics"] and not (flags["reset_offsets"] or flags["deletes_offsets"]):
        raise click.UsageError("--topic needs --reset-offsets or --delete-offsets")
    if flags["delete"] and flags["all_topics"]:
        raise click.UsageError("--delete takes no --all-topics")
    if flags["deletes_offsets"] and not flags["topics"]:
        raise click.UsageError("--delete-offsets needs --topic")


def _check_reset(flags: _ShareFlags) -> None:
    if not (flags["reset_offsets"] or flags["deletes_offsets"]):
        return
    if not flags["groups"]:
        raise click.UsageError("give --group")
    if len(flags["groups"]) > 1:
        raise click.UsageError(
            "Found multiple arguments for option group, but you asked for only one"
        )
    if not flags["reset_offsets"]:
        return
    if flags["execute"] == flags["dry_run"]:
        raise click.UsageError("give one of --execute and --dry-run")
    scopes = [bool(flags["topics"]), flags["all_topics"], flags["from_file"] is not None]
    if scopes.count(True) != 1:
        raise click.UsageError("give one of --topic, --all-topics and --from-file")


# --- list, describe, delete


async def _list(client: KafkaClient, out: Output, flags: _ShareFlags) -> None:
    states = chosen_states(flags["state"], _STATES)
    groups = await groups_of(client, (SHARE,))
    if flags["state"] is None:
        for group in groups:
            out.line(group.name)
        return
    for line in group_table([group for group in groups if not states or group.state in states]):
        out.line(line)


async def _names(client: KafkaClient, flags: _ShareFlags) -> list[str]:
    if flags["all_groups"]:
        return [group.name for group in await groups_of(client, (SHARE,))]
    return list(dict.fromkeys(flags["groups"]))


async def _describe(client: KafkaClient, out: Output, flags: _ShareFlags) -> None:
    names = in_map_order(await _names(client, flags), str)
    try:
        groups = [await describe_share_group(client, name) for name in names]
    except ClientError as error:
        if not error.code:
            raise
        out.line(_failed(thrown(error)))
        return
    verbose = flags["verbose"]
    lines: list[str] = []
    for group in sorted(groups):
        if flags["members"]:
            lines += members_of(group, verbose=verbose)
        elif flags["state"] is not None:
            coordinator = await client.coordinator_of(group.name)
            lines += state_of(group, coordinator, verbose=verbose)
        else:
            progress = await shared_progress_of(client, group.name)
            lines += offsets_of(group.name, progress, verbose=verbose)
    for line in lines:
        out.line(line)


async def _delete(client: KafkaClient, out: Output, flags: _ShareFlags) -> None:
    listed = {group.name: group.state for group in await groups_of(client, (SHARE,))}
    names = list(listed) if flags["all_groups"] else list(dict.fromkeys(flags["groups"]))
    refusals = {name: _why_not_deletable(name, listed) for name in in_map_order(names, str)}
    failures = {name: reason for name, reason in refusals.items() if reason is not None}
    copied = len(failures)
    deleted: list[str] = []
    for name in in_map_order([name for name in names if name not in failures], str):
        try:
            await delete_group(client, name)
            deleted.append(name)
        except ClientError as error:
            if not error.code:
                raise
            failures[name] = thrown(error)
    for line in group_failures("share groups", deleted, failures, copied=copied):
        out.line(line)


def _why_not_deletable(name: str, listed: Mapping[str, str | None]) -> str | None:
    errors = "org.apache.kafka.common.errors"
    if name not in listed:
        return f"{errors}.GroupIdNotFoundException: Group '{name}' is not a share group."
    if listed[name] == "Dead":
        return f"java.lang.IllegalStateException: Share group '{name}' group state is DEAD."
    if listed[name] != "Empty":
        return f"{errors}.GroupNotEmptyException: Share group '{name}' is not EMPTY."
    return None
