"""`wirebroker kafka-configs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from wirebroker.cli.kafka.client_configs import (
    alter_client_configs,
    check_changes,
    describe_client_configs,
)
from wirebroker.cli.kafka.config_entities import (
    BROKER_LOGGERS,
    BROKERS,
    CLIENT_KINDS,
    DEFAULT,
    GROUPS,
    KINDS,
    NamedEntity,
    described_entities,
    entities_of,
    is_unset,
)
from wirebroker.cli.kafka.plumbing.connection import ConnectionFlags, connection_flags, run_tool
from wirebroker.cli.kafka.plumbing.properties import properties_in
from wirebroker.cli.kafka.plumbing.script import ScriptCommand, version_flag
from wirebroker.cli.plumbing.completed_names import GROUP_NAME, TOPIC_NAME
from wirebroker.cli.plumbing.file_path import FilePath
from wirebroker.client.configs.configs import BROKER_LOGGER, alter_configs, configs_of
from wirebroker.client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path
    from typing import TypeAlias, Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.configs.configs import ConfigEntry
    from wirebroker.client.kafka_client import KafkaClient

    Work: TypeAlias = Callable[[KafkaClient, Output], Awaitable[None]]


class _ConfigFlags(ConnectionFlags):
    entity_types: tuple[str, ...]
    entity_names: tuple[str, ...]
    topic: str | None
    broker: str | None
    broker_defaults: bool
    broker_logger: str | None
    user: str | None
    user_defaults: bool
    client: str | None
    client_defaults: bool
    ip: str | None
    ip_defaults: bool
    group: str | None
    client_metrics: str | None
    everything: bool
    added: str | None
    added_file: Path | None
    deleted: tuple[str, ...]


class _ConfigsCommand(ScriptCommand):
    def whole(self, argument: str) -> str:
        """Treat --entity-default as a name, which keeps its position."""
        full_name = super().whole(argument)
        return f"--entity-name={DEFAULT}" if full_name == "--entity-default" else full_name


@click.command(cls=_ConfigsCommand)
@click.option("--describe", is_flag=True, help="Show configs.")
@click.option("--alter", is_flag=True, help="Change configs.")
@click.option("--all", "everything", is_flag=True, help="With --describe: include defaults.")
@click.option(
    "--entity-type",
    "entity_types",
    multiple=True,
    metavar="TYPE",
    help="topics, brokers, broker-loggers, users, clients, ips, groups or client-metrics.",
)
@click.option(
    "--entity-name", "entity_names", multiple=True, metavar="NAME", help="Name of the entity."
)
@click.option("--entity-default", is_flag=True, help="Use the default entity of the type.")
@click.option("--topic", type=TOPIC_NAME, metavar="TOPIC", help="A topic.")
@click.option("--broker", metavar="ID", help="A broker.")
@click.option("--broker-defaults", is_flag=True, help="Use the default of all brokers.")
@click.option("--broker-logger", metavar="ID", help="Log levels of a broker.")
@click.option("--user", metavar="NAME", help="A user: quotas and SCRAM credentials.")
@click.option("--user-defaults", is_flag=True, help="Use the default of all users.")
@click.option("--client", metavar="ID", help="A client id: quotas.")
@click.option("--client-defaults", is_flag=True, help="Use the default of all client ids.")
@click.option("--ip", metavar="IP", help="An address: quotas.")
@click.option("--ip-defaults", is_flag=True, help="Use the default of all addresses.")
@click.option("--group", type=GROUP_NAME, metavar="GROUP", help="A group.")
@click.option("--client-metrics", metavar="NAME", help="A client metrics subscription.")
@click.option("--add-config", "added", metavar="K=V,K=[V,V]", help="With --alter: configs to set.")
@click.option(
    "--add-config-file",
    "added_file",
    type=FilePath(exists=True),
    metavar="FILE",
    help="With --alter: file with configs to set.",
)
@click.option(
    "--delete-config",
    "deleted",
    multiple=True,
    metavar="K,K",
    help="With --alter: configs to delete (repeatable).",
)
@click.option("--force", is_flag=True, help="Has no effect.")
@connection_flags()
@version_flag
def kafka_configs(
    *,
    describe: bool,
    alter: bool,
    entity_default: bool,
    force: bool,
    **flags: Unpack[_ConfigFlags],
) -> int:
    """Show and change configs, quotas and logins by SCRAM, as kafka-configs.sh."""
    del force, entity_default
    if describe == alter:
        raise click.UsageError("give one of --describe and --alter")
    entities = entities_of(
        flags["entity_types"], flags["entity_names"], named=_named(flags), is_changed=alter
    )
    changes = _changes(flags) if alter else {}
    if entities[0].kind in CLIENT_KINDS:
        work = _of_clients(entities, changes if alter else None)
    else:
        work = _of_resource(entities, changes if alter else None, everything=flags["everything"])
    return run_tool(
        flags, work, failed=lambda message: f"Error while executing config command: {message}"
    )


def _named(flags: _ConfigFlags) -> list[tuple[str, str | None]]:
    """Return entities of the types' own flags: names, then defaults, as in Kafka."""
    return [
        ("topics", flags["topic"]),
        ("clients", flags["client"]),
        ("users", flags["user"]),
        ("brokers", flags["broker"]),
        (BROKER_LOGGERS, flags["broker_logger"]),
        ("ips", flags["ip"]),
        ("client-metrics", flags["client_metrics"]),
        (GROUPS, flags["group"]),
        ("clients", DEFAULT if flags["client_defaults"] else None),
        ("users", DEFAULT if flags["user_defaults"] else None),
        ("brokers", DEFAULT if flags["broker_defaults"] else None),
        ("ips", DEFAULT if flags["ip_defaults"] else None),
    ]


