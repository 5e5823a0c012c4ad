"""`wirebroker kafka-configs`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from wirebroker.client.configs import alter_configs, configs_of
from wirebroker.client.errors import ClientError
from wirebroker.scripts.config_entities import (
    BROKERS,
    DEFAULT,
    KINDS,
    Entity,
    described_entities,
    entities_of,
)
from wirebroker.scripts.properties import properties_in
from wirebroker.scripts.script import ScriptCommand, ScriptFlags, run_script, script_flags

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.client.configs import ConfigEntry
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.commands.output import Output


class _ConfigFlags(ScriptFlags):
    entity_types: tuple[str, ...]
    entity_names: tuple[str, ...]
    entity_default: bool
    topic: str | None
    broker: str | None
    broker_defaults: bool
    group: str | None
    client_metrics: str | None
    everything: bool
    added: str | None
    added_file: Path | None
    deleted: str | None


@click.command(cls=ScriptCommand)
@click.option("--describe", is_flag=True, help="Show configs.")
@click.option("--alter", is_flag=True, help="Change configs.")
@click.option("--all", "everything", is_flag=True, help="With --describe: also what was not set.")
@click.option(
    "--entity-type",
    "entity_types",
    multiple=True,
    metavar="TYPE",
    help="topics, brokers, groups or client-metrics.",
)
@click.option("--entity-name", "entity_names", multiple=True, metavar="NAME", help="Which of them.")
@click.option("--entity-default", is_flag=True, help="What all brokers have.")
@click.option("--topic", metavar="TOPIC", help="A topic.")
@click.option("--broker", metavar="ID", help="A broker.")
@click.option("--broker-defaults", is_flag=True, help="What all brokers have.")
@click.option("--group", metavar="GROUP", help="A group.")
@click.option("--client-metrics", metavar="NAME", help="A subscription of clients' metrics.")
@click.option("--add-config", "added", metavar="K=V,K=[V,V]", help="With --alter: what to set.")
@click.option(
    "--add-config-file",
    "added_file",
    type=click.Path(path_type=Path, exists=True),
    metavar="FILE",
    help="With --alter: a file of what to set.",
)
@click.option("--delete-config", "deleted", metavar="K,K", help="With --alter: what to unset.")
@click.option("--force", is_flag=True, help="Has no effect.")
@script_flags
def kafka_configs(
    *, describe: bool, alter: bool, force: bool, **flags: Unpack[_ConfigFlags]
) -> int:
    """Show and change configs, as kafka-configs.sh.

    Those of users, clients and ips are `wirebroker user`'s and `wirebroker quota`'s.
    """
    del force
    if describe == alter:
        raise click.UsageError("give one of --describe and --alter")
    entities = entities_of(
        flags["entity_types"],
        flags["entity_names"],
        defaults=flags["entity_default"],
        named={
            "topics": flags["topic"],
            "brokers": DEFAULT if flags["broker_defaults"] else flags["broker"],
            "groups": flags["group"],
            "client-metrics": flags["client_metrics"],
        },
        is_changed=alter,
    )
    changes = _changes(flags) if alter else {}

    async def work(client: KafkaClient, out: Output) -> None:
        if alter:
            await _alter(client, out, entities, changes)
            return
        for each in await described_entities(client, entities):
            await _describe(client, out, each, everything=flags["everything"])

    return run_script(
        flags,
        work,
        failed=lambda what: f"Error while executing config command: {what}",
        to_stderr=True,
    )


def _changes(flags: _ConfigFlags) -> dict[str, str | None]:
    if flags["added"] is not None and flags["added_file"] is not None:
        raise click.UsageError("give one of --add-config and --add-config-file")
    if flags["added"] is None and flags["added_file"] is None and flags["deleted"] is None:
        raise click.UsageError("--alter needs --add-config, --add-config-file or --delete-config")
    changes: dict[str, str | None] = {**properties_in(flags["added_file"])}
    changes |= _listed(flags["added"] or "")
    names = [each.strip() for each in (flags["deleted"] or "").split(",")]
    return changes | dict.fromkeys([each for each in names if each])


def _listed(text: str) -> dict[str, str]:
    """Read `a=1,b=[2,3]`."""
    found: dict[str, str] = {}
    while text:
        name, equals, rest = text.partition("=")
        if not equals:
            raise click.UsageError("all configs to be added must be in the format key=val")
        if rest.startswith("["):
            value, bracket, text = rest[1:].partition("]")
            if not bracket:
                raise click.UsageError(f"{name} has no closing bracket")
            text = text.removeprefix(",")
        else:
            value, _, text = rest.partition(",")
        found[name.strip()] = value.strip()
    return found


async def _alter(
    client: KafkaClient, out: Output, entities: list[Entity], changes: dict[str, str | None]
) -> None:
    (entity,) = entities
    await alter_configs(client, KINDS[entity.kind].resource, entity.resource_name, changes)
    if entity.is_default:
        out.line(f"Completed updating default config for {entity.kind} in the cluster.")
    else:
        out.line(f"Completed updating config for {entity.kind[:-1]} {entity.name}.")


async def _describe(client: KafkaClient, out: Output, entity: Entity, *, everything: bool) -> None:
    kind = KINDS[entity.kind]
    try:
        configs = await configs_of(client, kind.resource, entity.resource_name, synonyms=True)
    except ClientError as error:
        if entity.kind == BROKERS or not error.code:
            raise
        one = entity.kind[:-1]
        out.line(f"The {one} '{entity.name}' doesn't exist and doesn't have dynamic config.")
        return
    if entity.is_default:
        out.line(f"Default configs for {entity.kind} in the cluster are:")
    else:
        which = "All" if everything else "Dynamic"
        out.line(f"{which} configs for {entity.kind[:-1]} {entity.name} are:")
    source = kind.default_source if entity.is_default else kind.source
    for each in configs:
        if everything or each.source == source:
            out.line(_config_line(each))


def _config_line(config: ConfigEntry) -> str:
    synonyms = ", ".join(
        f"{each.source}:{each.name}={_value(each.value)}" for each in config.synonyms
    )
    sensitive = str(config.is_sensitive).lower()
    value = _value(config.value)
    return f"  {config.name}={value} sensitive={sensitive} synonyms={{{synonyms}}}"


def _value(value: str | None) -> str:
    return "null" if value is None else value
