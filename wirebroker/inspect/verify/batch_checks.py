"""Checks of one batch: its header against its records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.base.text import counted
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import iterate_records
from wirebroker.inspect.rows import decoded_records

if TYPE_CHECKING:
    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.inspect.rows.batch_walk import WalkedBatch
    from wirebroker.inspect.rows.decoded_records import Decoder
    from wirebroker.inspect.verify.findings import FileReport

_KNOWN_ATTRIBUTES = 0x7F


def check_batch(walked: WalkedBatch, report: FileReport, decoder: Decoder | None) -> None:
    """Check a batch with a valid checksum; `decoder` decodes each record."""
    header = walked.header
    position, offset = walked.position, header.base_offset
    if header.attributes & ~_KNOWN_ATTRIBUTES:
        report.warning(f"attributes {header.attributes:#x}", position=position, offset=offset)
    if not 0 <= header.record_count <= header.last_offset_delta + 1:
        report.error(
            f"{counted(header.record_count, 'record')} in"
            f" {counted(header.last_offset_delta + 1, 'offset')}",
            position=position,
            offset=offset,
        )
        return
    try:
        _check_records(walked, report, decoded_records.control if header.is_control else decoder)
    except KafkaError as error:
        message = f"its records cannot be read: {error.message}"
        is_large = error.code is ErrorCode.INVALID_RECORD and "more than" in (error.message or "")
        tell = report.warning if is_large else report.error
        tell(message, position=position, offset=offset)


def _check_records(walked: WalkedBatch, report: FileReport, decoder: Decoder | None) -> None:
    header = walked.header
    expected = header.base_offset
    max_timestamp = -1
    for record in iterate_records(walked.batch, header):
        if not expected <= record.offset <= header.last_offset:
            report.error(
                f"its record {record.offset} is not from {expected} to {header.last_offset}",
                position=walked.position,
                offset=header.base_offset,
            )
            return
        expected = record.offset + 1
        max_timestamp = max(max_timestamp, record.timestamp)
        if decoder is not None:
            decoded = decoded_records.decoded(decoder, record)
            if decoded is not None and "error" in decoded:
                report.error(
                    f"a record cannot be read: {decoded['error']}",
                    position=walked.position,
                    offset=record.offset,
                )
    if header.record_count and max_timestamp != header.max_timestamp:
        report.warning(
            f"its largest timestamp is {max_timestamp}, its header says {header.max_timestamp}",
            position=walked.position,
            offset=header.base_offset,
        )


def has_gap_inside(header: BatchHeader) -> bool:
    """Return whether compaction removed records of a batch."""
    return header.record_count <= header.last_offset_delta
