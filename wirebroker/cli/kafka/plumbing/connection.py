"""Connection of operators' tools, to brokers or controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, TypeVar

import click

from wirebroker.cli.kafka.plumbing.script import run_script
from wirebroker.cli.plumbing.file_path import FilePath

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient

_Command = TypeVar("_Command", bound="Callable[..., int]")


class ConnectionFlags(TypedDict):
    """The brokers or controllers to connect to."""

    bootstrap_server: str | None
    bootstrap_controller: str | None
    command_config: Path | None


def connection_flags(*, short: bool = False) -> Callable[[_Command], _Command]:
    """Return a decorator that adds the flags; `short` adds short ones."""
    names = {
        "server": ("--bootstrap-server", *(["-b"] if short else [])),
        "controller": ("--bootstrap-controller", *(["-C"] if short else [])),
        "config": ("--command-config", *(["--config", "-c"] if short else [])),
    }

    def add(command: _Command) -> _Command:
        for option in (
            click.option(
                *names["config"],
                "command_config",
                type=FilePath(exists=True, dir_okay=False),
                metavar="FILE",
                help="Properties of the client.",
            ),
            click.option(
                *names["controller"],
                "bootstrap_controller",
                metavar="HOST:PORT,...",
                help="Controllers to connect to, instead of brokers.",
            ),
            click.option(
                *names["server"],
                "bootstrap_server",
                metavar="HOST:PORT,...",
                help="Brokers to connect to.",
            ),
        ):
            command = option(command)
        return command

    return add


def check_connection(flags: ConnectionFlags) -> None:
    """Raise click.UsageError unless either brokers or controllers are named."""
    if (flags["bootstrap_server"] is None) == (flags["bootstrap_controller"] is None):
        raise click.UsageError("give one of --bootstrap-server and --bootstrap-controller")


def run_tool(
    flags: ConnectionFlags,
    work: Callable[[KafkaClient, Output], Awaitable[None]],
    *,
    failed: Callable[[str], str] = str,
    to_stderr: bool = True,
) -> int:
    """Do the work at brokers or the active controller, and return the exit status.

    `failed` formats an error, which goes to standard error with `to_stderr`.
    """
    check_connection(flags)
    controllers = flags["bootstrap_controller"]

    async def connected(client: KafkaClient, out: Output) -> None:
        if controllers is not None:
            await client.use_controllers()
        await work(client, out)

    address = flags["bootstrap_server"] or controllers or ""
    return run_script(
        {"bootstrap_server": address, "command_config": flags["command_config"]},
        connected,
        failed=failed,
        to_stderr=to_stderr,
    )
