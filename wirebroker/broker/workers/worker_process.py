"""A worker's process, used by the supervisor."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Final

from wirebroker.base.python_child import start_module

if TYPE_CHECKING:
    import asyncio

    from wirebroker.broker.workers.orders import WorkerConfig

# The last of the ready lines (ready_lines.py).
_LAST_LINE: Final = b"  data: "


class WorkerProcess:
    """One start of a worker, which logs to the supervisor's standard error."""

    __slots__ = ("_process",)

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, order: WorkerConfig) -> WorkerProcess:
        """Start a process with its order.

        Raises:
            OSError: The process cannot be started.
        """
        process = await start_module("wirebroker.broker.workers.worker", f"node-{order.node_id}")
        assert process.stdin is not None
        process.stdin.write(order.encode())
        return cls(process)

    async def ready_lines(self) -> list[str]:
        """Wait until it serves, and return its ready lines; empty if it ended before."""
        assert self._process.stdout is not None
        lines: list[str] = []
        while line := await self._process.stdout.readline():
            lines.append(line.decode().removesuffix("\n"))
            if line.startswith(_LAST_LINE):
                return lines
        return []

    async def ended(self) -> int:
        """Wait for its end and return its status; below 0, the signal that killed it."""
        return await self._process.wait()

    def stop(self) -> None:
        """Make it shut down; idempotent."""
        assert self._process.stdin is not None
        self._process.stdin.close()


def how_it_ended(status: int) -> str:
    """Describe an exit status."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"
