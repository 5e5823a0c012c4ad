"""Entry point of the command line, and its error messages."""

from __future__ import annotations

import click

from wirebroker.cli.verb_group import VerbGroup

_USAGE_STATUS = 2
_INTERRUPTED_STATUS = 130  # 128 + SIGINT, as in shells


def run(arguments: list[str]) -> int:
    """Run the program and return its exit status."""
    try:
        status: object = cli.main(arguments, prog_name="wirebroker", standalone_mode=False)
    except click.UsageError as error:
        if error.message.startswith("Usage: "):  # a group without a verb: its help
            click.echo(error.message, err=True)
            return _USAGE_STATUS
        command = error.ctx.command_path if error.ctx else "wirebroker"
        reason = " ".join(error.format_message().split())  # click puts choices on separate lines
        message = f"{reason.rstrip('.')} (see {command} --help)"
    except click.ClickException as error:
        message = error.format_message()
    except click.Abort:
        return _INTERRUPTED_STATUS
    else:
        return status if isinstance(status, int) else 0
    click.echo(f"wirebroker: {message}", err=True)
    return _USAGE_STATUS


def _print_version(context: click.Context, _option: click.Parameter, is_requested: bool) -> None:
    if is_requested and not context.resilient_parsing:
        from wirebroker.base.version import version_text  # noqa: PLC0415 - rarely used

        click.echo(f"wirebroker {version_text()}")
        context.exit()


@click.group(cls=VerbGroup, invoke_without_command=True)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
@click.pass_context
def cli(context: click.Context) -> None:
    """Run a Kafka broker: Kafka's wire protocol, disk format and metadata, in Python."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@click.command()
@click.option("--markdown", is_flag=True, help="Print Markdown, for docs/configs.md.")
def configs(*, markdown: bool) -> None:
    """Print all configs with their defaults."""
    from wirebroker.config.docs import as_markdown, as_text  # noqa: PLC0415 - keeps --help fast

    click.echo(as_markdown() if markdown else as_text(), nl=False)


@click.command()
@click.option("--markdown", is_flag=True, help="Print Markdown, for docs/cli.md.")
def commands(*, markdown: bool) -> None:
    """Print all verbs with their flags."""
    from wirebroker.cli.docs import verbs_as_markdown, verbs_as_text  # noqa: PLC0415

    click.echo(verbs_as_markdown(cli) if markdown else verbs_as_text(cli), nl=False)
