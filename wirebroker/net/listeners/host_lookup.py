"""Lookup of host names in settings: in a thread, with cached results and a short wait.

A name server may take half a minute to fail, and metadata changes would wait for it. So settings
use the known addresses, and are applied again when there are more.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import TYPE_CHECKING, Final

from wirebroker.base.threads import Work, in_thread
from wirebroker.coordinator.quotas.addresses import normal_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

logger = logging.getLogger("wirebroker.net")

# A change of settings waits this long, so that quick lookups apply immediately.
PATIENCE_S: Final = 0.5


class HostLookup:
    """Cache of the names' first addresses, in the format of accepted sockets."""

    __slots__ = ("_task", "addresses")

    def __init__(self) -> None:
        self.addresses: dict[str, str] = {}
        self._task: asyncio.Task[None] | None = None

    async def look_up(self, hosts: Iterable[str], on_change: Callable[[], None]) -> None:
        """Look up names among `hosts`; return after that or a short wait.

        A new lookup replaces an earlier one.
        """
        self.close()
        names = [host for host in hosts if normal_address(host) is None]
        if names:
            self._task = asyncio.create_task(self._run(names, on_change), name="host names")
            await asyncio.wait([self._task], timeout=PATIENCE_S)

    def close(self) -> None:
        """Stop the lookup."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self, names: list[str], on_change: Callable[[], None]) -> None:
        for name in names:
            try:
                address = await in_thread(Work.LOOKUPS, first_address, name)
            except (OSError, UnicodeError) as error:
                logger.warning(
                    "max.connections.per.ip.overrides: cannot resolve %s: %s", name, error
                )
                continue
            if self.addresses.get(name) != address:
                self.addresses[name] = address
                on_change()


def first_address(host: str) -> str:
    """Return a host's first address. Blocks.

    Raises:
        OSError: It is unknown.
        UnicodeError: A label is empty or too long.
    """
    # As in Java, an empty name is this machine.
    return str(socket.getaddrinfo(host or "localhost", None, type=socket.SOCK_STREAM)[0][4][0])
