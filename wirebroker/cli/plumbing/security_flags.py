"""Flags for TLS and logins; they override the file (--config).

Passwords come from the environment or a file, because other users can see the command line.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, TypedDict, TypeVar

import click

from wirebroker.cli.plumbing.file_path import FilePath
from wirebroker.config.java.jaas import LOGIN_MODULES, PASSWORD_MECHANISMS, quoted
from wirebroker.net.client.tcp_dialer import TcpDialer
from wirebroker.security.login.outgoing import ConnectionMethod

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_Command = TypeVar("_Command", bound="Callable[..., int]")

PASSWORD_VARIABLE: Final = "WIREBROKER_SASL_PASSWORD"  # noqa: S105 - a name
_FILE_VARIABLE: Final = "WIREBROKER_CLIENT_CONFIG"
_DEFAULT_MECHANISM: Final = "SCRAM-SHA-512"
# With these alone there is nothing to check.
_OF_PLAIN_TEXT: Final = frozenset({"bootstrap.servers", "security.protocol"})


class SecurityFlags(TypedDict):
    """Values of the flags."""

    client_config: Path | None
    tls: bool
    tls_ca: str | None
    tls_cert: str | None
    sasl_user: str | None
    sasl_mechanism: str | None


SECURITY_FLAG_NAMES: Final = frozenset(SecurityFlags.__annotations__)


def security_flags(command: _Command, *, has_config: bool) -> _Command:
    """Add the flags; `has_config` is whether the command has another --config."""
    for option in (
        click.option(
            "--sasl-mechanism",
            type=click.Choice(PASSWORD_MECHANISMS),
            help=f"SASL mechanism. [default: {_DEFAULT_MECHANISM}]",
        ),
        click.option(
            "--sasl-user",
            metavar="NAME",
            help=f"Log in as this user; the password is in {PASSWORD_VARIABLE}.",
        ),
        click.option(
            "--tls-cert",
            metavar="FILE",
            help="Client certificate with its key, as PEM. Implies --tls.",
        ),
        click.option(
            "--tls-ca",
            metavar="FILE",
            help="Trust only these CAs, as PEM. Implies --tls.",
        ),
        click.option("--tls", is_flag=True, help="Use TLS."),
        click.option(
            *(("--client-config",) if has_config else ("--client-config", "--config")),
            "client_config",
            type=FilePath(),
            metavar="FILE",
            help="Read Kafka's client settings (--command-config of its tools). "
            f"[default: {_FILE_VARIABLE}]",
        ),
    ):
        command = option(command)
    return command


def client_settings(flags: SecurityFlags) -> dict[str, str]:
    """Return a client's settings by Kafka's names, from the file and the flags.

    Raises:
        click.UsageError: The file cannot be read, or flags contradict each other.
    """
    settings = _of_file(flags["client_config"] or os.environ.get(_FILE_VARIABLE))
    protocol = settings.get("security.protocol", "PLAINTEXT").upper()
    has_tls = flags["tls"] or flags["tls_ca"] or flags["tls_cert"] or protocol.endswith("SSL")
    has_login = flags["sasl_user"] or protocol.startswith("SASL_")
    for name, file in (("ssl.truststore", flags["tls_ca"]), ("ssl.keystore", flags["tls_cert"])):
        if file:
            settings |= {f"{name}.location": file, f"{name}.type": "PEM"}
    if flags["sasl_user"]:
        settings |= _login(flags["sasl_user"], flags["sasl_mechanism"] or _DEFAULT_MECHANISM)
    elif flags["sasl_mechanism"]:
        raise click.UsageError("--sasl-mechanism needs --sasl-user")
    transport = "SSL" if has_tls else "PLAINTEXT"
    if protocol in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"):
        settings["security.protocol"] = f"SASL_{transport}" if has_login else transport
    return settings


def way_to_cluster(settings: Mapping[str, str]) -> ConnectionMethod:
    """Return the transport and login for the cluster.

    Raises:
        click.UsageError: A setting is invalid.
    """
    if settings.keys() <= _OF_PLAIN_TEXT and settings["security.protocol"] == "PLAINTEXT":
        return ConnectionMethod(TcpDialer(), None)
    # Imported only if needed: it takes a fifth of a short verb's time.
    from wirebroker.client.security.security import client_security  # noqa: PLC0415
    from wirebroker.config.rows.row import ConfigError  # noqa: PLC0415
    from wirebroker.config.sources.sources import local_java_options  # noqa: PLC0415
    from wirebroker.security.login.outgoing import connection_method  # noqa: PLC0415

    try:
        return connection_method(client_security(settings, local_java_options(os.environ)))
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


def _of_file(path: Path | str | None) -> dict[str, str]:
    if not path:
        return {}
    from pathlib import Path  # noqa: PLC0415 - there is a file

    from wirebroker.config.java.properties import parse_properties  # noqa: PLC0415
    from wirebroker.config.rows.row import ConfigError  # noqa: PLC0415
    from wirebroker.config.sources.sources import without_placeholders  # noqa: PLC0415

    try:
        properties = parse_properties(Path(path).read_text("latin-1"))
        return without_placeholders(properties, os.environ)
    except (OSError, ValueError, ConfigError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or error
        raise click.UsageError(f"--client-config {path} cannot be used: {reason}") from None


def _login(user: str, mechanism: str) -> dict[str, str]:
    password = os.environ.get(PASSWORD_VARIABLE)
    if not password:
        raise click.UsageError(f"--sasl-user needs a password: set {PASSWORD_VARIABLE}")
    module = LOGIN_MODULES[mechanism]
    line = f"{module} required username={quoted(user)} password={quoted(password)};"
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": line}
