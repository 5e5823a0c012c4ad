"""`wirebroker user …`: who may log in by SCRAM."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click

from wirebroker.cli.plumbing.running import ClusterFlags, cluster_flags, run_verb
from wirebroker.client.errors import ClientError
from wirebroker.client.security.users import NewPassword, delete_user, list_users, set_user
from wirebroker.codecs.scram import LEAST_ITERATIONS, MOST_ITERATIONS, SCRAM_NUMBERS

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient

_DEFAULT: Final = "SCRAM-SHA-512"
# What nobody types by hand.
_LONGEST_PASSWORD: Final = 4096


@click.group()
def user() -> None:
    """Show, make and delete users of SCRAM.

    Passwords are asked for, or read from standard input: arguments are seen by others.
    """


@user.command("list")
@click.argument("names", nargs=-1, metavar="[NAME...]")
@cluster_flags
def list_(*, names: tuple[str, ...], **flags: Unpack[ClusterFlags]) -> int:
    """List users by mechanism: all of them, or those named."""

    async def work(client: KafkaClient, out: Output) -> None:
        rows = [each._asdict() for each in await list_users(client, names)]
        out.show(rows, out.table(rows, ("name", "mechanism", "iterations")))

    return run_verb(flags, work)


@user.command("set")
@click.argument("name", metavar="NAME")
@click.option(
    "--mechanism",
    type=click.Choice(list(SCRAM_NUMBERS), case_sensitive=False),
    default=_DEFAULT,
    help=f"By what the user logs in. [default: {_DEFAULT}]",
)
@click.option(
    "--iterations",
    type=click.IntRange(LEAST_ITERATIONS, MOST_ITERATIONS),
    default=LEAST_ITERATIONS,
    metavar="N",
    help=f"How often the password is hashed. [default: {LEAST_ITERATIONS}]",
)
@cluster_flags
def set_(*, name: str, mechanism: str, iterations: int, **flags: Unpack[ClusterFlags]) -> int:
    """Make a user, or give one another password."""
    password = _password(name)
    number = SCRAM_NUMBERS[mechanism]

    async def work(client: KafkaClient, out: Output) -> None:
        await set_user(client, name, number, NewPassword(password, iterations))
        out.show({"name": name, "mechanism": mechanism}, [f"user {name} logs in by {mechanism}"])

    return run_verb(flags, work)


@user.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--mechanism",
    type=click.Choice(list(SCRAM_NUMBERS), case_sensitive=False),
    help="This login alone. [default: all that there are]",
)
@cluster_flags
def delete(*, name: str, mechanism: str | None, **flags: Unpack[ClusterFlags]) -> int:
    """Delete a user; whoever is logged in stays."""

    async def work(client: KafkaClient, out: Output) -> None:
        held = [each.mechanism for each in await list_users(client, [name])]
        wanted = [each for each in held if mechanism in {None, each}]
        if not wanted:
            raise ClientError(f"there is no user {name}" + (f" of {mechanism}" if held else ""))
        await delete_user(client, name, [SCRAM_NUMBERS[each] for each in wanted])
        out.show({"name": name, "mechanisms": wanted}, [f"user {name} is deleted"])

    return run_verb(flags, work)


def _password(name: str) -> str:
    """Return a password from whoever sits there, or the first line of what is piped.

    Raises:
        click.UsageError: There is none.
    """
    if sys.stdin.isatty():
        typed: str = click.prompt(f"password of {name}", hide_input=True, confirmation_prompt=True)
        return typed
    with open(sys.stdin.fileno(), "rb", closefd=False) as piped:
        line = piped.readline(_LONGEST_PASSWORD).rstrip(b"\r\n").decode("utf-8", "replace")
    if not line:
        raise click.UsageError("the password is the first line of standard input: there is none")
    return line
