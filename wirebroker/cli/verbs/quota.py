"""`wirebroker quota …`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, TypeVar

import click

from wirebroker.cli.plumbing.running import ClusterFlags, cluster_flags, pairs, run_verb
from wirebroker.client.configs.quotas import Entity, alter_quotas, entity_text, list_quotas

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient

_Command = TypeVar("_Command", bound="Callable[..., int]")


class _EntityFlags(TypedDict):
    user: str | None
    client_id: str | None
    ip: str | None
    default_user: bool
    default_client_id: bool
    default_ip: bool


class _QuotaFlags(_EntityFlags, ClusterFlags):
    pass


def _entity_flags(command: _Command) -> _Command:
    for option in (
        click.option(
            "--default-ip", is_flag=True, help=("Default for addresses without their own quota.")
        ),
        click.option("--ip", metavar="IP", help="IP address."),
        click.option(
            "--default-client-id",
            is_flag=True,
            help=("Default for client ids without their own quota."),
        ),
        click.option("--client-id", metavar="ID", help="Client id."),
        click.option(
            "--default-user", is_flag=True, help=("Default for users without their own quota.")
        ),
        click.option("--user", metavar="NAME", help="User name."),
    ):
        command = option(command)
    return command


def _entity(flags: _EntityFlags, *, is_needed: bool = True) -> Entity:
    entity: Entity = {}
    for kind, name, is_default in (
        ("user", flags["user"], flags["default_user"]),
        ("client-id", flags["client_id"], flags["default_client_id"]),
        ("ip", flags["ip"], flags["default_ip"]),
    ):
        if name is not None and is_default:
            raise click.UsageError(f"--{kind} and --default-{kind}: give one of them")
        if name is not None or is_default:
            entity[kind] = name
    if is_needed and not entity:
        raise click.UsageError("name the entity of the quota: --user, --client-id, both, or --ip")
    return entity


@click.group()
def quota() -> None:
    """Show and change client quotas.

    For users and client ids: producer_byte_rate, consumer_byte_rate (bytes per second),
    request_percentage, controller_mutation_rate (partitions per second); for addresses:
    connection_creation_rate. The most specific quota applies.
    """


@quota.command("list")
@_entity_flags
@cluster_flags
def list_(**flags: Unpack[_QuotaFlags]) -> int:
    """List quotas: all, or those of the entities in the flags."""
    requested_entity = _entity(flags, is_needed=False)

    async def work(client: KafkaClient, out: Output) -> None:
        quotas = await list_quotas(client, requested_entity)
        rows = [
            {"entity": entity_text(entity), "quota": key, "value": f"{value:.15g}"}
            for entity, values in quotas
            for key, value in sorted(values.items())
        ]
        out.show(
            [entity_quotas._asdict() for entity_quotas in quotas],
            out.table(rows, ("entity", "quota", "value")),
        )

    return run_verb(flags, work)


@quota.command("set")
@click.argument("settings", nargs=-1, required=True, metavar="KEY=VALUE...")
@_entity_flags
@cluster_flags
def set_(*, settings: tuple[str, ...], **flags: Unpack[_QuotaFlags]) -> int:
    """Set quotas of the entity in the flags, all or none of them."""
    entity = _entity(flags)
    changes: dict[str, float | None] = {}
    for key, text in pairs(settings, "quota").items():
        try:
            changes[key] = float(text)
        except ValueError:
            raise click.UsageError(
                f"quota {key}={text} cannot be used: the value must be a number"
            ) from None

    async def work(client: KafkaClient, out: Output) -> None:
        await alter_quotas(client, entity, changes)
        out.show({"set": changes}, [f"{entity_text(entity)}: {setting}" for setting in settings])

    return run_verb(flags, work)


@quota.command()
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@_entity_flags
@cluster_flags
def unset(*, keys: tuple[str, ...], **flags: Unpack[_QuotaFlags]) -> int:
    """Remove quotas of the entity in the flags."""
    entity = _entity(flags)

    async def work(client: KafkaClient, out: Output) -> None:
        await alter_quotas(client, entity, dict.fromkeys(keys))
        lines = [f"{entity_text(entity)}: {key} is removed" for key in keys]
        out.show({"unset": list(keys)}, lines)

    return run_verb(flags, work)
