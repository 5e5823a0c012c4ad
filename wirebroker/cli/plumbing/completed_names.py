"""Argument types with shell completion: topics, groups and configs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import click
from click.types import StringParamType

from wirebroker.client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    from click.shell_completion import CompletionItem

    from wirebroker.cli.plumbing.running import ClusterFlags
    from wirebroker.client.kafka_client import KafkaClient

    Names: TypeAlias = Callable[[KafkaClient], Awaitable[list[str]]]

_TIMEOUT_S: Final = 2.0


class CompletedName(StringParamType):
    """Text with completions."""

    def __init__(self, names: Callable[[click.Context], list[str]], *, end: str = "") -> None:
        """Take a function that returns the names, and the text after them."""
        self._names = names
        self._end = end

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return matching names."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415

        del param
        completions = [f"{name}{self._end}" for name in self._names(ctx)]
        return [
            CompletionItem(completion)
            for completion in completions
            if completion.startswith(incomplete)
        ]


def _queried_names(ctx: click.Context, names: Names) -> list[str]:
    from wirebroker.cli.plumbing.running import query_quietly  # noqa: PLC0415

    parameters: dict[str, Any] = {}
    for context in (ctx.parent, ctx):  # flags of scripts may come before the subcommand
        parameters |= {} if context is None else context.params
    flags = {
        "bootstrap": parameters.get("bootstrap") or parameters.get("bootstrap_server"),
        "client_config": parameters.get("client_config") or parameters.get("command_config"),
        "timeout_s": _TIMEOUT_S,
        "output": "table",
        "tls": bool(parameters.get("tls")),
        **{
            name: parameters.get(name)
            for name in ("tls_ca", "tls_cert", "sasl_user", "sasl_mechanism")
        },
    }
    try:
        return sorted(query_quietly(cast("ClusterFlags", flags), names))
    except (ClientError, click.UsageError):
        return []  # errors would disturb the user's input


async def _topics(client: KafkaClient) -> list[str]:
    return [topic.name for topic in (await client.metadata()).topics]


async def _groups(client: KafkaClient) -> list[str]:
    from wirebroker.client.groups.groups import list_groups  # noqa: PLC0415

    return [group.name for group in await list_groups(client)]


async def _client_metrics(client: KafkaClient) -> list[str]:
    from wirebroker.client.configs.configs import configured_client_metrics  # noqa: PLC0415

    return await configured_client_metrics(client)


async def _brokers(client: KafkaClient) -> list[str]:
    return [*map(str, await client.broker_ids()), "all"]


def _configs(ctx: click.Context) -> list[str]:
    from wirebroker.config.client_metrics import CLIENT_METRICS_ROWS  # noqa: PLC0415
    from wirebroker.config.groups import GROUP_ROWS  # noqa: PLC0415
    from wirebroker.config.rows.topic import TOPIC_ROWS  # noqa: PLC0415
    from wirebroker.config.table import ROWS  # noqa: PLC0415

    rows_by_kind = {
        "broker": ROWS,
        "group": GROUP_ROWS,
        "client-metrics": CLIENT_METRICS_ROWS,
    }
    return sorted(rows_by_kind.get(ctx.params.get("kind", ""), TOPIC_ROWS))


def _resources(ctx: click.Context) -> list[str]:
    names_by_kind = {"broker": _brokers, "group": _groups, "client-metrics": _client_metrics}
    return _queried_names(ctx, names_by_kind.get(ctx.params.get("kind", ""), _topics))


TOPIC_NAME: Final = CompletedName(lambda ctx: _queried_names(ctx, _topics))
GROUP_NAME: Final = CompletedName(lambda ctx: _queried_names(ctx, _groups))
RESOURCE_NAME: Final = CompletedName(_resources)
CONFIG_NAME: Final = CompletedName(_configs)
CONFIG_SETTING: Final = CompletedName(_configs, end="=")
