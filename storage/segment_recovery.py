"""What an unclean stop left of a segment: its good batches and their index entries.

Source: Kafka's LogSegment.recover.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.record_batch import batch_crc
from wirebroker.storage.batch_scan import scan_batches
from wirebroker.storage.index_tail import IndexTail, empty_tail, index_batches

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.codecs.record_batch import BatchHeader
    from wirebroker.storage.files import DataFile

MAX_RELATIVE_OFFSET = 2**31 - 1


class SegmentRecovery(NamedTuple):
    """What was kept, and what must be cut."""

    valid_bytes: int
    cut_bytes: int
    next_offset: int  # one after the last record; the base offset if nothing is left
    reason: str | None  # why bytes must be cut


class CheckedLog(NamedTuple):
    """Everything there is to know about a log file that was read as a whole."""

    recovery: SegmentRecovery
    tail: IndexTail
    offset_entries: bytes
    time_entries: bytes


def check_log(
    log: DataFile,
    on_batch: Callable[[BatchHeader, memoryview], None],
    *,
    base_offset: int,
    index_interval_bytes: int,
) -> CheckedLog:
    """Read a log file up to the first bad batch; changes nothing.

    Checked are length, magic, CRC-32C, and that offsets ascend from the base offset (with gaps,
    which compaction leaves).

    Args:
        log: The file.
        on_batch: Called with the header and the whole bytes of each good batch, in order. A
            KafkaError from it makes the batch a bad one.
        base_offset: The segment's.
        index_interval_bytes: See index_tail.py.

    Raises:
        KafkaError: UNSUPPORTED_FOR_MESSAGE_FORMAT: batches of magic 0 or 1 are data that we cannot
            check, and nothing may be cut because of them.
    """
    tail = empty_tail(base_offset)
    offset_entries, time_entries = bytearray(), bytearray()
    valid_bytes = 0
    next_offset = base_offset
    reason: str | None = None
    try:
        for position, header, batch in scan_batches(log, 0, log.size()):
            _check_batch(header, batch, next_offset=next_offset, base_offset=base_offset)
            on_batch(header, batch)
            tail, valid_bytes, offset_entry, time_entry = index_batches(
                tail,
                (header,),
                position=position,
                base_offset=base_offset,
                index_interval_bytes=index_interval_bytes,
            )
            offset_entries += offset_entry
            time_entries += time_entry
            next_offset = header.base_offset + header.last_offset_delta + 1
    except KafkaError as error:
        if error.code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
            raise
        reason = f"at position {valid_bytes}: {error}"
    recovery = SegmentRecovery(valid_bytes, log.size() - valid_bytes, next_offset, reason)
    return CheckedLog(recovery, tail, bytes(offset_entries), bytes(time_entries))


def _check_batch(
    header: BatchHeader, batch: memoryview, *, next_offset: int, base_offset: int
) -> None:
    problem = None
    if batch_crc(batch, 0, len(batch)) != header.crc:
        problem = "the CRC-32C differs"
    elif header.last_offset_delta < 0 or header.base_offset < next_offset:
        problem = f"offsets {header.base_offset} to {header.last_offset} are not from {next_offset}"
    elif header.last_offset - base_offset > MAX_RELATIVE_OFFSET:
        problem = f"offset {header.last_offset} is too far from the base offset {base_offset}"
    if problem:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, problem)
