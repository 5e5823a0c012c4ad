"""`wirebroker delivery …`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

import click

from wirebroker.base.text import counted
from wirebroker.cli.plumbing.completed_names import GROUP_NAME, TOPIC_NAME
from wirebroker.cli.plumbing.file_path import FilePath
from wirebroker.cli.plumbing.flags import dry_run_hint, yes_flag
from wirebroker.cli.plumbing.output import tell
from wirebroker.cli.plumbing.running import (
    FAILED,
    ClusterFlags,
    bootstrap_of,
    cluster_flags,
    cluster_flags_beside_config,
    query_quietly,
    run_verb,
)
from wirebroker.cli.plumbing.security_flags import client_settings
from wirebroker.delivery.model.entry import EntryKind

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.config import Config

_Command = TypeVar("_Command", bound="Callable[..., int]")
_GROUP = "wirebroker-delivery"
_IF_PENDING = "if such a record is pending"
_NO_LIBRARY = "the delivery service needs confluent-kafka: pip install 'wirebroker[delivery]'"


class _RunByDefault(click.Group):
    """`wirebroker delivery --config FILE` is `wirebroker delivery run --config FILE`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `run` before flags."""
        if not args or (args[0].startswith("-") and args[0] != "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_RunByDefault)
def delivery() -> None:
    """Deliver scheduled and retried records; show and change pending ones.

    `wirebroker delivery --config FILE` is short for `wirebroker delivery run --config FILE`.
    """


@delivery.command()
@click.option(
    "--config",
    "file",
    type=FilePath(),
    metavar="FILE",
    help="Properties file with the settings wirebroker.delivery.*",
)
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set a config (repeatable)."
)
@click.option("--until-input-ends", is_flag=True, hidden=True)
@cluster_flags_beside_config
def run(
    *,
    file: Path | None,
    settings: tuple[str, ...],
    until_input_ends: bool,
    **flags: Unpack[ClusterFlags],
) -> int:
    """Run an instance of the delivery service until it is stopped (docs/delivery.md).

    Requires wirebroker[delivery]. Several instances share the work. Each needs its own
    wirebroker.delivery.directory.
    """
    from wirebroker.config import ConfigError  # noqa: PLC0415 - keeps --help fast

    try:
        from wirebroker.delivery.service.errors import ServiceError  # noqa: PLC0415 - an extra
        from wirebroker.delivery.service.process import run_service  # noqa: PLC0415 - likewise
    except ModuleNotFoundError as error:
        if error.name != "confluent_kafka":
            raise
        raise click.ClickException(_NO_LIBRARY) from None
    from wirebroker.broker.log_settings import configure_as  # noqa: PLC0415 - keeps --help fast
    from wirebroker.delivery.service.connection import librdkafka_settings  # noqa: PLC0415
    from wirebroker.delivery.service.settings import service_settings  # noqa: PLC0415

    try:
        config = _config(file, settings)
        configure_as(config, process="delivery")
        kafka = librdkafka_settings(bootstrap_of(flags), client_settings(flags))
        service = service_settings(config, kafka)
        return run_service(
            service,
            click.echo,
            lambda: query_quietly(flags, _has_authorizer),
            until_input_ends=until_input_ends,
        )
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    except ServiceError as error:
        tell(f"wirebroker: {error}")
        return FAILED


async def _has_authorizer(client: KafkaClient) -> bool:
    from wirebroker.client.errors import ClientError  # noqa: PLC0415 - as in `run`
    from wirebroker.client.security.acls import RuleFilter, list_acls  # noqa: PLC0415
    from wirebroker.codecs.errors import ErrorCode  # noqa: PLC0415

    try:
        await list_acls(client, RuleFilter())
    except ClientError as error:
        if error.code == ErrorCode.SECURITY_DISABLED:
            return False
        if error.code != ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise
    return True


def _config(file: Path | None, settings: tuple[str, ...]) -> Config:
    from wirebroker.cli.plumbing.running import pairs  # noqa: PLC0415 - as in `run`
    from wirebroker.config.sources.sources import load_config  # noqa: PLC0415

    return load_config(
        file=file, environment=os.environ, flags=pairs(settings, "--set"), is_one_node=False
    )


def _group_flag(command: _Command) -> _Command:
    return click.option(
        "--group",
        type=GROUP_NAME,
        default=_GROUP,
        metavar="GROUP",
        help=f"The service's group (wirebroker.delivery.group). [default: {_GROUP}]",
    )(command)


@delivery.command()
@_group_flag
@click.option(
    "-t", "--topic", type=TOPIC_NAME, metavar="TOPIC", help="Limit to records for this topic."
)
@click.option(
    "-n",
    "--count",
    type=click.IntRange(1, 100_000),
    default=20,
    metavar="N",
    help="Show the next N records. [default: 20]",
)
@cluster_flags
def pending(*, group: str, topic: str | None, count: int, **flags: Unpack[ClusterFlags]) -> int:
    """Show the pending records that are due next, and the total number."""

    async def work(client: KafkaClient, out: Output) -> None:
        from wirebroker.delivery.operations import pending_rows  # noqa: PLC0415 - as in `run`

        rows, total = await pending_rows(client, _topic(group), target=topic, most=count)
        shown = [row._asdict() for row in rows]
        columns = ("entry", "delivery_id", "due_ms", "target", "attempt", "key", "value_bytes")
        table = out.table(shown, columns) if shown else []
        out.show(
            {"pending": total, "records": shown},
            [*table, f"{counted(total, 'record')} pending"],
        )

    return run_verb(flags, work)


def _target_flags(command: _Command) -> _Command:
    for flag in (
        click.option("--entry", metavar="NAME", help="The entry's name, from `delivery pending`."),
        click.option("--id", "delivery_id", metavar="ID", help="The record's deliver-id."),
    ):
        command = flag(command)
    return command


@delivery.command()
@_target_flags
@_group_flag
@yes_flag
@cluster_flags
def cancel(**arguments: Any) -> int:
    """Cancel a pending record, by its id or its entry."""
    return _command(EntryKind.CANCEL, "would cancel the record", **arguments)


@delivery.command()
@_target_flags
@_group_flag
@yes_flag
@cluster_flags
def deliver_now(**arguments: Any) -> int:
    """Deliver a pending record at once, by its id or its entry."""
    return _command(EntryKind.HURRY, "would deliver the record at once", **arguments)


def _command(
    kind: EntryKind,
    effect: str,
    *,
    delivery_id: str | None,
    entry: str | None,
    group: str,
    yes: bool,
    **flags: Unpack[ClusterFlags],
) -> int:
    if (delivery_id is None) == (entry is None):
        raise click.UsageError("give one of --id and --entry")
    if not (delivery_id or entry):
        raise click.UsageError(f"{'--entry' if delivery_id is None else '--id'} is empty")

    async def work(client: KafkaClient, out: Output) -> None:
        from wirebroker.delivery.operations import (  # noqa: PLC0415 - as in `run`
            find_target,
            send_command,
        )

        data = {"id": delivery_id, "entry": entry, "done": yes}
        topic = _topic(group)
        target = await find_target(client, topic, delivery_id=delivery_id, entry=entry)
        if not yes:
            out.show(data, [])
            tell(dry_run_hint(effect if target.is_pending else f"{effect}, {_IF_PENDING}"))
            return
        await send_command(
            *(client, topic, kind),
            delivery_id=delivery_id,
            entry=entry,
            partition=target.partition,
        )
        condition = "" if target.is_pending else f"; it takes effect {_IF_PENDING}"
        out.show(data, [f"{delivery_id or entry}: sent to the service{condition}"])

    return run_verb(flags, work)


def _topic(group: str) -> str:
    from wirebroker.delivery.service.settings import pending_topic_of  # noqa: PLC0415 - as in `run`

    return pending_topic_of(group)
