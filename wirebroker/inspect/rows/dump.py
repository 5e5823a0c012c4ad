"""`wirebroker dump`: the files of a data directory as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.records.batch import read_batch_header
from wirebroker.codecs.records.layout import HEADER_BYTES
from wirebroker.inspect.rows.decoded_records import decoder_for
from wirebroker.inspect.rows.file_kinds import (
    METADATA_TOPIC,
    FileKind,
    base_offset_of,
    kind_of,
)
from wirebroker.inspect.rows.index_rows import (
    offset_index_rows,
    producer_snapshot_rows,
    time_index_rows,
    transaction_index_rows,
)
from wirebroker.inspect.rows.rows import LogRows, OffsetRange, damage
from wirebroker.inspect.rows.small_file_rows import small_file_rows
from wirebroker.storage.file_names import partition_of
from wirebroker.storage.log.index.offset_index import OffsetIndex
from wirebroker.storage.log.segment.segment_files import INDEX_SUFFIX, LOG_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from wirebroker.inspect.rows.rows import Row
    from wirebroker.inspect.views.read_only_files import ReadOnlyFiles

SEGMENT_KINDS = frozenset(
    {FileKind.LOG, FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX}
)


class UnknownFileError(Exception):
    """A file or path that cannot be shown, with the reason."""


class DumpOptions(NamedTuple):
    """What to show; `most` limits the rows of a file."""

    shows_records: bool = False
    opens_compressed: bool = False
    wanted: OffsetRange = OffsetRange()
    most: int | None = None


def dump(
    files: ReadOnlyFiles,
    paths: Iterable[str],
    options: DumpOptions,
    on_bytes: Callable[[int], None],
) -> Iterator[Row]:
    """Yield the rows of files, each after a row with the file's name.

    Raises:
        OSError: A file cannot be read.
        UnknownFileError: A file's kind is unknown.
    """
    for path in paths:
        size = files.data(path).size()
        yield {"type": "file", "path": path, "size": size}
        remaining = options.most
        for row in _file_rows(files, path, options, on_bytes):
            if remaining is not None:
                if remaining == 0:
                    break
                remaining -= 1
            yield row


def paths_to_dump(
    files: ReadOnlyFiles, paths: Iterable[str], offset_range: OffsetRange
) -> list[str]:
    """Return the files of paths: themselves, or the supported files in folders.

    Raises:
        UnknownFileError: A path does not exist, or its kind is unknown.
        OSError: A folder cannot be read.
    """
    selected: list[str] = []
    for path in paths:
        if files.is_directory(path):
            selected += _files_in(files, path.rstrip("/") or "/", offset_range)
        elif not files.exists(path):
            raise UnknownFileError(f"{path}: there is no such file")
        elif kind_of(path.rpartition("/")[2]) is None:
            raise UnknownFileError(f"{path}: unknown kind of file")
        else:
            selected.append(path)
    return selected


def _files_in(files: ReadOnlyFiles, folder: str, offset_range: OffsetRange) -> list[str]:
    names = sorted(files.list_directory(folder))
    bases = sorted(
        base
        for name in names
        if name.endswith(LOG_SUFFIX) and (base := base_offset_of(name)) is not None
    )
    paths = [f"{folder}/{name}" for name in names if _is_selected(name, bases, offset_range)]
    for name in names:
        if partition_of(name) and files.is_directory(f"{folder}/{name}"):
            paths += _files_in(files, f"{folder}/{name}", offset_range)
    return paths


def _is_selected(name: str, bases: list[int], offset_range: OffsetRange) -> bool:
    kind = kind_of(name)
    base = base_offset_of(name)
    if kind not in SEGMENT_KINDS or base is None:
        return kind is not None
    following = next((candidate for candidate in bases if candidate > base), None)
    return base <= offset_range.last and (following is None or following > offset_range.first)


def _file_rows(
    files: ReadOnlyFiles, path: str, options: DumpOptions, on_bytes: Callable[[int], None]
) -> Iterator[Row]:
    name = path.rpartition("/")[2]
    kind = kind_of(name)
    assert kind is not None, path
    base = base_offset_of(name) or 0
    try:
        match kind:
            case FileKind.LOG | FileKind.METADATA_SNAPSHOT:
                yield from _log_rows(files, path, kind, options, on_bytes)
                return
            case FileKind.OFFSET_INDEX:
                yield from offset_index_rows(files.data(path), base, options.wanted)
            case FileKind.TIME_INDEX:
                yield from time_index_rows(files.data(path), base, options.wanted)
            case FileKind.TRANSACTION_INDEX:
                yield from transaction_index_rows(files.data(path), options.wanted)
            case FileKind.PRODUCER_SNAPSHOT:
                yield from producer_snapshot_rows(files.read_file(path))
            case _:
                yield from small_file_rows(files, path, kind)
    except FileNotFoundError:
        yield damage("it was removed meanwhile", 0)
        return
    on_bytes(files.data(path).size())


def _log_rows(
    files: ReadOnlyFiles,
    path: str,
    kind: FileKind,
    options: DumpOptions,
    on_bytes: Callable[[int], None],
) -> Iterator[Row]:
    file = files.data(path)
    folder = path.rpartition("/")[0].rpartition("/")[2]
    partition = partition_of(folder)
    topic = METADATA_TOPIC if kind is FileKind.METADATA_SNAPSHOT else partition and partition.topic
    rows = LogRows(
        offset_range=options.wanted if kind is FileKind.LOG else OffsetRange(),
        shows_records=options.shows_records,
        opens_compressed=options.opens_compressed,
        decoder=decoder_for(topic),
    )
    start = _start(files, path, options.wanted.first) if kind is FileKind.LOG else 0
    on_bytes(start)
    yield from rows.read(file, start, on_bytes)
    file.close()


def _start(files: ReadOnlyFiles, path: str, offset: int) -> int:
    base = base_offset_of(path.rpartition("/")[2])
    index_path = path.removesuffix(LOG_SUFFIX) + INDEX_SUFFIX
    if base is None or offset <= base or not files.exists(index_path):
        return 0
    index = OffsetIndex(files.data(index_path), base)
    if index.sanity_check() is not None:
        return 0
    position = index.lookup(offset).position
    try:
        header = read_batch_header(files.data(path).read_at(position, HEADER_BYTES))
    except KafkaError:
        return 0
    return position if header.base_offset <= offset else 0
