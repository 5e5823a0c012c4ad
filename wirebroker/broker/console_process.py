"""The console beside a broker, for `wirebroker serve --console` (docs/console.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.broker.companion_process import CompanionCommand, CompanionProcess
from wirebroker.config import ConfigError
from wirebroker.config.listeners.listeners import listeners_of

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.broker.companions import ServedAddresses
    from wirebroker.config import Config

_STOP_TIMEOUT_S: Final = 10.0
_PLAINTEXT: Final = "PLAINTEXT"
# Has the token of a broker in test mode.
TEST_TOKEN_VARIABLE: Final = "WIREBROKER_CONSOLE_TEST_TOKEN"  # noqa: S105 - a name


class ConsoleOptions(NamedTuple):
    """How the console is started.

    Attributes:
        port: 0 selects a free one.
        file: Its clusters and settings, or None.
        profile: The profile with its login, or None.
        is_test_mode: Whether the broker is in test mode, which the console then controls.
        test_token: The token of the test mode, or None.
    """

    port: int
    file: Path | None
    profile: str | None = None
    is_test_mode: bool = False
    test_token: str | None = None


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

    def arguments(addresses: ServedAddresses) -> list[str]:
        clusters = [] if options.file is None else ["--config", str(options.file)]
        if options.profile is not None:
            clusters += ["--profile", options.profile]
        broker = ["--broker-address", addresses.kafka]
        if options.is_test_mode and addresses.http is not None:
            broker += ["--broker-test-url", f"http://{addresses.http}"]
        port = ["--port", str(options.port)]
        return ["console", *clusters, *broker, *port, "--stop-with-stdin"]

    secrets = {} if options.test_token is None else {TEST_TOKEN_VARIABLE: options.test_token}
    return CompanionProcess(CompanionCommand("console", arguments, _STOP_TIMEOUT_S, secrets))
