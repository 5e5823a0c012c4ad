"""The crash-safe replacement of old segments by the segment that compaction wrote.

    written, synced         N.log.cleaned          N.log  M.log          undone at load
    begin_swap              N.log.swap             N.log  M.log          completed at load
    enter_swapped, then     N.log.swap             N.log.K.deleted ...   completed at load
    set_aside_old for each
    finish_swap             N.log                  N.log.K.deleted ...   done

The same applies to all files of a segment. After each step the caller syncs the directory in a
thread, so that the steps reach the disk in order. The log in memory changes in enter_swapped; from
then on the new segment is read under its `.swap` name. If the disk fails, the next start undoes or
completes the swap (storage/README.md).

Apache Kafka uses the same steps and names, except the number `K`, which keeps the names of files
unique that are still being read.

Source: Kafka's LocalLog.replaceSegments, LogLoader.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from wirebroker.storage.compaction.segment import CLEANED_SUFFIX
from wirebroker.storage.file_names import DELETED_SUFFIX, offset_of
from wirebroker.storage.log.index.offset_index import OffsetIndex
from wirebroker.storage.log.segment.batch_scan import scan_headers
from wirebroker.storage.log.segment.segment import Segment
from wirebroker.storage.log.segment.segment_files import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    segment_path,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.storage.files import Files
    from wirebroker.storage.log.log import Log

_numbers = itertools.count(1)


def is_written(files: Files, directory: str, base_offset: int, log_bytes: int) -> bool:
    """Return whether a `.cleaned` segment is complete."""
    paths = [
        segment_path(directory, base_offset, suffix + CLEANED_SUFFIX)
        for suffix in (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX)
    ]
    return all(map(files.exists, paths)) and files.data(paths[0]).size() == log_bytes


def begin_swap(files: Files, directory: str, base_offset: int) -> None:
    """Rename the complete `.cleaned` segment to `.swap`."""
    for suffix in SEGMENT_SUFFIXES:
        path = segment_path(directory, base_offset, suffix)
        if files.exists(path + CLEANED_SUFFIX):
            files.rename(path + CLEANED_SUFFIX, path + SWAP_SUFFIX)


def enter_swapped(log: Log, files: Files, old: Sequence[Segment]) -> Segment:
    """Replace neighboring closed segments by the `.swap` segment in memory, and return it."""
    assert old[-1] is not log.segments.active, "the active segment is never replaced"
    new = Segment(files, log.directory, old[0].base_offset, created_ms=old[0].created_ms)
    new.use_directory(SWAP_SUFFIX)
    log.segments.replace(old, new)
    log.mark_touched()
    return new


def set_aside_old(log: Log, segment: Segment) -> None:
    """Rename the files of an old segment to `.K.deleted`.

    The producer snapshot stays if the new segment begins at its offset.
    """
    segment.mark_deleted(f".{next(_numbers)}{DELETED_SUFFIX}")
    offset = segment.base_offset
    if log.segments[log.segments.floor_index(offset)].base_offset != offset:
        log.producer_state.snapshots.set_aside(offset)


def finish_swap(log: Log, files: Files, new: Segment) -> None:
    """Give the new segment its final name."""
    for file in new.all_files():
        if not file.path.endswith(SWAP_SUFFIX):
            continue  # retention has renamed it to `.deleted`
        if files.exists(file.path):
            file.rename(file.path.removesuffix(SWAP_SUFFIX))
        else:
            file.path = file.path.removesuffix(SWAP_SUFFIX)
    log.mark_touched()


def old_segments(log: Log, base_offsets: Iterable[int]) -> list[Segment] | None:
    """Return these closed segments of the log; None if they have changed."""
    expected_offsets = list(base_offsets)
    first = log.segments.floor_index(expected_offsets[0])
    segments = [
        log.segments[i]
        for i in range(first, min(first + len(expected_offsets), len(log.segments) - 1))
    ]
    return segments if [segment.base_offset for segment in segments] == expected_offsets else None


def undo_swap(files: Files, directory: str, base_offset: int) -> None:
    """Undo a complete or partial `begin_swap`, because the old segments have changed."""
    path = segment_path(directory, base_offset, LOG_SUFFIX)
    if files.exists(path + SWAP_SUFFIX):
        # From here on a start does not complete the swap.
        files.rename(path + SWAP_SUFFIX, path + CLEANED_SUFFIX)
    for suffix in SEGMENT_SUFFIXES:
        files.unlink(segment_path(directory, base_offset, suffix + SWAP_SUFFIX))
    files.unlink(path + CLEANED_SUFFIX)


def discard_cleaned(files: Files, directory: str) -> None:
    """Remove the files of an unfinished compaction."""
    for name in files.list_files(directory):
        if name.endswith(CLEANED_SUFFIX):
            files.unlink(f"{directory}/{name}")


def recover_swap(files: Files, directory: str, names: Iterable[str]) -> bool:
    """Undo or complete an interrupted swap, given all names in the partition's directory.

    Returns:
        Whether names have changed.

    Raises:
        KafkaError: A `.swap` segment is damaged.
    """
    if not any(name.endswith((CLEANED_SUFFIX, SWAP_SUFFIX)) for name in names):
        return False
    numbered = [name for name in names if _base_offset(name) >= 0]
    cleaned = [name for name in numbered if name.endswith(CLEANED_SUFFIX)]
    swapped = [name for name in numbered if name.endswith(SWAP_SUFFIX)]
    if not cleaned and not swapped:
        return False
    first_cleaned = min(map(_base_offset, cleaned), default=1 << 63)
    incomplete = [name for name in swapped if _base_offset(name) >= first_cleaned]
    # .cleaned files go last: while one exists, the .swap files count as incomplete.
    for name in (*incomplete, *cleaned):
        files.unlink(f"{directory}/{name}")
    complete = [name for name in swapped if name not in incomplete]
    ranges = [
        (_base_offset(name), _end_offset(files, directory, _base_offset(name)))
        for name in complete
        if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)
    ]
    if ranges:
        start, end = min(ranges)[0], max(end for _, end in ranges)
        # An empty new segment still replaces the one at its base offset.
        replaced = {start for start, _ in ranges}
        for name in numbered:
            offset = _base_offset(name)
            if name.endswith(SEGMENT_SUFFIXES) and (start <= offset < end or offset in replaced):
                files.unlink(f"{directory}/{name}")
        files.sync_directory(directory)
    # Rename the log first; otherwise a crash would look as if old segments still existed.
    for name in sorted(complete, key=lambda name: not name.endswith(LOG_SUFFIX + SWAP_SUFFIX)):
        files.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP_SUFFIX)}")
    files.sync_directory(directory)
    return True


def _base_offset(name: str) -> int:
    offset = offset_of(name.partition(".")[0])
    return -1 if offset is None else offset


def _end_offset(files: Files, directory: str, base_offset: int) -> int:
    log = files.data(segment_path(directory, base_offset, LOG_SUFFIX + SWAP_SUFFIX))
    index_path = segment_path(directory, base_offset, INDEX_SUFFIX + SWAP_SUFFIX)
    index = OffsetIndex(files.data(index_path), base_offset)
    end = base_offset
    for _, header in scan_headers(log, index.last_entry().position, log.size()):
        end = header.last_offset + 1
    log.close()
    index.file.close()
    return end
