"""The console beside a broker, for `wirebroker serve --console` (docs/console.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.broker.companion_process import CompanionCommand, CompanionProcess
from wirebroker.config import ConfigError
from wirebroker.config.listeners.listeners import listeners_of

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.config import Config

_STOP_TIMEOUT_S: Final = 10.0
_PLAINTEXT: Final = "PLAINTEXT"
_CLUSTER: Final = "local"


class ConsoleOptions(NamedTuple):
    """The console's port (0 selects a free one), and its file of clusters or None."""

    port: int
    file: Path | None


def check_console(config: Config, options: ConsoleOptions) -> None:
    """Check that a console can log in to this broker.

    Raises:
        ConfigError: The first listener needs TLS or a login, and no file says which.
    """
    listeners = listeners_of(config)
    if not listeners:
        raise ConfigError("--console needs a broker: this process is a controller alone")
    first = listeners[0]
    if options.file is None and first.protocol != _PLAINTEXT:
        raise ConfigError(
            f"--console needs --console-config FILE: listener {first.name} requires TLS or a login,"
            " whose settings the file contains (docs/console.md)"
        )


def console_process(options: ConsoleOptions) -> CompanionProcess:
    """Return the console of a broker, as a process to start with it."""
    clusters = ["--cluster", f"{_CLUSTER}=ADDRESS"]
    if options.file is not None:
        clusters = ["--config", str(options.file)]
    arguments = ("console", *clusters, "--port", str(options.port), "--stop-with-stdin")
    return CompanionProcess(CompanionCommand("console", arguments, _STOP_TIMEOUT_S))
