"""The console beside a broker, for `wirebroker serve --console` (docs/console.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.broker.companion_process import CompanionCommand, CompanionProcess
from wirebroker.config import ConfigError
from wirebroker.config.listeners.listeners import listeners_of

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.broker.companions import LocalBroker
    from wirebroker.config import Config

# Has the token for the broker's HTTP listener: other users could see it in the arguments.
HTTP_TOKEN_VARIABLE: Final = "WIREBROKER_CONSOLE_HTTP_TOKEN"  # noqa: S105 - a name
_STOP_TIMEOUT_S: Final = 10.0
_PLAINTEXT: Final = "PLAINTEXT"


class ConsoleOptions(NamedTuple):
    """How the console is started.

    Attributes:
        port: 0 selects a free one.
        file: Its clusters and settings, or None.
        profile: The profile with its login, or None.
        is_test_mode: Whether the broker is in test mode, which the console then controls.
    """

    port: int
    file: Path | None
    profile: str | None = None
    is_test_mode: bool = False


def check_console(config: Config, options: ConsoleOptions) -> None:
    """Check that a console can log in to this broker.

    Raises:
        ConfigError: The first listener needs TLS or a login, and no file or profile says which.
    """
    listeners = listeners_of(config)
    if not listeners:
        raise ConfigError("--console needs a broker: this process is a controller alone")
    first = listeners[0]
    has_login = options.file is not None or options.profile is not None
    if not has_login and first.protocol != _PLAINTEXT:
        raise ConfigError(
            f"--console needs --console-profile NAME or --console-config FILE: listener"
            f" {first.name} requires TLS or a login; they have its settings (docs/console.md)"
        )


def console_process(options: ConsoleOptions) -> CompanionProcess:
    """Return the console of a broker, as a process to start with it."""

    def arguments(broker: LocalBroker) -> list[str]:
        words = ["console"] + ([] if options.file is None else ["--config", str(options.file)])
        if options.profile is not None:
            words += ["--profile", options.profile]
        words += ["--broker-address", broker.address]
        for broker_id, url in broker.http_urls.items():
            words += ["--broker-http", f"{broker_id}={url}"]
        words += ["--broker-test-mode"] if options.is_test_mode else []
        return [*words, "--port", str(options.port), "--stop-with-stdin"]

    def environment(broker: LocalBroker) -> dict[str, str]:
        token = broker.http_token
        return {} if token is None else {HTTP_TOKEN_VARIABLE: token}

    command = CompanionCommand("console", arguments, _STOP_TIMEOUT_S, environment)
    return CompanionProcess(command)
