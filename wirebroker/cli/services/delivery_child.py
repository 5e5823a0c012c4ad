"""The delivery service beside a broker, for `wirebroker serve --delivery`.

It is a separate process: the broker continues if it ends.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from wirebroker.base.python_child import start_module

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

logger = logging.getLogger("wirebroker.delivery")

_OWN: Final = "wirebroker.delivery."
# It finishes a transaction, and leaves its group.
_STOP_S: Final = 20.0


class DeliveryChild:
    """The process of one instance."""

    def __init__(self, file: Path | None, settings: Mapping[str, str]) -> None:
        """Store the broker's file and those settings that are the service's."""
        self._arguments = [] if file is None else ["--config", str(file)]
        for name, value in settings.items():
            if name.startswith(_OWN):
                self._arguments += ["--set", f"{name}={value}"]
        self._process: asyncio.subprocess.Process | None = None
        self._watching: asyncio.Task[None] | None = None

    async def start(self, address: str) -> None:
        """Start it for a broker that is ready."""
        command = ("wirebroker", "delivery", "run", "--until-input-ends", "--bootstrap", address)
        try:
            self._process = await start_module(*command, *self._arguments)
        except OSError as error:
            reason = error.strerror or str(error)
            logger.warning("cannot start the delivery service: %s; the broker continues", reason)
            return
        self._watching = asyncio.create_task(self._watch(self._process), name="delivery service")

    async def stop(self) -> None:
        """End it; kill it if it does not end in time."""
        process, watching = self._process, self._watching
        if process is None or watching is None:
            return
        self._process = None
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(asyncio.shield(watching), _STOP_S)
        except TimeoutError:
            logger.warning("the delivery service is killed: it did not end in %d s", _STOP_S)
            process.kill()
            await watching

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            logger.info("%s", line.decode(errors="replace").rstrip())
        status = await process.wait()
        if self._process is process:
            logger.error("the delivery service ended with status %d; the broker continues", status)
