"""Any batch that a leader accepts, whatever its payload, is readable to its end by every reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.record.default_records import DefaultRecordBatch

from tests.property.test_hot_twins import damage, some_payload
from tests.support.harness.budget import SharedBudget
from tests.support.records.batches import TIMESTAMP_MS
from tests.transcripts.raw_records import batch_of
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.primitives import read_varint
from wirebroker.codecs.records.batch import batch_crc, iterate_records, read_batch_header
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.compression import compress, decompress
from wirebroker.codecs.records.decompression_limits import MAX_DECOMPRESSED_BYTES
from wirebroker.codecs.records.layout import HEADER_BYTES, LOG_APPEND_TIME_FLAG
from wirebroker.config.rows.topic import TopicSettings
from wirebroker.storage.log.validation.batch_shape import RefusedBatchError
from wirebroker.storage.log.validation.batch_validation import BatchValidator
from wirebroker.storage.long_work import TakesLongError

if TYPE_CHECKING:
    from random import Random

    import pytest

    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.codecs.records.record import Record

# Errors that name the fault; the last says only that decompression failed.
REFUSALS = {
    ErrorCode.INVALID_RECORD,
    ErrorCode.INVALID_TIMESTAMP,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
}
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"compression_type": "lz4"},
    {"compression_type": "uncompressed"},
    {"cleanup_policy": ("compact",)},
    {"message_timestamp_type": "LogAppendTime"},
)


def some_batch(random: Random) -> bytes:
    payload, count = some_payload(random)
    codec = random.choice(list(Codec))
    packed = bytearray(compress(codec, payload))
    if packed and random.random() < 0.3:
        damage(random, packed)
    if random.random() < 0.1:
        codec = random.choice(list(Codec))
    return batch_of(
        codec=codec.name,
        packed=bytes(packed),
        count=count,
        max_timestamp=random.choice((TIMESTAMP_MS, TIMESTAMP_MS + 1, -1)),
        attributes=random.choice((0, 0, 0, 8)),
    )


def test_accepted_batches_are_readable_to_their_end(pytestconfig: pytest.Config) -> None:
    budget = SharedBudget(pytestconfig, seconds=6)
    random = budget.random
    counts = {True: 0, False: 0}
    for _ in budget.rounds():
        batch = bytearray(some_batch(random))
        is_stamped = bool(batch[22] & LOG_APPEND_TIME_FLAG)
        settings = random.choice(SETTINGS)
        validator = BatchValidator(TopicSettings(**settings), directory="data/orders-0")
        try:
            records, header = validator.validate(
                memoryview(batch),
                now_ms=TIMESTAMP_MS,
                request_version=13,
                is_brief=random.random() < 0.5,
            )
        except RefusedBatchError as error:
            counts[False] += 1
            if error.code in REFUSALS:
                continue
            raise
        except TakesLongError:
            continue
        counts[True] += 1
        stored = bytes(records)
        case = (stored.hex(), settings, budget.seed)
        assert header == read_batch_header(stored), case
        assert batch_crc(memoryview(stored), 0, len(stored)) == header.crc, case
        read = list(iterate_records(stored, header))
        assert [record.offset for record in read] == list(range(header.record_count)), case
        if suits_kafka_python(header, stored, read):
            plain = [(record.offset, record.key, record.value) for record in read]
            assert as_kafka_python_reads(stored) == plain, case
        if not header.uses_log_append_time and not is_stamped:
            assert header.max_timestamp == max(-1, *(record.timestamp for record in read)), case
    assert all(counts.values()) or sum(counts.values()) < 50, counts


def as_kafka_python_reads(batch: bytes) -> list[tuple[int, bytes | None, bytes | None]]:
    """Return offset, key and value of each record."""
    decoded = DefaultRecordBatch(batch)
    assert decoded.validate_crc()
    return [(record.offset, record.key, record.value) for record in decoded]


def suits_kafka_python(header: BatchHeader, batch: bytes, read: list[Record]) -> bool:
    """Return whether kafka-python can read a batch.

    It requires, unlike Kafka, text as header names, and (meaningless) record attributes below 128.
    """
    if not all(name.isascii() for record in read for name, _ in record.headers):
        return False
    payload = decompress(header.codec, batch[HEADER_BYTES:], max_bytes=MAX_DECOMPRESSED_BYTES)
    position = 0
    while position < len(payload):
        length, position = read_varint(payload, position)
        if payload[position] >= 0x80:
            return False
        position += length
    return True
