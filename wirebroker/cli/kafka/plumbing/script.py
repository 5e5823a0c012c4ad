"""Execution of scripts; as in Kafka, the exit status is 1 after any failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar

import click

from wirebroker.base.version import version_text
from wirebroker.cli.plumbing.file_path import FilePath
from wirebroker.cli.plumbing.running import FAILED, ClusterFlags, run_verb
from wirebroker.client.errors import ClientError, FlagNames

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient

_Command = TypeVar("_Command", bound="Callable[..., int]")
_Value = TypeVar("_Value")

# Kafka's default.api.timeout.ms is longer, which would look like a hang.
TIMEOUT_S: Final = 30.0
_FLAG_NAMES: Final = FlagNames(
    address="--bootstrap-server HOST:PORT",
    tls="security.protocol=SSL in a file of --command-config",
    trust="ssl.truststore.location in a file of --command-config",
    login="security.protocol=SASL_PLAINTEXT or SASL_SSL in a file of --command-config",
)


version_flag = click.version_option(version_text(), message="%(version)s")


class ScriptCommand(click.Command):
    """A command with abbreviated flags, whose errors have exit status 1.

    Attributes:
        takes_repeats: Whether the last value of a repeated flag counts, as in Kafka's tools with
            subcommands; others refuse repeated flags.
    """

    takes_repeats = False

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Parse the flags."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            raise refused(error, info_name) from None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the flags; a unique prefix is enough."""
        is_run = not ctx.resilient_parsing  # shell completion parses unfinished arguments
        if is_run and not args and any(param.required for param in self.params):
            raise click.UsageError("flags are missing", ctx)
        full_args = [self.whole(argument) for argument in args]
        if is_run and not self.takes_repeats:
            self._check_repeats(ctx, full_args)
        return super().parse_args(ctx, full_args)

    def _check_repeats(self, ctx: click.Context, args: list[str]) -> None:
        _, _, order = self.make_parser(ctx).parse_args(list(args))
        single = [param for param in order if isinstance(param, click.Option) and takes_one(param)]
        for option in single:
            if single.count(option) > 1:
                name = option.opts[0].lstrip("-")
                raise click.UsageError(
                    f"Found multiple arguments for option {name}, but you asked for only one"
                )

    def invoke(self, ctx: click.Context) -> Any:
        """Run the script."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise refused(error, ctx.info_name) from None

    def whole(self, argument: str) -> str:
        """Return the full name of an abbreviated flag, or the argument."""
        name, equals, value = argument.partition("=")
        flags = [flag for param in self.params for flag in param.opts]
        if not name.startswith("--") or name in flags:
            return argument
        longer = [flag for flag in flags if flag.startswith(name)]
        return f"{longer[0]}{equals}{value}" if len(longer) == 1 else argument


def takes_one(option: click.Option) -> bool:
    """Return whether an option takes one value."""
    return not (option.is_flag or option.multiple)


def first_value(
    _context: click.Context, _option: click.Parameter, values: tuple[_Value, ...]
) -> _Value | None:
    """Return the first value, which Kafka's tool uses."""
    return values[0] if values else None


def refused(error: click.UsageError, name: str | None) -> click.exceptions.Exit:
    """Print an error in the arguments; return the exit exception."""
    command = error.ctx.command_path if error.ctx else f"wirebroker {name}"
    click.echo(f"{error.format_message()} (see {command} --help)", err=True)
    return click.exceptions.Exit(FAILED)


class ScriptFlags(TypedDict):
    """Flags for a cluster."""

    bootstrap_server: str
    command_config: Path | None


def script_flags(command: _Command) -> _Command:
    """Add the flags to a command for `run_script`."""
    for option in (
        version_flag,
        click.option(
            "--command-config",
            type=FilePath(exists=True, dir_okay=False),
            metavar="FILE",
            help="Properties of the client.",
        ),
        click.option(
            "--bootstrap-server",
            required=True,
            metavar="HOST:PORT,...",
            help="Brokers to connect to.",
        ),
    ):
        command = option(command)
    return command


def run_script(
    flags: ScriptFlags,
    work: Callable[[KafkaClient, Output], Awaitable[None]],
    *,
    failed: Callable[[str], str],
    timeout_s: float = TIMEOUT_S,
    to_stderr: bool = False,
) -> int:
    """Do the work on the cluster, and return the exit status.

    `failed` formats an error, which goes to standard error with `to_stderr`.
    """
    status = 0

    async def told(client: KafkaClient, out: Output) -> None:
        nonlocal status
        try:
            await work(client, out)
        except ClientError as error:
            status = FAILED
            line = failed(error.told or str(error))
            if to_stderr:
                click.echo(line, err=True)
            else:
                out.line(line)

    cluster = ClusterFlags(
        bootstrap=flags["bootstrap_server"],
        timeout_s=timeout_s,
        output="table",
        client_config=flags["command_config"],
        sasl_mechanism=None,
        sasl_user=None,
        tls=False,
        tls_ca=None,
        tls_cert=None,
    )
    return run_verb(cluster, told, flag_names=_FLAG_NAMES) or status
