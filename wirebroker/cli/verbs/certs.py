"""`wirebroker certs DIR`."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from wirebroker.base.clock import SystemClock

_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
_AUTHORITY: Final = "ca.pem"
_AUTHORITY_KEY: Final = "ca-key.pem"
_PRIVATE: Final = 0o600
_PUBLIC: Final = 0o644
_NO_LIBRARY: Final = "certificates need the library cryptography: pip install 'wirebroker[tls]'"


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="HOST",
    help="Host name or address of the broker (repeatable). [default: those of this machine]",
)
@click.option(
    "--client",
    "clients",
    multiple=True,
    metavar="NAME",
    help="Create a certificate for this client too (repeatable).",
)
@click.option(
    "--days",
    type=click.IntRange(1, 36_500),
    default=365,
    metavar="N",
    help="Validity of the certificates in days. [default: 365]",
)
def certs(*, folder: Path, hosts: tuple[str, ...], clients: tuple[str, ...], days: int) -> None:
    """Create a CA and certificates for a broker and clients, for development.

    DIR gets ca.pem, which clients trust, and broker.pem, the broker's key and certificate. An
    existing CA in DIR signs the new certificates.
    """
    try:
        from wirebroker.security.tls.certificates import Authority  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise click.ClickException(_NO_LIBRARY) from None
    for name in clients:
        if not name or "/" in name or name in ("ca", "ca-key", "broker"):
            raise click.UsageError(
                f"--client {name} cannot be used: {name}.pem is reserved or not a file name"
            )
    now = datetime.fromtimestamp(SystemClock().now_ms() / 1000, UTC)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / _AUTHORITY).exists():
            pem, key = (folder / _AUTHORITY).read_text(), (folder / _AUTHORITY_KEY).read_text()
            authority = Authority.load(pem, key)
        else:
            authority = Authority.make("wirebroker development", now, days=days)
            _write(folder / _AUTHORITY_KEY, authority.key, _PRIVATE)
            _write(folder / _AUTHORITY, authority.certificate, _PUBLIC)
        names = list(hosts or (*_HOSTS, socket.gethostname()))
        text = authority.issue("broker", now, hosts=names, days=days)
        _write(folder / "broker.pem", text, _PRIVATE)
        for name in clients:
            _write(folder / f"{name}.pem", authority.issue(name, now, days=days), _PRIVATE)
    except (OSError, ValueError) as error:
        raise click.ClickException(f"{folder} cannot be used: {error}") from None
    click.echo(f"{folder / 'broker.pem'}: for {', '.join(names)}")
    click.echo(f"{folder / _AUTHORITY}: CA that clients trust")
    for name in clients:
        click.echo(f"{folder / name}.pem: User:CN={name}")


def _write(path: Path, text: str, mode: int) -> None:
    """Replace a file atomically."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.unlink(missing_ok=True)
    with open(
        temporary, "x", encoding="ascii", opener=lambda name, flags: os.open(name, flags, mode)
    ) as file:
        file.write(text)
    temporary.replace(path)
