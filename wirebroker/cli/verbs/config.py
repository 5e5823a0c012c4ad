"""`wirebroker config …`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from wirebroker.cli.plumbing.completed_names import CONFIG_NAME, CONFIG_SETTING, RESOURCE_NAME
from wirebroker.cli.plumbing.running import ClusterFlags, cluster_flags, pairs, run_verb
from wirebroker.client.configs.configs import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    alter_configs,
    check_names,
    configs_of,
    label,
)
from wirebroker.client.topics.topic_lookup import find_topics

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient

_ALL_BROKERS: Final = "all"
_NAMED_KINDS: Final = {"topic": TOPIC, "group": GROUP, "client-metrics": CLIENT_METRICS}


@click.group()
def config() -> None:
    """Show and change configs.

    KIND NAME is `topic orders`, `broker 1`, `broker all` for all brokers, `group billing`, or
    `client-metrics NAME` for metrics that clients push. Groups need not exist.
    """


_kind = click.argument("kind", type=click.Choice(["broker", *_NAMED_KINDS]), metavar="KIND")
_name = click.argument("name", type=RESOURCE_NAME, metavar="NAME")


@config.command("list")
@_kind
@_name
@click.option("-a", "--all", "everything", is_flag=True, help="List configs at their defaults too.")
@cluster_flags
def list_(*, kind: str, name: str, everything: bool, **flags: Unpack[ClusterFlags]) -> int:
    """List the configs of a resource: those that are set, or all."""
    number, resource = _resource(kind, name)

    async def work(client: KafkaClient, out: Output) -> None:
        await _check_exists(client, number, resource)
        rows = [
            {
                "name": config.name,
                "value": config.value,
                "source": config.source,
                "is_read_only": config.is_read_only,
            }
            for config in await configs_of(client, number, resource)
            if everything or config.is_set or config.source == "file"
        ]
        out.show(rows, out.table(rows, ("name", "value", "source")))

    return run_verb(flags, work)


@config.command("set")
@_kind
@_name
@click.argument("settings", nargs=-1, required=True, type=CONFIG_SETTING, metavar="KEY=VALUE...")
@cluster_flags
def set_(*, kind: str, name: str, settings: tuple[str, ...], **flags: Unpack[ClusterFlags]) -> int:
    """Set configs of a resource, all or none of them."""
    number, resource = _resource(kind, name)
    changes: dict[str, str | None] = {**pairs(settings, "setting")}

    async def work(client: KafkaClient, out: Output) -> None:
        await _alter(client, number, resource, changes)
        out.show(
            {"set": changes}, [f"{label(number, resource)}: {setting}" for setting in settings]
        )

    return run_verb(flags, work)


@config.command()
@_kind
@_name
@click.argument("keys", nargs=-1, required=True, type=CONFIG_NAME, metavar="KEY...")
@cluster_flags
def unset(*, kind: str, name: str, keys: tuple[str, ...], **flags: Unpack[ClusterFlags]) -> int:
    """Reset configs of a resource to their defaults."""
    number, resource = _resource(kind, name)

    async def work(client: KafkaClient, out: Output) -> None:
        await _alter(client, number, resource, dict.fromkeys(keys))
        lines = [f"{label(number, resource)}: {key} is reset to its default" for key in keys]
        out.show({"unset": list(keys)}, lines)

    return run_verb(flags, work)


async def _alter(client: KafkaClient, kind: int, name: str, changes: dict[str, str | None]) -> None:
    await _check_exists(client, kind, name)
    check_names(kind, changes, await configs_of(client, kind, name))
    await alter_configs(client, kind, name, changes)


async def _check_exists(client: KafkaClient, kind: int, name: str) -> None:
    if kind == TOPIC:  # the response for a missing topic is misleading
        await find_topics(client, [name])


def _resource(kind: str, name: str) -> tuple[int, str]:
    if kind in _NAMED_KINDS:
        return _NAMED_KINDS[kind], name
    if name == _ALL_BROKERS:
        return BROKER, ""
    if not (name.isascii() and name.isdigit()):
        raise click.UsageError(f"{name} is not a broker: write its id, or {_ALL_BROKERS}")
    return BROKER, name
