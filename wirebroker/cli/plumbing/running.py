"""Execution of verbs that use a cluster.

The exit status is 0 on success, 1 if the cluster is unreachable or refuses, 2 if arguments are
invalid, and 130 or 143 after SIGINT or SIGTERM, which end a verb without a message.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from typing import TYPE_CHECKING, Final, NotRequired, TypeVar

import click
from click.core import ParameterSource

from wirebroker.base.clock import SystemClock
from wirebroker.base.signals import on_signal
from wirebroker.cli.plumbing.output import Output, tell
from wirebroker.cli.plumbing.profiles import current_profile, profile_file
from wirebroker.cli.plumbing.security_flags import (
    SecurityFlags,
    client_settings,
    security_flags,
    way_to_cluster,
)
from wirebroker.client.addresses import DEFAULT_PORT, addresses_of
from wirebroker.client.errors import (
    CONTROLLER_FLAG_NAMES,
    FLAG_NAMES,
    ClientError,
    FlagNames,
)
from wirebroker.client.kafka_client import KafkaClient

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

FAILED: Final = 1
_TERMINATED: Final = 128 + signal.SIGTERM
_VARIABLE: Final = "WIREBROKER_BOOTSTRAP"
_DEFAULT: Final = f"127.0.0.1:{DEFAULT_PORT}"

# In a context's meta: the error of a flag that the subcommand lacks.
_REFUSED_FLAG: Final = f"{__name__}.refused_flag"

_Command = TypeVar("_Command", bound="Callable[..., int]")
_Answer = TypeVar("_Answer")


class ClusterFlags(SecurityFlags):
    """Flags for a cluster."""

    bootstrap: str | None
    bootstrap_controller: NotRequired[str | None]
    timeout_s: float
    output: str


def cluster_flags(command: _Command) -> _Command:
    """Add the flags to a command for `run_verb`."""
    return _with_flags(security_flags(command, has_config=False))


def cluster_or_controller_flags(command: _Command) -> _Command:
    """Add the flags to a command that controllers serve as well."""
    return click.option(
        "--bootstrap-controller",
        metavar="HOST:PORT,...",
        help="Controllers to connect to, instead of brokers.",
    )(cluster_flags(command))


def cluster_flags_beside_config(command: _Command) -> _Command:
    """Add them to a verb with its own --config."""
    return _with_flags(security_flags(command, has_config=True))


def _with_flags(command: _Command) -> _Command:
    for option in (
        click.option(
            "--output",
            type=click.Choice(["table", "json"]),
            default="table",
            help="Output format. [default: table]",
        ),
        click.option(
            "--timeout",
            "timeout_s",
            type=click.FloatRange(0.1, 3600),
            default=30.0,
            metavar="SECONDS",
            help="Timeout of a request. [default: 30]",
        ),
        click.option(
            "-b",
            "--bootstrap",
            metavar="HOST:PORT,...",
            help=(
                f"Brokers to contact first. [default: {_VARIABLE}, else the profile's, else "
                f"{_DEFAULT}]"
            ),
        ),
    ):
        command = option(command)
    return command


def use_in_subcommand(context: click.Context, flags: ClusterFlags) -> None:
    """Use a verb's flags for its subcommand, unless they are repeated there.

    If the subcommand lacks one of them, `run_verb` refuses it.
    """
    name = context.invoked_subcommand
    assert isinstance(context.command, click.Group)
    command = None if name is None else context.command.get_command(context, name)
    if name is None or command is None:
        return
    given = {
        parameter.name: context.params[parameter.name]
        for parameter in context.command.params
        if parameter.name in flags
        and context.get_parameter_source(parameter.name) is not ParameterSource.DEFAULT
    }
    known = {parameter.name for parameter in command.params}
    for parameter in context.command.params:
        if parameter.name in given and parameter.name not in known:
            # Raised here, the error would replace the help of the subcommand.
            context.meta[_REFUSED_FLAG] = f"{parameter.opts[-1]} cannot be used with {name}"
    context.default_map = {name: given}


def run_verb(
    flags: ClusterFlags,
    work: Callable[[KafkaClient, Output], Awaitable[None]],
    *,
    flag_names: FlagNames = FLAG_NAMES,
) -> int:
    """Connect, do the work, and return the exit status.

    With the flag for controllers the client uses those.

    Raises:
        click.UsageError: An address, a setting or a flag before the subcommand is invalid.
    """
    refusal = click.get_current_context().meta.get(_REFUSED_FLAG)
    if refusal is not None:
        raise click.UsageError(refusal)
    has_controllers = flags.get("bootstrap_controller") is not None
    client = _client(flags, CONTROLLER_FLAG_NAMES if has_controllers else flag_names)
    output = Output(is_json=flags["output"] == "json")

    async def connected() -> None:
        async with client:
            if has_controllers:
                await client.use_controllers()
            await work(client, output)

    with output:
        try:
            return asyncio.run(_until_terminated(connected()))
        except ClientError as error:
            tell(f"wirebroker: {error}")
            return FAILED
    return 0  # the reader closed the output


def query_quietly(
    flags: ClusterFlags, question: Callable[[KafkaClient], Awaitable[_Answer]]
) -> _Answer:
    """Return a cluster's response to a question, without output.

    Raises:
        ClientError: The cluster does not respond, or refuses.
        click.UsageError: As for `run_verb`.
    """
    client = _client(flags, FLAG_NAMES)

    async def connected() -> _Answer:
        async with client:
            return await question(client)

    return asyncio.run(connected())


def _client(flags: ClusterFlags, flag_names: FlagNames) -> KafkaClient:
    controllers = flags.get("bootstrap_controller")
    if controllers is not None and flags["bootstrap"]:
        raise click.UsageError("give one of --bootstrap and --bootstrap-controller")
    bootstrap = bootstrap_of(flags)
    settings = client_settings(flags)
    try:
        addresses = addresses_of(controllers or bootstrap)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    connection = way_to_cluster(settings)
    return KafkaClient(
        addresses,
        timeout_s=flags["timeout_s"],
        dialer=connection.dialer,
        handshake=connection.handshake,
        flags=flag_names,
        clock=SystemClock(),
        random=random.Random(),  # noqa: S311 - for pauses
    )


def bootstrap_of(flags: ClusterFlags) -> str:
    """Return the brokers to contact first: from the flag, the file, the variable or the default.

    The flags get these, and the file of the profile in use unless another one is given.

    Raises:
        click.UsageError: The file cannot be read.
    """
    from_profile = _profile(flags)
    if from_profile is not None:
        flags["client_config"] = from_profile
    of_file = client_settings(flags).get("bootstrap.servers")
    of_variable = os.environ.get(_VARIABLE)
    found = of_variable or of_file if from_profile else of_file or of_variable
    bootstrap = flags["bootstrap"] or found or _DEFAULT
    flags["bootstrap"] = bootstrap
    return bootstrap


def _profile(flags: ClusterFlags) -> Path | None:
    """Return the profile in use, unless another file is given."""
    if flags["client_config"] or os.environ.get("WIREBROKER_CLIENT_CONFIG"):
        return None
    name = current_profile()
    return None if name is None else profile_file(name)


async def _until_terminated(work: Awaitable[None]) -> int:
    """Do the work; SIGTERM cancels it."""
    task = asyncio.ensure_future(work)
    is_terminated = False

    def terminate() -> None:
        nonlocal is_terminated
        is_terminated = True
        task.cancel()

    on_signal("SIGTERM", terminate)
    try:
        await task
    except asyncio.CancelledError:
        if not is_terminated:
            raise
        return _TERMINATED
    return 0


def pairs(texts: tuple[str, ...], flag: str) -> dict[str, str]:
    """Parse `key=value` flags, or raise click.UsageError."""
    parsed: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise click.UsageError(f"{flag} {text} cannot be used: write KEY=VALUE")
        parsed[key] = value
    return parsed