def _of_clients(entities: list[NamedEntity], changes: dict[str, str | None] | None) -> Work:
    checked = None if changes is None else check_changes(entities, changes)

    async def work(client: KafkaClient, out: Output) -> None:
        if checked is None:
            await describe_client_configs(client, out, entities)
        else:
            await alter_client_configs(client, out, entities, checked)

    return work


def _of_resource(
    entities: list[NamedEntity], changes: dict[str, str | None] | None, *, everything: bool
) -> Work:

    async def work(client: KafkaClient, out: Output) -> None:
        if changes is not None:
            await _alter(client, out, entities, changes)
            return
        for entity in await described_entities(client, entities):
            await _describe(client, out, entity, everything=everything)

    return work


def _changes(flags: _ConfigFlags) -> dict[str, str | None]:
    if flags["added"] is not None and flags["added_file"] is not None:
        raise click.UsageError("give one of --add-config and --add-config-file")
    if flags["added"] is None and flags["added_file"] is None and not flags["deleted"]:
        raise click.UsageError("--alter needs --add-config, --add-config-file or --delete-config")
    changes: dict[str, str | None] = {**properties_in(flags["added_file"])}
    changes |= _listed(flags["added"] or "")
    names = [name.strip() for name in ",".join(flags["deleted"]).split(",")]
    return changes | dict.fromkeys([name for name in names if name])


def _listed(text: str) -> dict[str, str]:
    configs: dict[str, str] = {}
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
        configs[name.strip()] = value.strip()
    return configs


async def _alter(
    client: KafkaClient, out: Output, entities: list[NamedEntity], changes: dict[str, str | None]
) -> None:
    (entity,) = entities
    if entity.kind == BROKER_LOGGERS:
        logger_names = {
            logger.name for logger in await configs_of(client, BROKER_LOGGER, entity.resource_name)
        }
        if changes.keys() - logger_names:
            raise ClientError(
                f"Invalid broker logger(s): {','.join(sorted(changes.keys() - logger_names))}"
            )
    await alter_configs(client, KINDS[entity.kind].resource, entity.resource_name, changes)
    if entity.is_default:
        out.line(f"Completed updating default config for {entity.kind} in the cluster.")
    else:
        out.line(f"Completed updating config for {entity.kind[:-1]} {entity.name}.")


async def _describe(
    client: KafkaClient, out: Output, entity: NamedEntity, *, everything: bool
) -> None:
    kind = KINDS[entity.kind]
    configs = await _configs_if_present(client, entity, everything=everything)
    if configs is None:
        singular = entity.kind[:-1]
        out.line(f"The {singular} '{entity.name}' doesn't exist and doesn't have dynamic config.")
        return
    if entity.is_default:
        out.line(f"Default configs for {entity.kind} in the cluster are:")
    else:
        scope = "All" if everything else "Dynamic"
        out.line(f"{scope} configs for {entity.kind[:-1]} {entity.name} are:")
    source = kind.default_source if entity.is_default else kind.source
    for config in configs:
        if everything or config.source == source:
            out.line(_config_line(config))


async def _configs_if_present(
    client: KafkaClient, entity: NamedEntity, *, everything: bool
) -> list[ConfigEntry] | None:
    """Return the configs of an entity, or None if it does not exist."""
    if not everything and await is_unset(client, entity):
        return None
    resource = KINDS[entity.kind].resource
    try:
        return await configs_of(client, resource, entity.resource_name, synonyms=True)
    except ClientError as error:
        is_missing = bool(error.code) or entity.kind == BROKER_LOGGERS
        if entity.kind == BROKERS or not is_missing:
            raise
        return None


def _config_line(config: ConfigEntry) -> str:
    synonyms = ", ".join(
        f"{synonym.source}:{synonym.name}={_value(synonym.value)}" for synonym in config.synonyms
    )
    sensitive = str(config.is_sensitive).lower()
    value = _value(config.value)
    return f"  {config.name}={value} sensitive={sensitive} synonyms={{{synonyms}}}"


def _value(value: str | None) -> str:
    return "null" if value is None else value
