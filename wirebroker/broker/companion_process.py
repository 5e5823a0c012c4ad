"""A service beside a broker, in a separate process (`serve --console`, `serve --delivery`).

It is a Kafka client. The broker only starts it when it is ready and stops it first. If the service
fails, the broker logs that and continues without it. The service ends when its standard input ends,
so it does not survive a killed broker.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.base.python_child import start_module

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from wirebroker.broker.companions import LocalBroker

logger = logging.getLogger("wirebroker")


class CompanionCommand(NamedTuple):
    """How a service is started and stopped.

    Attributes:
        name: Its name in messages.
        arguments: Returns the arguments of `wirebroker` for a broker.
        stop_timeout_s: After this time it is killed.
        environment: Returns additional environment variables, for secrets.
    """

    name: str
    arguments: Callable[[LocalBroker], Sequence[str]]
    stop_timeout_s: float
    environment: Callable[[LocalBroker], Mapping[str, str]] = lambda _broker: {}


class CompanionProcess:
    """The process; `start` it when the broker is ready, `stop` it before the broker."""

    __slots__ = ("_command", "_process", "_watch")

    def __init__(self, command: CompanionCommand) -> None:
        self._command = command
        self._process: asyncio.subprocess.Process | None = None
        self._watch: asyncio.Task[None] | None = None

    async def start(self, broker: LocalBroker) -> None:
        """Start the service for a broker; return before it is ready."""
        name = self._command.name
        arguments = self._command.arguments(broker)
        environment = self._command.environment(broker)
        try:
            self._process = await start_module("wirebroker", *arguments, environment=environment)
        except OSError as error:
            reason = error.strerror or str(error)
            logger.warning(
                "the broker runs without its %s, which cannot be started: %s", name, reason
            )
            return
        self._watch = asyncio.create_task(self._pass_on(self._process), name=name)

    async def stop(self) -> None:
        """Stop the service and wait for its end; kill it if it does not end in time."""
        process, watch = self._process, self._watch
        if process is None or watch is None:
            return
        self._process = None
        assert process.stdin is not None
        process.stdin.close()
        await asyncio.wait({watch}, timeout=self._command.stop_timeout_s)
        if not watch.done():
            logger.warning(
                "the %s is killed: it did not end in %d s",
                self._command.name,
                self._command.stop_timeout_s,
            )
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await asyncio.wait({watch})
        await process.wait()

    async def _pass_on(self, process: asyncio.subprocess.Process) -> None:
        """Print the service's ready line, and log its unexpected end."""
        assert process.stdout is not None
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError:
                continue  # longer than the pipe's buffer, which is empty now
            if not line:
                break
            # The broker's own output may be closed; the service's must still be read.
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.write(line.decode("utf-8", "replace"))
                sys.stdout.flush()
        status = await process.wait()
        if self._process is process:
            logger.error(
                "the %s ended with status %d; the broker continues without it",
                self._command.name,
                status,
            )
