"""The rows of a partition's range as columns, from verified and decompressed batches.

Memory: 1 MiB or one batch of the file, one decompressed batch (at most
decompression_limits.MAX_DECOMPRESSED_BYTES), and some MiB of columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.columns import RecordColumns, named
from wirebroker.codecs.records.compression import decompress
from wirebroker.codecs.records.layout import HEADER_BYTES
from wirebroker.codecs.records.record import invalid_record
from wirebroker.segments.loss_report import LostRange, note_loss

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wirebroker.codecs.primitives import Buffer
    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.codecs.records.columns import ColumnBuffers
    from wirebroker.segments.offset_ranges import RowRange
    from wirebroker.storage.log.index.transaction_index import AbortedTransaction

# Spark's default (spark.sql.execution.arrow.maxRecordsPerBatch).
_MOST_ROWS: Final = 10_000
# Bounds a worker's memory; costs no speed.
_MOST_BYTES: Final = 8 << 20


class ScanOptions(NamedTuple):
    """What to read of rows.

    `loss_report` is the folder for reports. Rows before `earliest`, in ms since 1970, may be
    skipped.
    """

    keys: bool
    values: bool
    headers: bool
    includes_control: bool
    is_committed: bool
    fail_on_data_loss: bool
    loss_report: str | None = None
    earliest: int | None = None


class RowRun(NamedTuple):
    """Consecutive rows of one batch."""

    header: BatchHeader
    row_count: int


class ScannedRows(NamedTuple):
    """Columns of rows, and their batches."""

    columns: ColumnBuffers
    runs: Sequence[RowRun]


def scan_rows(piece: RowRange, settings: ScanOptions) -> Iterator[ScannedRows]:
    """Read the rows of a range.

    Raises:
        DataLossError: Rows are missing, unless the settings allow it.
        KafkaError: A batch is damaged.
        OSError: Reading failed.
    """
    log = piece.place.log()
    aborted = _ByProducer(
        log.aborted(piece.from_offset, piece.end_offset) if settings.is_committed else ()
    )
    columns = RecordColumns(keys=settings.keys, values=settings.values, headers=settings.headers)
    runs: list[RowRun] = []

    def note(start: int, end: int) -> None:
        nonlocal piece
        # The batch at the end of a gap may contain deleted records.
        piece = piece._replace(from_offset=end)
        note_loss(settings.loss_report, LostRange(piece.topic, piece.partition, start, end))

    batches = log.batches(
        *(piece.from_offset, piece.end_offset),
        fail_on_data_loss=settings.fail_on_data_loss,
        on_loss=note,
    )
    for header, batch in batches:
        if not _is_wanted(header, settings, aborted):
            continue
        row_count = _add(columns, header, batch, piece)
        if row_count:
            runs.append(RowRun(header, row_count))
        if columns.row_count >= _MOST_ROWS or columns.byte_count >= _MOST_BYTES:
            yield ScannedRows(named(columns.take()), runs)
            runs = []
    if columns.row_count:
        yield ScannedRows(named(columns.take()), runs)


def _is_wanted(header: BatchHeader, settings: ScanOptions, aborted: _ByProducer) -> bool:
    if header.is_control:
        return settings.includes_control
    if settings.earliest is not None and 0 <= header.max_timestamp < settings.earliest:
        return False
    return not (header.is_transactional and aborted.holds(header))


def _add(columns: RecordColumns, header: BatchHeader, batch: memoryview, piece: RowRange) -> int:
    """Add a batch's records to columns; return how many are within the range."""
    records: Buffer = batch[HEADER_BYTES:]
    codec = header.codec
    if codec is not Codec.NONE:
        records = decompress(codec, records)
    row_count = columns.add(
        records,
        count=header.record_count,
        base_offset=header.base_offset,
        base_timestamp=header.base_timestamp,
        append_time=header.max_timestamp if header.uses_log_append_time else None,
        base_sequence=header.base_sequence,
        first_offset=piece.from_offset,
        end_offset=piece.end_offset,
    )
    if row_count < 0:
        raise invalid_record(
            f"the records of the batch at offset {header.base_offset} of {piece.place.path} "
            "are inconsistent"
        )
    return row_count


class _ByProducer:
    """Aborted transactions by producer."""

    __slots__ = ("_spans",)

    def __init__(self, aborted: Sequence[AbortedTransaction]) -> None:
        self._spans: dict[int, list[tuple[int, int]]] = {}
        for transaction in aborted:
            spans = self._spans.setdefault(transaction.producer_id, [])
            spans.append((transaction.first_offset, transaction.last_offset))

    def holds(self, header: BatchHeader) -> bool:
        spans = self._spans.get(header.producer_id, ())
        return any(first <= header.base_offset <= last for first, last in spans)
