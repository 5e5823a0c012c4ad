"""Random record batches: round trips, comparison with kafka-python, and damage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from tests.support.harness.budget import SharedBudget
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import (
    batch_crc,
    build_batch,
    iterate_batches,
    iterate_records,
    read_batch_header,
    write_crc,
)
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.compression import compress, decompress
from wirebroker.codecs.records.record import Record

if TYPE_CHECKING:
    from random import Random

    import pytest

FAULTS = {
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.INVALID_RECORD,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
}
LIMIT = 1 << 22
KEYS = ("", "h", "ключ", "k" * 100)


def some_bytes(random: Random) -> bytes | None:
    length = random.choice((None, 0, 1, 63, 64, 300, 9000))
    return None if length is None else random.choice((b"a" * length, random.randbytes(length)))


def some_records(random: Random, *, base_offset: int = 0, with_gaps: bool = True) -> list[Record]:
    records: list[Record] = []
    offset = base_offset - 1
    timestamp = random.randrange(1 << 41)
    for _ in range(random.choice((1, 1, 2, 5, 200))):
        offset += random.choice((1, 1, 1, 70, 20_000)) if with_gaps else 1
        timestamp += random.choice((0, 1, -1, 64, -9000, 1 << 33))
        headers = tuple(
            (random.choice(KEYS), some_bytes(random)) for _ in range(random.choice((0, 0, 1, 3)))
        )
        records.append(
            Record(offset, max(0, timestamp), some_bytes(random), some_bytes(random), headers)
        )
    return records


def as_read(record: Record) -> tuple[object, ...]:
    return (*record[:4], tuple(record.headers))


def test_built_batch_is_read_back(pytestconfig: pytest.Config) -> None:
    budget = SharedBudget(pytestconfig, seconds=3)
    random = budget.random
    for _ in budget.rounds():
        base_offset = random.choice((0, 1, 1 << 40))
        records = some_records(random, base_offset=base_offset)
        codec = random.choice(list(Codec))
        batch = build_batch(records, base_offset=base_offset, leader_epoch=3, codec=codec)
        ((position, header),) = iterate_batches(batch)
        assert (position, header.size, header.codec) == (0, len(batch), codec)
        assert header.crc == batch_crc(memoryview(batch), 0, header.size)
        assert (header.base_offset, header.last_offset) == (base_offset, records[-1].offset)
        assert header.max_timestamp == max(record.timestamp for record in records)
        read = list(iterate_records(batch, header, max_bytes=LIMIT))
        assert [as_read(record) for record in read] == [as_read(record) for record in records]
        assert build_batch(read, base_offset=base_offset, leader_epoch=3, codec=codec) == batch


def test_kafka_python_builds_the_same_batch_and_reads_ours(pytestconfig: pytest.Config) -> None:
    budget = SharedBudget(pytestconfig, seconds=3)
    random = budget.random
    for _ in budget.rounds():
        records = some_records(random, with_gaps=False)
        builder = DefaultRecordBatchBuilder(2, 0, True, 7, 1, 5, 1 << 30)
        for record in records:
            headers = [(key, value or b"") for key, value in record.headers]
            appended = builder.append(
                record.offset, record.timestamp, record.key, record.value, headers
            )
            assert appended is not None
        records = [
            record._replace(headers=[(key, value or b"") for key, value in record.headers])
            for record in records
        ]
        batch = build_batch(
            records, producer_id=7, producer_epoch=1, base_sequence=5, is_transactional=True
        )
        kafka_python_batch = bytes(builder.build())
        # The leader sets the leader epoch: kafka-python writes 0, Java's producer -1.
        assert batch[:12] + bytes(4) + batch[16:] == kafka_python_batch, budget.seed
        # kafka-python's snappy needs another package; tests/unit has Java's batches.
        codec = random.choice([codec for codec in Codec if codec is not Codec.SNAPPY])
        packed = DefaultRecordBatch(bytes(build_batch(records, codec=codec)))
        assert packed.validate_crc()
        assert [
            (row.offset, row.timestamp, row.key, row.value, tuple(row.headers)) for row in packed
        ] == [as_read(record) for record in records], budget.seed


def test_any_changed_byte_after_the_crc_changes_the_crc(pytestconfig: pytest.Config) -> None:
    budget = SharedBudget(pytestconfig, seconds=1)
    random = budget.random
    for _ in budget.rounds():
        batch = build_batch(some_records(random)[:5])
        header = read_batch_header(batch)
        batch[random.randrange(21, len(batch))] ^= 1 << random.randrange(8)
        assert batch_crc(memoryview(batch), 0, header.size) != header.crc


def walked(batch: bytearray) -> tuple[int, ErrorCode | None]:
    """Walk all batches and records with corrected CRCs; return their number and the fault."""
    count = 0
    try:
        for position, header in iterate_batches(batch):
            write_crc(batch, position)
            part = memoryview(batch)[position:]
            for _record in iterate_records(part, header, max_bytes=LIMIT):
                count += 1
    except KafkaError as error:
        return count, error.code
    return count, None


def test_damaged_batch_is_read_or_refused(
    pytestconfig: pytest.Config,
) -> None:
    budget = SharedBudget(pytestconfig, seconds=4)
    random = budget.random
    read = refused = 0
    for _ in budget.rounds():
        codec = random.choice(list(Codec))
        valid_batch = build_batch(some_records(random)[:20], codec=codec)
        for _ in range(20):
            batch = bytearray(valid_batch)
            for _ in range(random.choice((1, 1, 4))):
                position = random.choice((random.randrange(len(batch)), random.randrange(16, 100)))
                batch[position % len(batch)] = random.choice(
                    (0, 1, 0x7F, 0x80, 0xFF, random.randrange(256))
                )
            if random.random() < 0.2:
                del batch[random.randrange(len(batch)) :]
            count, fault = walked(batch)
            assert fault is None or fault in FAULTS, f"{bytes(batch)!r} {budget.seed=}"
            read += count
            refused += fault is not None
    assert refused


def test_damaged_compressed_data_is_read_or_refused_and_stays_in_bounds(
    pytestconfig: pytest.Config,
) -> None:
    budget = SharedBudget(pytestconfig, seconds=3)
    random = budget.random
    for _ in budget.rounds():
        codec = random.choice((Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD))
        payload = random.choice((b"", b"abc" * random.randrange(20_000), random.randbytes(500)))
        data = bytearray(compress(codec, payload))
        for _ in range(random.choice((1, 2, 10))):
            data[random.choice((random.randrange(len(data)), random.randrange(20) % len(data)))] = (
                random.randrange(256)
            )
        if random.random() < 0.2:
            del data[random.randrange(len(data)) :]
        max_bytes = random.choice((0, 100, 70_000))
        decompressed(codec, data, max_bytes)


def decompressed(codec: Codec, data: bytearray, max_bytes: int) -> bytes | None:
    try:
        result = decompress(codec, data, max_bytes=max_bytes)
    except KafkaError as error:
        if error.code not in FAULTS:
            raise
        return None
    assert len(result) <= max_bytes
    return result
