"""A log in a test's directory, and shortcuts to fill and read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.codecs.records.batch import build_batch
from wirebroker.config.rows.topic import TopicSettings
from wirebroker.storage.files import Files
from wirebroker.storage.log.log import Log

if TYPE_CHECKING:
    from wirebroker.storage.log.append import AppendResult

NOW = 1_700_000_000_000


def make_log(directory: object, **settings: Any) -> Log:
    return Log(
        str(directory),
        Files(),
        topic="topic",
        partition=3,
        topic_id=bytes(16),
        settings=TopicSettings(**settings),
    )


def commit_all(log: Log) -> None:
    """Advance the high watermark to the end and check the log's invariants."""
    log.set_high_watermark(log.log_end_offset)
    log.check()


def batch(
    count: int = 1, *, value: bytes = b"v", timestamp_ms: int = NOW, **batch_fields: Any
) -> memoryview:
    records = [(b"k", value, ())] * count
    return memoryview(build_batch(records, timestamp_ms=timestamp_ms, **batch_fields))


def append(
    log: Log,
    records: memoryview | None = None,
    *,
    leader_epoch: int = 0,
    now_ms: int = NOW,
    **options: Any,
) -> AppendResult:
    if records is None:
        records = batch()
    result = log.append_as_leader(records, leader_epoch=leader_epoch, now_ms=now_ms, **options)
    commit_all(log)
    return result


def fields_of(result: AppendResult | None) -> tuple[int, int, int, int, bool]:
    """Return (base offset, last offset, append time, log start, is a duplicate)."""
    assert result is not None
    return (
        result.base_offset,
        result.last_offset,
        result.log_append_time_ms,
        result.log_start_offset,
        result.is_duplicate,
    )


def read_all(log: Log, offset: int = 0) -> bytes:
    """Read from `offset` to the end of its segment."""
    file_slice = log.read(offset, 1 << 20, up_to_offset=log.log_end_offset).slice
    return b"" if file_slice is None else file_slice.read()
