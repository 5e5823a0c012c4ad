"""The expected contents of a log at each moment of a run."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.codecs.records.batch import iterate_batches, read_batch_header

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wirebroker.storage.log.log import Log


def base_of(batch: bytes) -> int:
    return read_batch_header(batch).base_offset


def end_of(batch: bytes) -> int:
    return read_batch_header(batch).last_offset + 1


class Facts(NamedTuple):
    """The state of a log between two steps of a run."""

    lineage: tuple[bytes, ...] = ()  # all batches up to its end, also deleted ones
    log_start_offset: int = 0  # acknowledged
    flushed: int = 0  # everything below is on disk
    flushed_start: int = 0  # a log start offset that is on disk
    deleted_to: int = 0  # an earlier log start; epochs and producers below may be forgotten
    # Batches after `flushed` that a power loss may restore: appended or truncated since.
    possible: frozenset[bytes] = frozenset()
    # Possible contents of compacted files; several during a swap.
    shapes: tuple[tuple[bytes, ...], ...] = ((),)
    clean_to: int | None = None  # start of the next compaction; None before the first

    @property
    def end(self) -> int:
        return end_of(self.lineage[-1]) if self.lineage else self.log_start_offset


class Promise(NamedTuple):
    """What a log must and may contain after a crash in the step from `before` to `after`."""

    required: dict[int, bytes]  # by base offset
    allowed: dict[int, set[bytes]]
    older: tuple[bytes, ...]  # may be missing from the log, but not from the producers' state
    lowest_start: int
    highest_start: int
    known_from: int  # epochs
    # gaps that were written: end of a batch, base offset of the next
    gaps: frozenset[tuple[int, int]]
    hole_from: int | None  # a power loss may remove closed segments after it; None: nothing


def promise(before: Facts, after: Facts, *, loses_power: bool) -> Promise:
    flushed = min(before.flushed, after.flushed)
    in_both = set(before.lineage) & set(after.lineage)
    required = {
        base_of(batch): batch
        for batch in before.lineage
        if batch in in_both
        and end_of(batch) > after.log_start_offset
        and (not loses_power or end_of(batch) <= flushed)
    }
    allowed: dict[int, set[bytes]] = {}
    possible = {*before.lineage, *after.lineage}
    gaps = {*gaps_in(before.lineage), *gaps_in(after.lineage)}
    if loses_power:
        possible |= before.possible | after.possible
        gaps.update(gaps_in(sorted(before.possible | after.possible, key=base_of)))
    for batch in possible:
        allowed.setdefault(base_of(batch), set()).add(batch)
    return Promise(
        required,
        allowed,
        max(before.lineage, after.lineage, key=len),
        min(before.flushed_start, after.flushed_start),
        max(before.log_start_offset, after.log_start_offset),
        max(before.deleted_to, after.deleted_to),
        frozenset(gaps),
        flushed if loses_power else None,
    )


def gaps_in(batches: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Yield each gap: the end of one batch and the base offset of the next."""
    for first, second in pairwise(batches):
        if end_of(first) != base_of(second):
            yield end_of(first), base_of(second)


def stored_batches(log: Log) -> list[bytes]:
    """Return every batch in the log's files, without an index."""
    stored: list[bytes] = []
    for segment in log.segments:
        content = segment.log.read_at(0, segment.log.size()) if segment.log.size() else b""
        batches = [
            content[position : position + header.size]
            for position, header in iterate_batches(content)
        ]
        assert sum(map(len, batches)) == len(content) == segment.size, segment
        assert not batches or base_of(batches[0]) >= segment.base_offset, segment
        stored += batches
    return stored
