"""`wirebroker kafka-client-metrics`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict

import click

from wirebroker.cli.kafka.plumbing.script import (
    ScriptCommand,
    ScriptFlags,
    run_script,
    script_flags,
)
from wirebroker.client.configs.configs import (
    CLIENT_METRICS,
    alter_configs,
    configs_of,
    configured_client_metrics,
)
from wirebroker.codecs.primitives import random_uuid, uuid_text
from wirebroker.config.client_metrics import INTERVAL, MATCH, METRICS

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient

_FAILED: Final = "Error while executing client metrics command : "


class _Actions(TypedDict):
    alter: bool
    delete: bool
    describe: bool
    list_: bool


class _Values(TypedDict):
    generate_name: bool
    interval: str | None
    match: tuple[str, ...]
    metrics: tuple[str, ...]


class _Flags(ScriptFlags, _Actions, _Values):
    name: str | None


@click.command(cls=ScriptCommand)
@click.option("--alter", is_flag=True, help="Create or change a subscription.")
@click.option("--delete", is_flag=True, help="Delete a subscription.")
@click.option("--describe", is_flag=True, help="Show the configs of subscriptions.")
@click.option("--list", "list_", is_flag=True, help="List the subscriptions.")
@click.option("--name", metavar="NAME", help="Name of the subscription.")
@click.option("--generate-name", is_flag=True, help="Use a random name.")
@click.option("--interval", metavar="MS", help="Interval at which clients push; empty resets it.")
@click.option(
    "--match",
    multiple=True,
    metavar="NAME=PATTERN,...",
    help="Clients that push, by client_id, client_instance_id, client_software_name, "
    "client_software_version, client_source_address, client_source_port.",
)
@click.option(
    "--metrics", multiple=True, metavar="PREFIX,...", help="Prefixes of the names of metrics."
)
@script_flags
def kafka_client_metrics(**flags: Unpack[_Flags]) -> int:
    """Show and change which metrics clients push, as kafka-client-metrics.sh."""
    _check(flags)

    async def work(client: KafkaClient, out: Output) -> None:
        if flags["list_"]:
            out.line("\n".join(await configured_client_metrics(client)))
        elif flags["describe"]:
            await _describe(client, out, flags["name"])
        elif flags["alter"]:
            name = flags["name"] or uuid_text(random_uuid())
            await alter_configs(client, CLIENT_METRICS, name, _changes(flags))
            out.line(f"Altered client metrics config for {name}.")
        else:
            name = flags["name"] or ""
            entries = await configs_of(client, CLIENT_METRICS, name)
            deletions = dict.fromkeys(entry.name for entry in entries)
            await alter_configs(client, CLIENT_METRICS, name, deletions)
            out.line(f"Deleted client metrics config for {name}.")

    return run_script(flags, work, failed=lambda message: f"{_FAILED}{message}")


def _check(flags: _Flags) -> None:
    """Raise click.UsageError for a combination that Kafka's tool refuses."""
    actions = [flags["alter"], flags["delete"], flags["describe"], flags["list_"]]
    if actions.count(True) != 1:
        raise click.UsageError("give one of --alter, --delete, --describe and --list")
    values = [flags["generate_name"], flags["interval"] is not None]
    values += [bool(flags["match"]), bool(flags["metrics"])]
    if not flags["alter"] and any(values):
        raise click.UsageError(
            "--generate-name, --interval, --match and --metrics are only for --alter"
        )
    if flags["list_"] and flags["name"] is not None:
        raise click.UsageError("--list has no --name")
    if flags["alter"] and (flags["name"] is not None) is flags["generate_name"]:
        raise click.UsageError("--alter needs one of --name and --generate-name")
    if flags["delete"] and flags["name"] is None:
        raise click.UsageError("--delete needs --name")
    interval = flags["interval"]
    if interval and not interval.removeprefix("-").removeprefix("+").isdecimal():
        raise click.UsageError("--interval must be an integer, or empty to reset it")


def _changes(flags: _Flags) -> dict[str, str | None]:
    given = {
        INTERVAL: flags["interval"],
        METRICS: ",".join(flags["metrics"]) if flags["metrics"] else None,
        MATCH: ",".join(flags["match"]) if flags["match"] else None,
    }
    return {name: text or None for name, text in given.items() if text is not None}


async def _describe(client: KafkaClient, out: Output, name: str | None) -> None:
    names = await configured_client_metrics(client)
    if name is not None and name not in names:
        out.line(
            f"The client metric resource {name} doesn't exist and doesn't have dynamic config."
        )
        return
    for described in names if name is None else [name]:
        out.line(f"Client metrics configs for {described} are:")
        for entry in await configs_of(client, CLIENT_METRICS, described):
            out.line(f"  {entry.name}={entry.value}")
