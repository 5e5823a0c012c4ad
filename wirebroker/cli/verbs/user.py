"""`wirebroker user …`."""

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
# Longer than any typed password.
_LONGEST_PASSWORD: Final = 4096


@click.group()
def user() -> None:
    """Show, create and delete users of SCRAM.

    Passwords come from a prompt or standard input, because other users can see arguments.
    """


@user.command("list")
@click.argument("names", nargs=-1, metavar="[NAME...]")
@cluster_flags
def list_(*, names: tuple[str, ...], **flags: Unpack[ClusterFlags]) -> int:
    """List users by mechanism: all, or those named."""

    async def work(client: KafkaClient, out: Output) -> None:
        rows = [user._asdict() for user in await list_users(client, names)]
        out.show(rows, out.table(rows, ("name", "mechanism", "iterations")))

    return run_verb(flags, work)


@user.command("set")
@click.argument("name", metavar="NAME")
@click.option(
    "--mechanism",
    type=click.Choice(list(SCRAM_NUMBERS), case_sensitive=False),
    default=_DEFAULT,
    help=f"SASL mechanism of the login. [default: {_DEFAULT}]",
)
@click.option(
    "--iterations",
    type=click.IntRange(LEAST_ITERATIONS, MOST_ITERATIONS),
    default=LEAST_ITERATIONS,
    metavar="N",
    help=f"Iterations of the password's hash. [default: {LEAST_ITERATIONS}]",
)
@cluster_flags
def set_(*, name: str, mechanism: str, iterations: int, **flags: Unpack[ClusterFlags]) -> int:
    """Create a user, or change its password."""
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
    help="Delete only this login. [default: all]",
)
@cluster_flags
def delete(*, name: str, mechanism: str | None, **flags: Unpack[ClusterFlags]) -> int:
    """Delete a user; existing connections stay."""

    async def work(client: KafkaClient, out: Output) -> None:
        existing = [user.mechanism for user in await list_users(client, [name])]
        selected = [candidate for candidate in existing if mechanism in {None, candidate}]
        if not selected:
            raise ClientError(f"there is no user {name}" + (f" of {mechanism}" if existing else ""))
        await delete_user(client, name, [SCRAM_NUMBERS[candidate] for candidate in selected])
        out.show({"name": name, "mechanisms": selected}, [f"user {name} is deleted"])

    return run_verb(flags, work)


def _password(name: str) -> str:
    if sys.stdin.isatty():
        typed: str = click.prompt(f"password of {name}", hide_input=True, confirmation_prompt=True)
        return typed
    with open(sys.stdin.fileno(), "rb", closefd=False) as piped:
        line = piped.readline(_LONGEST_PASSWORD).rstrip(b"\r\n").decode("utf-8", "replace")
    if not line:
        raise click.UsageError("there is no password: write it as the first line of standard input")
    return line
