"""How a batch in the log changes what is known of its producer, at run and at load time alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.control_records import EndTransactionMarker, decode_control_record
from wirebroker.codecs.record_batch import iterate_records

if TYPE_CHECKING:
    from wirebroker.codecs.primitives import Buffer
    from wirebroker.codecs.record_batch import BatchHeader
    from wirebroker.storage.producer_state import CompletedTransaction, ProducerState

# A control batch holds one record of a few bytes; more is no transaction marker.
_MAX_MARKER_BYTES: Final = 64 * 1024


def apply_batch(
    state: ProducerState, header: BatchHeader, batch: Buffer
) -> CompletedTransaction | None:
    """Take a batch into the state; its sequences are not checked, its first appender has done that.

    Args:
        state: Of the log that the batch is in.
        header: With its final offsets.
        batch: The whole batch; only read if it is a transaction marker.

    Returns:
        The transaction that it ends, if it does.

    Raises:
        KafkaError: INVALID_RECORD or CORRUPT_MESSAGE: a marker that cannot be read.
    """
    completed = None
    if header.producer_id >= 0:
        if header.is_control:
            completed = _apply_marker(state, header, batch)
        else:
            state.append(header)
    state.end_offset = header.last_offset + 1
    return completed


def _apply_marker(
    state: ProducerState, header: BatchHeader, batch: Buffer
) -> CompletedTransaction | None:
    # A batch without records is a marker that compaction has emptied: its transaction is gone.
    for record in iterate_records(batch, header, max_bytes=_MAX_MARKER_BYTES):
        marker = decode_control_record(record.key, record.value)
        if isinstance(marker, EndTransactionMarker):
            return state.end_transaction(
                header,
                is_abort=not marker.is_commit,
                coordinator_epoch=marker.coordinator_epoch,
                timestamp_ms=record.timestamp,
            )
    return None
