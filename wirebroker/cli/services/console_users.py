"""`wirebroker console-user …` and `wirebroker console-token …`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from wirebroker.cli.plumbing.file_path import FilePath

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from wirebroker.console.login.credential_file import Credential
    from wirebroker.console.login.grants import Grants

_LEAST_PASSWORD: Final = 8

_Command = TypeVar("_Command", bound="Callable[..., Any]")


def _file_flag(flag: str) -> Callable[[_Command], _Command]:
    return click.option(
        flag,
        "file",
        type=FilePath(),
        required=True,
        metavar="FILE",
        help=f"The file of `wirebroker console {flag}`.",
    )


_ROLES = click.option(
    "--role",
    "roles",
    multiple=True,
    metavar="ROLE[@CLUSTER]",
    help="reader, operator or admin; for all clusters, or for one (repeatable).",
)


@click.group("console-user")
def console_user() -> None:
    """Manage the users of `wirebroker console`.

    Passwords come from a prompt or standard input, because other users can see arguments. A running
    console reads a changed file again.
    """


@console_user.command("set")
@click.argument("name", metavar="NAME")
@_file_flag("--users")
@_ROLES
@click.option("--keep-password", is_flag=True, help="Change only the roles.")
def set_user(*, name: str, file: Path, roles: tuple[str, ...], keep_password: bool) -> int:
    """Create a user, or change its password and roles."""
    from wirebroker.console.login.credential_file import Credential  # noqa: PLC0415

    users = _read_users(file)
    existing = users.get(name)
    grants = _grants(roles, existing)
    if keep_password:
        if existing is None:
            raise click.UsageError(f"there is no user {name}: omit --keep-password")
        secret = existing.secret
    else:
        secret = _hash(_password(name))
    _write(file, users | {name: Credential(_checked(name), secret, grants)})
    click.echo(f"user {name}: {grants.text()}")
    return 0


@console_user.command("list")
@_file_flag("--users")
def list_users(*, file: Path) -> int:
    """List users and their roles."""
    return _list(_read_users(file))


@console_user.command("delete")
@click.argument("name", metavar="NAME")
@_file_flag("--users")
def delete_user(*, name: str, file: Path) -> int:
    """Delete a user; the user's sessions end within seconds."""
    return _delete(file, _read_users(file), name, "user")


@click.group("console-token")
def console_token() -> None:
    """Manage the tokens of programs that use the HTTP interface of `wirebroker console`.

    A running console reads a changed file again.
    """


@console_token.command()
@click.argument("name", metavar="NAME")
@_file_flag("--tokens")
@_ROLES
def create(*, name: str, file: Path, roles: tuple[str, ...]) -> int:
    """Create a token, or replace it, and print it; the file contains only its hash."""
    from wirebroker.console.login.access_tokens import (  # noqa: PLC0415 - keeps --help fast
        access_token_hash,
        new_access_token,
    )
    from wirebroker.console.login.credential_file import Credential  # noqa: PLC0415

    tokens = _read_tokens(file)
    grants = _grants(roles, tokens.get(name))
    token = new_access_token()
    _write(file, tokens | {name: Credential(_checked(name), access_token_hash(token), grants)})
    click.echo(token)
    return 0


@console_token.command("list")
@_file_flag("--tokens")
def list_tokens(*, file: Path) -> int:
    """List tokens by name, and their roles."""
    return _list(_read_tokens(file))


@console_token.command("delete")
@click.argument("name", metavar="NAME")
@_file_flag("--tokens")
def delete_token(*, name: str, file: Path) -> int:
    """Delete a token."""
    return _delete(file, _read_tokens(file), name, "token")


def _read_users(file: Path) -> dict[str, Credential]:
    return _read(file, _passwords().check_hash)


def _read_tokens(file: Path) -> dict[str, Credential]:
    from wirebroker.console.login.access_tokens import check_token_hash  # noqa: PLC0415

    return _read(file, check_token_hash)


def _read(file: Path, check: Callable[[str], None]) -> dict[str, Credential]:
    from wirebroker.console.login.credential_file import (  # noqa: PLC0415 - keeps --help fast
        CredentialError,
        read_credentials,
    )

    try:
        return read_credentials(file, check) if file.exists() else {}
    except CredentialError as error:
        raise click.ClickException(str(error)) from None


def _write(file: Path, rows: Mapping[str, Credential]) -> None:
    from wirebroker.console.login.credential_file import (  # noqa: PLC0415 - keeps --help fast
        CredentialError,
        write_credentials,
    )

    try:
        write_credentials(file, rows.values())
    except CredentialError as error:
        raise click.ClickException(str(error)) from None


def _list(rows: Mapping[str, Credential]) -> int:
    for row in rows.values():
        click.echo(f"{row.name}: {row.grants.text()}")
    return 0


def _delete(file: Path, rows: dict[str, Credential], name: str, noun: str) -> int:
    if name not in rows:
        raise click.ClickException(f"there is no {noun} {name} in {file}")
    del rows[name]
    _write(file, rows)
    return 0


def _checked(name: str) -> str:
    from wirebroker.console.login.credential_file import CredentialError, checked_name  # noqa: PLC0415

    try:
        return checked_name(name)
    except CredentialError as error:
        raise click.UsageError(str(error)) from None


def _grants(roles: tuple[str, ...], existing: Credential | None) -> Grants:
    from wirebroker.console.login.grants import grants_of  # noqa: PLC0415 - keeps --help fast

    if not roles:
        if existing is None:
            raise click.UsageError("--role is missing: write --role reader, operator or admin")
        return existing.grants
    try:
        return grants_of(",".join(roles))
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _passwords() -> Any:
    try:
        from wirebroker.console.login import password_hashes  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"this verb needs the package {error.name}: pip install 'wirebroker[console]'"
        ) from None
    return password_hashes


def _hash(password: str) -> str:
    hashed: str = _passwords().hash_of(password)
    return hashed


def _password(name: str) -> str:
    if sys.stdin.isatty():
        entered: str = click.prompt(
            f"password of {name}", hide_input=True, confirmation_prompt=True
        )
        line = entered.encode("utf-8", "surrogateescape")
    else:
        with open(sys.stdin.fileno(), "rb", closefd=False) as piped:
            line = piped.readline(_passwords().MOST_PASSWORD_BYTES + 3).rstrip(b"\r\n")
    return _checked_password(line)


def _checked_password(line: bytes) -> str:
    most = _passwords().MOST_PASSWORD_BYTES
    try:
        password = line.decode()
    except UnicodeDecodeError:
        # A longer line is cut, perhaps in a character.
        if len(line) <= most:
            raise click.UsageError("the password is not UTF-8") from None
        password = ""
    if len(password) < _LEAST_PASSWORD or len(line) > most:
        raise click.UsageError(
            f"the password must have {_LEAST_PASSWORD} characters or more, and at most {most}"
            " bytes; it is the first line of standard input"
        )
    return password
