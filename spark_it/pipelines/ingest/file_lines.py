"""The lines of a file or a piece of it, decompressed in bounded memory.

A line belongs to the piece that contains its first byte.
"""

from __future__ import annotations

import bz2
import gzip
import zlib
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import BufferedIOBase
    from pathlib import Path

# Larger than a broker accepts; the rest of the line is skipped.
MOST_LINE_BYTES: Final = 64 << 20
_CHUNK_BYTES: Final = 1 << 20
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_OPENERS: Final[dict[str, Callable[[Path], BufferedIOBase]]] = {
    ".gz": gzip.GzipFile,
    ".bz2": bz2.BZ2File,
}
# Hadoop's formats, which only Spark reads.
_HADOOPS: Final = frozenset({".deflate", ".lz4", ".snappy", ".zst"})


class DamagedFileError(Exception):
    """A compressed file cannot be read to its end."""


class TextLine(NamedTuple):
    """A line, with its end; `is_cut` if it is truncated to MOST_LINE_BYTES."""

    content: bytes
    is_cut: bool = False


def is_compressed(name: str) -> bool:
    """Return whether a file of this name is decompressed, so not read in pieces."""
    return PurePath(name).suffix in _OPENERS


def is_for_spark(name: str) -> bool:
    """Return whether only Spark can read a file of this name."""
    return PurePath(name).suffix in _HADOOPS


def open_file(path: Path, *, as_it_is: bool = False) -> BufferedIOBase:
    """Open a file; reads decompress it, unless `as_it_is`."""
    opener = None if as_it_is else _OPENERS.get(path.suffix)
    return path.open("rb") if opener is None else opener(path)


def lines_of(file: BufferedIOBase, start: int = 0, end: int | None = None) -> Iterator[TextLine]:
    """Return the lines of a file whose first bytes are in [start, end).

    Raises:
        DamagedFileError: The rest of the file cannot be read.
        OSError: The operating system's error.
    """
    position = max(start - 1, 0)
    if start:
        file.seek(position)
    for line, size in _sized_lines(file):
        if end is not None and position >= end:
            return
        # Skip the rest of the previous piece's last line.
        if not start or position >= start:
            has_mark = position == 0 and line.content.startswith(_BYTE_ORDER_MARK)
            yield line._replace(content=line.content[3:]) if has_mark else line
        position += size


def _sized_lines(file: BufferedIOBase) -> Iterator[tuple[TextLine, int]]:
    rest = b""
    cut: TextLine | None = None
    cut_bytes = 0
    while chunk := _next_chunk(file):
        lines = (rest + chunk).splitlines(keepends=True)
        # It may continue, or end with a CR whose LF is in the next chunk.
        rest = b"" if lines[-1].endswith(b"\n") else lines.pop()
        for content in lines:
            if cut is None:
                yield TextLine(content), len(content)
            else:
                yield cut, cut_bytes + len(content)
                cut = None
        if cut is not None or len(rest) > MOST_LINE_BYTES:
            if cut is None:
                cut, cut_bytes = TextLine(rest[:MOST_LINE_BYTES], is_cut=True), 0
            carriage_return = rest[-1:] if rest.endswith(b"\r") else b""
            cut_bytes += len(rest) - len(carriage_return)
            rest = carriage_return
    if cut is not None:
        yield cut, cut_bytes + len(rest)
    elif rest:
        yield TextLine(rest), len(rest)


def _next_chunk(file: BufferedIOBase) -> bytes:
    try:
        # read() would lose the data before the damage.
        return file.read1(_CHUNK_BYTES)
    except (EOFError, zlib.error) as error:
        raise DamagedFileError(repr(error)) from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise DamagedFileError(repr(error)) from error  # gzip and bz2 set no errno
