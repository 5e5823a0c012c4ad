"""Flags that `serve` and `join` share: directory, address, settings, port file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from wirebroker.cli.plumbing.file_path import FilePath

if TYPE_CHECKING:
    from collections.abc import Callable

GREATEST_PORT: Final = 65535


def _parse_port(_context: click.Context, _option: click.Parameter, text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= GREATEST_PORT):
        raise click.ClickException(
            f"--port {text} cannot be used: the port must be 0 to {GREATEST_PORT}"
        )
    return int(text)


_BROKER_FLAGS = (
    click.option("--data-dir", metavar="DIR", help="Data directory (log.dirs). [default: ./data]"),
    click.option("--host", metavar="HOST", help="Address to listen on. [default: 127.0.0.1]"),
    click.option(
        "--port",
        callback=_parse_port,
        metavar="N",
        help="Port to listen on; 0 selects a free one. [default: 9092]",
    ),
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="Set a config (repeatable).",
    ),
    click.option(
        "--port-file",
        type=FilePath(),
        metavar="FILE",
        help="Write the port to this file when the broker is ready.",
    ),
)


def broker_flags(command: Callable[..., int]) -> Callable[..., int]:
    """Add the flags to a command."""
    for flag in reversed(_BROKER_FLAGS):
        command = flag(command)
    return command


def parse_settings(settings: tuple[str, ...]) -> dict[str, str]:
    """Return the settings of `--set`, each `key=value`."""
    parsed: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            message = f"--set {setting} cannot be used: write --set key=value"
            raise click.ClickException(message)
        parsed[name.strip()] = value
    return parsed
