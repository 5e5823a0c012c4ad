"""Lines of standard input, without a thread, which could not be interrupted."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

from wirebroker.client.errors import ClientError
from wirebroker.codecs.errors import without_frames

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from wirebroker.codecs.records.batch import BareRecord

_PIECE_BYTES: Final = 1 << 20
# Longer ones are no records: brokers accept 1 MiB by default.
_MOST_LINE_BYTES: Final = 100 << 20


class LineSplitter:
    """Splits arriving bytes into lines; `rest` has the bytes after the last one.

    With `as_java`, a carriage return also ends a line, alone or before a line feed.
    """

    def __init__(self, *, as_java: bool) -> None:
        self.rest = b""
        self._as_java = as_java
        self._has_returned = False

    def lines_in(self, piece: bytes) -> list[bytes]:
        """Return the lines that end in a piece, without line ends."""
        if self._as_java:
            chunk = piece.removeprefix(b"\n") if self._has_returned else piece
            self._has_returned = piece.endswith(b"\r")
            piece = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, self.rest = (self.rest + piece).split(b"\n")
        return lines


def records_of(
    lines: Iterable[bytes], record_of: Callable[[bytes], BareRecord]
) -> tuple[list[BareRecord], ClientError | None]:
    """Return the records before the first invalid line, and its error."""
    records: list[BareRecord] = []
    try:
        records.extend(map(record_of, lines))
    except ClientError as error:
        return records, without_frames(error)
    return records, None


async def lines_of(descriptor: int, *, as_java: bool = False) -> AsyncIterator[list[bytes]]:
    """Yield the lines that have arrived, without line ends.

    Raises:
        ClientError: A line is longer than 100 MiB.
    """
    splitter = LineSplitter(as_java=as_java)
    while piece := await _piece(descriptor):
        lines = splitter.lines_in(piece)
        if len(splitter.rest) > _MOST_LINE_BYTES:
            raise ClientError(f"a line is longer than {_MOST_LINE_BYTES} bytes")
        if lines:
            yield lines
    if splitter.rest:
        yield [splitter.rest]


async def _piece(descriptor: int) -> bytes:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    try:
        loop.add_reader(descriptor, wake)
    except PermissionError:
        return os.read(descriptor, _PIECE_BYTES)  # a file is always ready
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)
    return os.read(descriptor, _PIECE_BYTES)
