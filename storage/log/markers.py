"""The end of a transaction in one partition: a control batch that this broker writes.

    batch  := transactional, control, the producer's id and epoch, no sequence, one record
    record := ABORT or COMMIT (codecs/records/control.py)

A marker is written even where the transaction has no records: it fences the producer's older
epochs. Source: Kafka's MemoryRecords.withEndTransactionMarker, ProducerAppendInfo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.records.batch import build_batch
from wirebroker.codecs.records.control import EndTransactionMarker, encode_control_record
from wirebroker.storage.log.append import AppendOrigin

if TYPE_CHECKING:
    from wirebroker.storage.log.append import AppendPlan, AppendResult
    from wirebroker.storage.log.log import Log


def prepare_end_marker(
    log: Log,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    is_commit: bool,
    transaction_version: int,
    leader_epoch: int,
    now_ms: int,
) -> AppendPlan:
    """Check the end of a transaction and build its batch; changes nothing.

    Args:
        log: Nobody appends to it until the plan is written and committed.
        producer_id: Whose transaction ends.
        producer_epoch: The marker's; see ProducerState.check_marker.
        coordinator_epoch: Leader epoch of the coordinator's partition.
        is_commit: Whether its records count.
        transaction_version: The feature's level that the transaction is ended by.
        leader_epoch: Under which this replica leads.
        now_ms: The time now.

    Raises:
        KafkaError: INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED.
    """
    log.producer_state.check_marker(
        producer_id,
        producer_epoch=producer_epoch,
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
    )
    key, value = encode_control_record(EndTransactionMarker(is_commit, coordinator_epoch))
    is_stamped = log.settings.message_timestamp_type == "LogAppendTime"
    batch = build_batch(
        [(key, value, ())],
        timestamp_ms=now_ms,
        log_append_time_ms=now_ms if is_stamped else None,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )
    return log.prepare_append(
        memoryview(batch),
        leader_epoch=leader_epoch,
        now_ms=now_ms,
        origin=AppendOrigin.COORDINATOR,
    )


def append_end_marker(
    log: Log,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    is_commit: bool,
    transaction_version: int,
    leader_epoch: int,
    now_ms: int,
) -> AppendResult:
    """Do prepare_end_marker, write and commit at once.

    Raises:
        KafkaError: As prepare_end_marker. OSError as Log.write.
    """
    plan = prepare_end_marker(
        log,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        coordinator_epoch=coordinator_epoch,
        is_commit=is_commit,
        transaction_version=transaction_version,
        leader_epoch=leader_epoch,
        now_ms=now_ms,
    )
    log.write(plan)
    return log.commit(plan)
