"""`wirebroker serve`: run a broker until it is stopped.

Settings are checked before the server is imported, so that errors are immediate.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from wirebroker.cli.plumbing.broker_flags import GREATEST_PORT, broker_flags, parse_settings
from wirebroker.cli.plumbing.file_path import FilePath

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wirebroker.broker.companions import Companion
    from wirebroker.broker.server import Server
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.config import Config
    from wirebroker.testing.test_mode.restartable import RestartableBroker


@click.command()
@click.option(
    "--config",
    "file",
    type=FilePath(),
    metavar="FILE",
    help="A server.properties file. Without it, a profile for one node applies.",
)
@broker_flags
@click.option(
    "--unprotected",
    is_flag=True,
    help=(
        "Start even if settings or stored ACLs ask for security that this broker would not enforce."
    ),
)
@click.option(
    "--test-mode",
    is_flag=True,
    help="Serve the test API (/test/v1: requests, clock, faults), and skip all disk syncs.",
)
@click.option(
    "--add-scram",
    multiple=True,
    metavar="USER",
    help=(
        "Create a user in a new cluster, as kafka-storage.sh does: "
        "SCRAM-SHA-512=[name=NAME,password=PASSWORD] (repeatable)."
    ),
)
@click.option(
    "--workers",
    type=click.IntRange(1, 100),
    metavar="N",
    help="Start N brokers of one cluster on this machine, each a process with its own port.",
)
@click.option(
    "--delivery",
    "with_delivery",
    is_flag=True,
    help="Run the delivery service as well (wirebroker delivery); requires wirebroker[delivery].",
)
@click.option(
    "--release-version",
    metavar="RELEASE",
    help=(
        "Release of Apache Kafka whose features a new cluster starts with: 4.3 or 4.4. [default: "
        "4.4]"
    ),
)
@click.option(
    "--console",
    "console_port",
    type=click.IntRange(0, GREATEST_PORT),
    metavar="PORT",
    help="Also start the console on this port, by default of 127.0.0.1 (wirebroker[console]).",
)
@click.option(
    "--console-config",
    "console_file",
    type=FilePath(),
    metavar="FILE",
    help="File with the console's clusters, logins and settings.",
)
@click.option(
    "--console-profile",
    metavar="NAME",
    help="Profile with the console's login, for brokers that require one (wirebroker profile).",
)
@click.option("--log-format", type=click.Choice(["text", "json"]), help="Format of log lines.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="Lowest level that is logged. [default: info]",
)
def serve(
    *,
    file: Path | None,
    data_dir: str | None,
    host: str | None,
    port: int | None,
    settings: tuple[str, ...],
    port_file: Path | None,
    unprotected: bool,
    test_mode: bool,
    add_scram: tuple[str, ...],
    workers: int | None,
    with_delivery: bool,
    release_version: str | None,
    console_port: int | None,
    console_file: Path | None,
    console_profile: str | None,
    log_format: str | None,
    log_level: str | None,
) -> int:
    """Start a broker and run it until it is stopped.

    Settings are taken from flags, then from KAFKA_ environment variables (KAFKA_LOG_DIRS is
    log.dirs), then from the file, then from Kafka's defaults.
    """
    from wirebroker.broker.worker_layout import check_alone  # noqa: PLC0415
    from wirebroker.config import ConfigError, StartError  # noqa: PLC0415 - keeps --help fast
    from wirebroker.config.protection import check_protection  # noqa: PLC0415
    from wirebroker.config.rows.releases import RELEASE_VERSION  # noqa: PLC0415
    from wirebroker.config.sources.sources import load_config  # noqa: PLC0415

    flags = parse_settings(settings)
    flag_settings = {
        "wirebroker.unprotected": "true" if unprotected else None,
        RELEASE_VERSION: release_version,
        "wirebroker.log.format": log_format,
        "wirebroker.log.level": log_level,
    }
    flags |= {name: value for name, value in flag_settings.items() if value is not None}
    load = partial(
        load_config,
        file=file,
        environment=os.environ,
        data_directory=data_dir,
        host=host,
        port=port,
    )
    try:
        config = load(flags=flags)
        if test_mode:
            from wirebroker.testing.settings.settings import settings_of_test_mode  # noqa: PLC0415

            config = load(flags=flags | settings_of_test_mode(config))
        check_protection(config)
        _check_release(release_version, config)
        companions = [_delivery(file, flags, workers)] if with_delivery else []
        companions += _consoles(
            config, console_port, console_file, console_profile, is_test_mode=test_mode
        )
        if workers is not None:
            worker_arguments = (workers, flags, file, data_dir, port_file, add_scram)
            return _serve_workers(config, load, worker_arguments, companions, test_mode=test_mode)
        check_alone(config)
        first_users = _first_users(add_scram, config)
        return _run_alone(config, port_file, first_users, companions, test_mode=test_mode)
    except (ConfigError, StartError) as error:
        raise click.ClickException(str(error)) from None


def _consoles(
    config: Config,
    port: int | None,
    file: Path | None,
    profile: str | None,
    *,
    is_test_mode: bool,
) -> list[Companion]:
    """Return the console to start with the broker, if one is requested."""
    if port is None:
        given = "config" if file is not None else "profile" if profile is not None else None
        if given is not None:
            raise click.UsageError(f"--console-{given} needs --console PORT")
        return []
    if profile is not None:
        from wirebroker.cli.plumbing.profiles import profile_file  # noqa: PLC0415 - rarely used

        profile_file(profile)
    from wirebroker.broker.console_process import (  # noqa: PLC0415 - rarely used
        ConsoleOptions,
        check_console,
        console_process,
    )

    options = ConsoleOptions(port, file, profile, is_test_mode)
    check_console(config, options)
    return [console_process(options)]


def _delivery(file: Path | None, flags: dict[str, str], workers: int | None) -> Companion:
    from wirebroker.config import ConfigError  # noqa: PLC0415 - rarely used

    if workers is not None:
        raise ConfigError("--delivery cannot be used with --workers: run `wirebroker delivery`")
    from wirebroker.cli.services.delivery_child import delivery_child  # noqa: PLC0415 - rarely used

    return delivery_child(file, flags)


def _run_alone(
    config: Config,
    port_file: Path | None,
    first_users: list[MetadataRecord],
    companions: list[Companion],
    *,
    test_mode: bool,
) -> int:
    from wirebroker.base.asyncio_without_ssl import import_without_ssl  # noqa: PLC0415
    from wirebroker.base.gc_tuning import uncollected  # noqa: PLC0415
    from wirebroker.config.listeners.listeners import opens_tls  # noqa: PLC0415 - keeps --help fast
    from wirebroker.config.quorum import is_controller_alone  # noqa: PLC0415

    with uncollected():
        if not opens_tls(config):
            import_without_ssl()
        from wirebroker.broker.serve_process import run as run_server  # noqa: PLC0415

    if is_controller_alone(config):
        return run_server(config, port_file=port_file, companions=companions)
    build: Callable[..., Server | RestartableBroker] | None = None
    if test_mode:
        from wirebroker.testing.test_mode import restartable  # noqa: PLC0415

        build = restartable.RestartableBroker
    if first_users:
        from wirebroker.broker.server import Server as Plain  # noqa: PLC0415

        build = partial(build or Plain, first_users=first_users)
    if build is None:
        return run_server(config, port_file=port_file, companions=companions)
    return run_server(config, port_file=port_file, companions=companions, build=build)


def _serve_workers(
    config: Config,
    load: Callable[..., Config],
    worker_arguments: tuple[Any, ...],
    companions: list[Companion],
    *,
    test_mode: bool,
) -> int:
    from wirebroker.broker.workers.running import Asked, run  # noqa: PLC0415
    from wirebroker.config import ConfigError  # noqa: PLC0415 - rarely used

    if test_mode:
        raise ConfigError("--test-mode cannot be used with --workers: it supports only one broker")
    options = Asked(*worker_arguments)
    return run(config, load(flags=options.flags, is_one_node=False), options, companions)


def _first_users(users: tuple[str, ...], config: Config) -> list[MetadataRecord]:
    if not users:
        return []
    from wirebroker.config import ConfigError  # noqa: PLC0415 - rarely used
    from wirebroker.config.quorum import is_controller_alone, is_member  # noqa: PLC0415
    from wirebroker.security.sasl.first_users import first_users  # noqa: PLC0415 - rarely used

    if is_member(config):
        raise ConfigError("--add-scram cannot be used: the users come from the cluster to join")
    if is_controller_alone(config):
        raise ConfigError(
            "--add-scram cannot be used by a controller alone: format its directory with "
            "`wirebroker format --add-scram`"
        )
    return first_users(users)


def _check_release(release_version: str | None, config: Config) -> None:
    from wirebroker.config import ConfigError  # noqa: PLC0415 - rarely used
    from wirebroker.config.quorum import is_member  # noqa: PLC0415

    if release_version is not None and is_member(config):
        raise ConfigError(
            "--release-version cannot be used: the features come from the cluster to join"
        )
