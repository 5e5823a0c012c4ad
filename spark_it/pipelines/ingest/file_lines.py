"""The lines of a file, or of a piece of one: decompressed, in bounded memory.

A line ends with LF, CRLF or CR. Of a file in pieces, a line belongs to the piece in which its first
byte lies. A byte order mark at the beginning of a file is not part of its first line.
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

# More than a broker accepts; the rest of such a line is skipped.
MOST_LINE_BYTES: Final = 64 << 20
_CHUNK_BYTES: Final = 1 << 20
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_OPENERS: Final[dict[str, Callable[[Path], BufferedIOBase]]] = {
    ".gz": gzip.GzipFile,
    ".bz2": bz2.BZ2File,
}
# Hadoop's compression formats: Spark reads these.
_HADOOPS: Final = frozenset({".deflate", ".lz4", ".snappy", ".zst"})


class DamagedFileError(Exception):
    """A compressed file that cannot be read to its end."""


class TextLine(NamedTuple):
    """A line, with its end.

    Attributes:
        content: Its bytes.
        is_cut: Whether it is longer than MOST_LINE_BYTES, and this is its beginning.
    """

    content: bytes
    is_cut: bool = False


def is_compressed(name: str) -> bool:
    """Return whether a file of this name is decompressed, and so not read in pieces."""
    return PurePath(name).suffix in _OPENERS


def is_for_spark(name: str) -> bool:
    """Return whether only Spark can read a file of this name."""
    return PurePath(name).suffix in _HADOOPS


def open_file(path: Path, *, as_it_is: bool = False) -> BufferedIOBase:
    """Open a file; reading decompresses it, unless `as_it_is`."""
    opener = None if as_it_is else _OPENERS.get(path.suffix)
    return path.open("rb") if opener is None else opener(path)


def lines_of(file: BufferedIOBase, start: int = 0, end: int | None = None) -> Iterator[TextLine]:
    """Return the lines of a piece of a file.

    Args:
        file: Opened for reading, at its beginning.
        start: The piece's first byte; above 0 the file can seek.
        end: The byte after the piece; None: the piece ends with the file.

    Raises:
        DamagedFileError: The rest of the file cannot be read.
        OSError: The operating system's.
    """
    position = max(start - 1, 0)
    if start:
        file.seek(position)
    for line, size in _sized_lines(file):
        if end is not None and position >= end:
            return
        # A piece begins with what is left of the line before, if only its end.
        if not start or position >= start:
            has_mark = position == 0 and line.content.startswith(_BYTE_ORDER_MARK)
            yield line._replace(content=line.content[3:]) if has_mark else line
        position += size


def _sized_lines(file: BufferedIOBase) -> Iterator[tuple[TextLine, int]]:
    """Return lines, and how many bytes of the file each has."""
    rest = b""
    cut: TextLine | None = None
    cut_bytes = 0
    while chunk := _next_chunk(file):
        found = (rest + chunk).splitlines(keepends=True)
        # The last may go on, or be a CR whose LF is in the next chunk.
        rest = b"" if found[-1].endswith(b"\n") else found.pop()
        for content in found:
            if cut is None:
                yield TextLine(content), len(content)
            else:
                yield cut, cut_bytes + len(content)
                cut = None
        if cut is not None or len(rest) > MOST_LINE_BYTES:
            if cut is None:
                cut, cut_bytes = TextLine(rest[:MOST_LINE_BYTES], is_cut=True), 0
            kept = rest[-1:] if rest.endswith(b"\r") else b""
            cut_bytes += len(rest) - len(kept)
            rest = kept
    if cut is not None:
        yield cut, cut_bytes + len(rest)
    elif rest:
        yield TextLine(rest), len(rest)


def _next_chunk(file: BufferedIOBase) -> bytes:
    try:
        # Not read(), which loses the data before the damage.
        return file.read1(_CHUNK_BYTES)
    except (EOFError, zlib.error) as error:
        raise DamagedFileError(repr(error)) from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise DamagedFileError(repr(error)) from error  # as gzip and bz2 do
