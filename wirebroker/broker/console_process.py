"""The console as a child process of the broker (`serve --console`).

The console is a separate Kafka client (docs/console.md). The broker only starts it when it is ready
and stops it first. If the console fails, the broker logs that and continues without it. The console
ends when its standard input ends, so it does not survive a killed broker.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.python_child import start_module
from wirebroker.config import ConfigError
from wirebroker.config.listeners.listeners import listeners_of

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.config import Config

logger = logging.getLogger("wirebroker")

_STOP_TIMEOUT_S: Final = 10.0
_PLAINTEXT: Final = "PLAINTEXT"
_CLUSTER: Final = "local"


class ConsoleOptions(NamedTuple):
    """How the console is started.

    Attributes:
        port: 0 selects a free one.
        file: Its clusters and settings, or None.
        profile: The profile with its login, or None.
    """

    port: int
    file: Path | None
    profile: str | None = None


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
            f" {first.name} requires TLS or a login, whose settings they contain (docs/console.md)"
        )


class ConsoleProcess:
    """The process; `start` it when the broker is ready, `stop` it before the broker."""

    __slots__ = ("_options", "_process", "_watch")

    def __init__(self, options: ConsoleOptions) -> None:
        self._options = options
        self._process: asyncio.subprocess.Process | None = None
        self._watch: asyncio.Task[None] | None = None

    async def start(self, address: str) -> None:
        """Start the console for the broker at this address; return before it is ready."""
        port = str(self._options.port)
        clusters = self._cluster_flags(address)
        arguments = ("console", *clusters, "--port", port, "--stop-with-stdin")
        try:
            self._process = await start_module("wirebroker", *arguments)
        except OSError as error:
            reason = error.strerror or str(error)
            logger.warning(
                "the broker runs without its console, which cannot be started: %s", reason
            )
            return
        self._watch = asyncio.create_task(self._pass_on(self._process), name="console")

    def _cluster_flags(self, address: str) -> list[str]:
        options = self._options
        flags = [] if options.file is None else ["--config", str(options.file)]
        if options.profile is not None:
            flags += ["--profile", options.profile, "--profile-bootstrap", address]
        return flags or ["--cluster", f"{_CLUSTER}={address}"]

    async def stop(self) -> None:
        """Stop the console and wait for its end."""
        process, watch = self._process, self._watch
        if process is None or watch is None:
            return
        watch.cancel()
        await asyncio.wait({watch})
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(_STOP_TIMEOUT_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

    async def _pass_on(self, process: asyncio.subprocess.Process) -> None:
        """Print the console's ready line, and log its unexpected end."""
        assert process.stdout is not None
        while line := await process.stdout.readline():
            sys.stdout.write(line.decode("utf-8", "replace"))
            sys.stdout.flush()
        status = await process.wait()
        logger.error("the console ended with status %d; the broker continues without it", status)
