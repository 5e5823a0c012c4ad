"""Transaction markers: control batches that end a transaction in one partition.

A transaction without records has one as well, to fence the producer's older epochs.

Source: Kafka's MemoryRecords.withEndTransactionMarker, ProducerAppendInfo.
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
    """Validate the end of a transaction and build its marker; see Log.prepare_append.

    `coordinator_epoch` is the leader epoch of the coordinator's partition.

    Raises:
        KafkaError: As ProducerState.check_marker.
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
    """Prepare, write and commit a transaction marker."""
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
