"""Lines of standard input as they come, without a thread that nobody could interrupt."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

from wirebroker.client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_PIECE_BYTES: Final = 1 << 20
# What is longer is no line for a record: brokers take 1 MiB unless they are told otherwise.
_MOST_LINE_BYTES: Final = 100 << 20


async def lines_of(descriptor: int) -> AsyncIterator[list[bytes]]:
    """Give lines without their ends, as many as have come by then.

    Raises:
        ClientError: A line is longer than 100 MiB.
    """
    rest = b""
    while piece := await _piece(descriptor):
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > _MOST_LINE_BYTES:
            raise ClientError(f"a line is longer than {_MOST_LINE_BYTES} bytes")
        if lines:
            yield lines
    if rest:
        yield [rest]


async def _piece(descriptor: int) -> bytes:
    """Wait until something has come, and return it; nothing is the end."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    try:
        loop.add_reader(descriptor, wake)
    except PermissionError:
        return os.read(descriptor, _PIECE_BYTES)  # a file, for which nobody waits
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)
    return os.read(descriptor, _PIECE_BYTES)
