"""`wirebroker console`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from wirebroker.cli.plumbing.file_path import FilePath
from wirebroker.cli.plumbing.output import tell
from wirebroker.console.web_settings import ROWS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from wirebroker.console.model.settings import ClusterSettings
    from wirebroker.console.web_settings import SettingRow, WebSettings

_LOCAL: Final = "local"
_DEFAULT_ADDRESS: Final = "127.0.0.1:9092"
_GREATEST_PORT: Final = 65535


class _OwnBroker(NamedTuple):
    """The broker that started this console, if one did.

    Attributes:
        properties: Its HTTP addresses and their token, as in a section of a file.
    """

    address: str | None
    properties: Mapping[str, str]

    @classmethod
    def of(cls, address: str | None, http: Sequence[str], *, is_test_mode: bool) -> _OwnBroker:
        """Return the broker from flags; `http` has BROKER_ID=URL. The environment has the token."""
        import os  # noqa: PLC0415 - keeps --help fast

        from wirebroker.broker.console_process import HTTP_TOKEN_VARIABLE  # noqa: PLC0415
        from wirebroker.console.model.http_settings import (  # noqa: PLC0415
            METRICS_URLS,
            TEST_URL,
            TOKEN,
            page_of,
        )

        if not http:
            return cls(address, {})
        addresses = [page.partition("=") for page in http]
        pages = [f"{broker_id}={page_of(url)}" for broker_id, _, url in addresses]
        properties = {METRICS_URLS: ",".join(pages)}
        if is_test_mode:
            properties[TEST_URL] = http[0].partition("=")[2]
        token = os.environ.get(HTTP_TOKEN_VARIABLE)
        return cls(address, properties if token is None else {**properties, TOKEN: token})


def _flag(row: SettingRow) -> Callable[[Any], Any]:
    """Return the flag of a setting; None means that it is not given."""
    name = f"--{row.name}"
    if row.kind == "yes-no":
        return click.option(name, row.field, is_flag=True, default=None, help=row.help)
    kind = {"file": FilePath(), "port": click.IntRange(0, _GREATEST_PORT)}.get(row.kind)
    return click.option(
        name,
        row.field,
        type=kind,
        multiple=row.kind == "names",
        metavar=row.metavar,
        help=row.help,
    )


def _with_web_settings(command: Callable[..., int]) -> Callable[..., int]:
    for row in reversed(ROWS):
        command = _flag(row)(command)
    return command


@click.command()
@click.option(
    "--cluster",
    "clusters",
    multiple=True,
    metavar="NAME=HOST:PORT,...",
    help=f"A cluster and its brokers (repeatable). [default: {_LOCAL}={_DEFAULT_ADDRESS}]",
)
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    metavar="NAME",
    help="A profile's cluster and login (wirebroker profile; repeatable).",
)
@click.option(
    "--config",
    "file",
    type=FilePath(),
    metavar="FILE",
    help="Read clusters, their security settings and these flags from a file (docs/console.md).",
)
@click.option(
    "--test-url",
    "test_urls",
    multiple=True,
    metavar="NAME=URL",
    help="Control a cluster's broker in test mode at this HTTP address (repeatable).",
)
@_with_web_settings
@click.option(
    "--port-file",
    type=FilePath(),
    metavar="FILE",
    help="Write the port to this file when the console is ready.",
)
@click.option("--broker-address", hidden=True)
@click.option("--broker-http", multiple=True, hidden=True)
@click.option("--broker-test-mode", is_flag=True, hidden=True)
@click.option("--stop-with-stdin", is_flag=True, hidden=True)
def console(
    *,
    clusters: tuple[str, ...],
    profiles: tuple[str, ...],
    file: Path | None,
    test_urls: tuple[str, ...],
    port_file: Path | None,
    broker_address: str | None,
    broker_http: tuple[str, ...],
    broker_test_mode: bool,
    stop_with_stdin: bool,
    **web_flags: Any,
) -> int:
    """Show and change clusters in a browser (requires wirebroker[console]).

    It works with any Kafka. By default it listens on a loopback address and needs no login; other
    addresses need users and TLS.
    """
    try:
        from wirebroker.console.web import server  # noqa: PLC0415 - an extra; slow
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"the console needs the package {error.name}: pip install 'wirebroker[console]'"
        ) from None
    from wirebroker.base.clock import SystemClock  # noqa: PLC0415 - keeps --help fast
    from wirebroker.base.logs import configure_logging  # noqa: PLC0415
    from wirebroker.broker.port_file import PortFile  # noqa: PLC0415
    from wirebroker.config import StartError  # noqa: PLC0415
    from wirebroker.console.audit.audit_log import AuditError  # noqa: PLC0415
    from wirebroker.console.login.credential_file import CredentialError  # noqa: PLC0415
    from wirebroker.console.web_settings import WebSettingError  # noqa: PLC0415

    written_port = PortFile(port_file)
    try:
        own = _OwnBroker.of(broker_address, broker_http, is_test_mode=broker_test_mode)
        chosen, settings = _settings(clusters, profiles, own, file, web_flags)
        chosen = _with_http(chosen, own, test_urls)
        if stop_with_stdin:
            server.stop_with_parent()
        written_port.remove()

        def on_ready(bound_port: int) -> None:
            sys.stdout.write(_ready_line(settings, bound_port, chosen))
            sys.stdout.flush()
            written_port.write(bound_port)

        configure_logging(level="warning")
        server.run(chosen, settings, clock=SystemClock(), on_ready=on_ready)
    except (
        AuditError,
        CredentialError,
        server.ListenError,
        StartError,
        WebSettingError,
    ) as error:
        raise click.ClickException(str(error)) from None
    finally:
        written_port.remove()
    tell("console stopped")
    return 0


def _ready_line(settings: WebSettings, port: int, clusters: list[ClusterSettings]) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    scheme = "http" if settings.tls_cert is None else "https"
    names = ", ".join(cluster.name for cluster in clusters)
    return f"console ready on {scheme}://{host}:{port}/ (clusters: {names})\n"


def _settings(
    clusters: tuple[str, ...],
    profiles: tuple[str, ...],
    own: _OwnBroker,
    file: Path | None,
    web_flags: Mapping[str, Any],
) -> tuple[list[ClusterSettings], WebSettings]:
    from wirebroker.console.model.settings import (  # noqa: PLC0415 - keeps --help fast
        ConsoleFile,
        cluster_of_flag,
        read_console_file,
    )
    from wirebroker.console.web_settings import web_settings  # noqa: PLC0415

    try:
        content = ConsoleFile({}, []) if file is None else read_console_file(file)
        settings = web_settings(web_flags, content.settings)
        chosen = list(content.clusters)
        chosen += [_cluster_of_profile(name, own.address) for name in profiles]
        chosen += [cluster_of_flag(text) for text in clusters]
        if not chosen:
            chosen = [cluster_of_flag(f"{_LOCAL}={own.address or _DEFAULT_ADDRESS}")]
    except (OSError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    names = [cluster.name for cluster in chosen]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise click.UsageError(f"two clusters have the name {twice}: give each its own")
    return chosen, settings


def _with_http(
    clusters: list[ClusterSettings], own: _OwnBroker, test_urls: tuple[str, ...]
) -> list[ClusterSettings]:
    """Add the addresses of `--test-url`, and the own broker's to its cluster if that has none."""
    from wirebroker.client.addresses import addresses_of  # noqa: PLC0415 - keeps --help fast
    from wirebroker.console.model.http_settings import (  # noqa: PLC0415
        TEST_URL,
        has_http_settings,
    )
    from wirebroker.console.model.settings import with_http  # noqa: PLC0415

    found = {cluster.name: cluster for cluster in clusters}
    try:
        for text in test_urls:
            name, equals, url = text.partition("=")
            if not equals or name not in found:
                raise click.UsageError(f"--test-url {text}: write NAME=URL, with a cluster's name")
            found[name] = with_http(found[name], {TEST_URL: url})
        if own.address is not None and own.properties:
            (address,) = addresses_of(own.address)
            for name, cluster in found.items():
                is_own = address in addresses_of(cluster.bootstrap)
                if is_own and not has_http_settings(cluster.properties):
                    found[name] = with_http(cluster, own.properties)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    return list(found.values())


def _cluster_of_profile(name: str, broker_address: str | None) -> ClusterSettings:
    """Return a profile's cluster; the address of a console's own broker replaces the profile's."""
    import os  # noqa: PLC0415

    from wirebroker.cli.plumbing.profiles import profile_file  # noqa: PLC0415
    from wirebroker.config.java.properties import parse_properties  # noqa: PLC0415
    from wirebroker.config.rows.row import ConfigError  # noqa: PLC0415
    from wirebroker.config.sources.sources import without_placeholders  # noqa: PLC0415
    from wirebroker.console.model.settings import cluster_of_properties  # noqa: PLC0415

    file = profile_file(name)
    try:
        properties = without_placeholders(parse_properties(file.read_text("latin-1")), os.environ)
        if broker_address is not None:
            properties["bootstrap.servers"] = broker_address
        return cluster_of_properties(name, properties)
    except (ValueError, ConfigError) as error:
        raise click.ClickException(f"profile {name} cannot be used: {error}") from None
