"""Puts the segment that compaction wrote into the place of old ones, so that a crash does no harm.

    written, synced         N.log.cleaned          N.log  M.log          undone at load
    begin_swap              N.log.swap             N.log  M.log          completed at load
    enter_swapped, then     N.log.swap             N.log.K.deleted ...   completed at load
    set_aside_old for each
    finish_swap             N.log                  N.log.K.deleted ...   done

(so with all files of a segment). After each step the caller syncs the directory, in a thread: then
names of a later step are never on a disk that lacks those of an earlier one. The log itself changes
at once, by enter_swapped: the new segment is read under the name `.swap` until the end.

At load: while a `.cleaned` file is there, the `.swap` files from its offset on are not complete,
and are removed with it. Else the `.swap` segment stands for everything from its base offset up to
its last record; old segments there are removed, and it takes its final name.

Apache Kafka does the same with the same names, so either completes what the other began; only `K`,
a number, is ours: the name of a file that somebody still reads is not given to the next one.

Source: Kafka's LocalLog.replaceSegments, LogLoader.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from wirebroker.storage.compaction.segment import CLEANED_SUFFIX
from wirebroker.storage.file_names import offset_of
from wirebroker.storage.log.index.offset_index import OffsetIndex
from wirebroker.storage.log.segment.batch_scan import scan_headers
from wirebroker.storage.log.segment.segment import Segment
from wirebroker.storage.log.segment.segment_files import (
    DELETED_SUFFIX,
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
    """Tell whether a `.cleaned` segment is all there; nobody else should write to the directory."""
    paths = [
        segment_path(directory, base_offset, suffix + CLEANED_SUFFIX)
        for suffix in (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX)
    ]
    return all(map(files.exists, paths)) and files.data(paths[0]).size() == log_bytes


def begin_swap(files: Files, directory: str, base_offset: int) -> None:
    """Say that the `.cleaned` segment is complete, by renaming it to `.swap`.

    Raises:
        OSError: The disk failed; a start undoes or completes it.
    """
    for suffix in SEGMENT_SUFFIXES:
        path = segment_path(directory, base_offset, suffix)
        if files.exists(path + CLEANED_SUFFIX):
            files.rename(path + CLEANED_SUFFIX, path + SWAP_SUFFIX)


def enter_swapped(log: Log, files: Files, old: Sequence[Segment]) -> Segment:
    """Put the `.swap` segment into the log, and the old ones out of it; touches no file.

    Readers find the new one from now on.

    Args:
        log: Nobody else changes it meanwhile.
        files: The log's.
        old: Neighbours in the log, none of them active.

    Returns:
        The new segment, for `finish_swap` when all old ones are set aside.
    """
    new = Segment(files, log.directory, old[0].base_offset, created_ms=old[0].created_ms)
    new.look_under(SWAP_SUFFIX)
    log.segments.replace(old, new)
    log.mark_touched()
    return new


def set_aside_old(log: Log, segment: Segment) -> None:
    """Give the files of an old segment their last names, `.K.deleted`.

    Slices stay readable until the caller removes them (`Segment.remove`), after
    file.delete.delay.ms. The producer snapshot stays if the new segment begins there.

    Raises:
        OSError: The disk failed; a start completes the swap.
    """
    segment.mark_deleted(f".{next(_numbers)}{DELETED_SUFFIX}")
    offset = segment.base_offset
    if log.segments[log.segments.floor_index(offset)].base_offset != offset:
        log.producer_state.snapshots.set_aside(offset)


def finish_swap(log: Log, files: Files, new: Segment) -> None:
    """Give the new segment its final name.

    Raises:
        OSError: The disk failed; a start completes it.
    """
    for file in new.all_files():
        if not file.path.endswith(SWAP_SUFFIX):
            continue  # retention has been here meanwhile: it is `.deleted`
        if files.exists(file.path):
            file.rename(file.path.removesuffix(SWAP_SUFFIX))
        else:
            file.path = file.path.removesuffix(SWAP_SUFFIX)
    log.mark_touched()


def old_segments(log: Log, base_offsets: Iterable[int]) -> list[Segment] | None:
    """Return the log's closed segments with these base offsets; None if it has others by now."""
    wanted = list(base_offsets)
    first = log.segments.floor_index(wanted[0])
    found = [log.segments[i] for i in range(first, min(first + len(wanted), len(log.segments) - 1))]
    return found if [segment.base_offset for segment in found] == wanted else None


def undo_swap(files: Files, directory: str, base_offset: int) -> None:
    """Take back `begin_swap`, whole or half: the old segments are not what was compacted any more.

    Raises:
        OSError: The disk failed.
    """
    path = segment_path(directory, base_offset, LOG_SUFFIX)
    if files.exists(path + SWAP_SUFFIX):
        # From here on a start would not complete the swap.
        files.rename(path + SWAP_SUFFIX, path + CLEANED_SUFFIX)
    for suffix in SEGMENT_SUFFIXES:
        files.unlink(segment_path(directory, base_offset, suffix + SWAP_SUFFIX))
    files.unlink(path + CLEANED_SUFFIX)


def discard_cleaned(files: Files, directory: str) -> None:
    """Remove what an unfinished compaction has left in a partition's directory."""
    for name in files.list_files(directory):
        if name.endswith(CLEANED_SUFFIX):
            files.unlink(f"{directory}/{name}")


def recover_swap(files: Files, directory: str, names: Iterable[str]) -> bool:
    """Undo or complete a swap that a crash, or a stop, has interrupted; most often there is none.

    Args:
        files: Where the directory lies.
        directory: A partition's.
        names: All that is in it.

    Returns:
        Whether names have changed.

    Raises:
        KafkaError: A `.swap` segment is no sequence of batches.
        OSError: The disk failed.
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
    # The .cleaned ones last: as long as one is there, the others are known to be incomplete.
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
        # A segment of which nothing was left ends where it begins; it counts all the same.
        replaced = {start for start, _ in ranges}
        for name in numbered:
            offset = _base_offset(name)
            if name.endswith(SEGMENT_SUFFIXES) and (start <= offset < end or offset in replaced):
                files.unlink(f"{directory}/{name}")
        files.sync_directory(directory)
    # The log's name last would make a crash look like one before the old segments went.
    for name in sorted(complete, key=lambda name: not name.endswith(LOG_SUFFIX + SWAP_SUFFIX)):
        files.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP_SUFFIX)}")
    files.sync_directory(directory)
    return True


def _base_offset(name: str) -> int:
    """Return the number that a file's name begins with; -1 if it is another kind of name."""
    offset = offset_of(name.partition(".")[0])
    return -1 if offset is None else offset


def _end_offset(files: Files, directory: str, base_offset: int) -> int:
    """Return the offset behind the last batch of a `.swap` segment."""
    log = files.data(segment_path(directory, base_offset, LOG_SUFFIX + SWAP_SUFFIX))
    index_path = segment_path(directory, base_offset, INDEX_SUFFIX + SWAP_SUFFIX)
    index = OffsetIndex(files.data(index_path), base_offset)
    end = base_offset
    for _, header in scan_headers(log, index.last_entry().position, log.size()):
        end = header.last_offset + 1
    log.close()
    index.file.close()
    return end
