"""`wirebroker kafka-groups`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict

import click

from wirebroker.cli.kafka.plumbing.java_map import in_map_order
from wirebroker.cli.kafka.plumbing.script import (
    ScriptCommand,
    ScriptFlags,
    run_script,
    script_flags,
)
from wirebroker.client.groups.groups import ListedGroup, listed_groups

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient

_LEAST_WIDTH: Final = 20
_CONSUMER: Final = "consumer"
_CLASSIC: Final = "classic"


class _Filters(TypedDict):
    group_type: str | None
    protocol: str | None
    consumer: bool
    share: bool
    streams: bool


class _Flags(ScriptFlags, _Filters):
    pass


@click.command(cls=ScriptCommand)
@click.option("--list", "list_", is_flag=True, required=True, help="List the groups.")
@click.option(
    "--group-type",
    type=click.Choice([_CLASSIC, _CONSUMER, "share", "streams"], case_sensitive=False),
    help="Only groups of this type.",
)
@click.option("--protocol", metavar="PROTOCOL", help="Only groups of this protocol.")
@click.option("--consumer", is_flag=True, help="Only consumer groups, classic and simple ones too.")
@click.option("--share", is_flag=True, help="Only share groups.")
@click.option("--streams", is_flag=True, help="Only streams groups.")
@script_flags
def kafka_groups(*, list_: bool, **flags: Unpack[_Flags]) -> int:
    """List groups of all types, as kafka-groups.sh."""
    if not list_:
        raise click.UsageError("--list is missing")
    kinds = [flags["consumer"], flags["share"], flags["streams"]].count(True)
    has_filters = flags["group_type"] is not None or flags["protocol"] is not None
    if kinds > 1 or (kinds and has_filters):
        raise click.UsageError(
            "give one of --consumer, --share and --streams, or --group-type and --protocol"
        )

    async def work(client: KafkaClient, out: Output) -> None:
        groups = in_map_order(await listed_groups(client), lambda group: group.name)
        rows = [
            (group.name, (group.kind or "").capitalize(), group.protocol)
            for group in groups
            if _is_wanted(group, flags)
        ]
        width = max(_LEAST_WIDTH, *(len(cell) for row in rows for cell in row), 0)
        out.line(" ".join(title.ljust(width) for title in ("GROUP", "TYPE", "PROTOCOL")))
        for row in rows:
            out.line("".join(f"{cell.ljust(width)} " for cell in row))

    return run_script(flags, work, failed=str, to_stderr=True)


def _is_wanted(group: ListedGroup, flags: _Filters) -> bool:
    kind = (group.kind or "").lower()
    if flags["consumer"]:
        is_classic = kind == _CLASSIC and group.protocol in {_CONSUMER, ""}
        return is_classic or kind == _CONSUMER
    group_type = flags["group_type"]
    for name in ("share", "streams"):
        if flags[name]:
            group_type = name
    if group_type is not None and kind != group_type.lower():
        return False
    return flags["protocol"] is None or group.protocol == flags["protocol"]
