"""Addresses of host names in settings: looked up in a thread, remembered, not waited for long.

A name server that is silent answers after half a minute; whatever follows the metadata would wait
behind it. So settings take what is known of their names, and are taken again when more is.
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

# Who changed the setting waits so long for its names, so that a quick answer counts at once.
PATIENCE_S: Final = 0.5


class HostLookup:
    """The first address of each name that was ever asked for.

    Attributes:
        addresses: By name, as accepted sockets tell them; a name that nobody knows isn't there.
    """

    __slots__ = ("_task", "addresses")

    def __init__(self) -> None:
        self.addresses: dict[str, str] = {}
        self._task: asyncio.Task[None] | None = None

    async def look_up(self, hosts: Iterable[str], on_change: Callable[[], None]) -> None:
        """Look names up anew, in place of those before; returns when they are, or after a while.

        Args:
            hosts: Names, and addresses, which need no looking up.
            on_change: Called when the addresses are other ones.
        """
        self.close()
        names = [host for host in hosts if normal_address(host) is None]
        if names:
            self._task = asyncio.create_task(self._run(names, on_change), name="host names")
            await asyncio.wait([self._task], timeout=PATIENCE_S)

    def close(self) -> None:
        """Look up nothing more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self, names: list[str], on_change: Callable[[], None]) -> None:
        for name in names:
            try:
                address = await in_thread(Work.LOOKUPS, first_address, name)
            except (OSError, UnicodeError) as error:
                logger.warning("max.connections.per.ip.overrides: %s is unknown: %s", name, error)
                continue
            if self.addresses.get(name) != address:
                self.addresses[name] = address
                on_change()


def first_address(host: str) -> str:
    """Return a host's first address. Blocks.

    Raises:
        OSError: Nobody knows it.
        UnicodeError: No name server can be asked for it: a label is empty or too long.
    """
    # As in Java, no name is this machine.
    return str(socket.getaddrinfo(host or "localhost", None, type=socket.SOCK_STREAM)[0][4][0])
