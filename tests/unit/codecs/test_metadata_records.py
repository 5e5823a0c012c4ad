"""Metadata records: their frame, the written versions, and errors that stop a replay.

Apache Kafka 4.3.1's MetadataRecordSerde wrote the bytes; tests/java compares all kinds and
versions.
"""

from __future__ import annotations

import pytest

from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError
from wirebroker.codecs.metadata_records import (
    MetadataRecord,
    RecordType,
    decode_metadata_record,
    encode_metadata_record,
    metadata_record,
    record_message,
)

TOPIC_ID = bytes(range(16))
DIRECTORY = bytes(range(16, 32))

KAFKA_BYTES = {
    "topic": (
        metadata_record(RecordType.TOPIC, name="orders", topic_id=TOPIC_ID),
        "010200076f7264657273000102030405060708090a0b0c0d0e0f00",
    ),
    "partition": (
        metadata_record(
            RecordType.PARTITION,
            partition_id=2,
            topic_id=TOPIC_ID,
            replicas=[1],
            isr=[1],
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=[DIRECTORY],
        ),
        "01030200000002000102030405060708090a0b0c0d0e0f0200000001020000000101010000000100"
        "0000000000000002101112131415161718191a1b1c1d1e1f00",
    ),
    "partition change": (
        metadata_record(
            RecordType.PARTITION_CHANGE,
            partition_id=2,
            topic_id=TOPIC_ID,
            isr=[1],
            leader=1,
            directories=[DIRECTORY],
            last_known_elr=[1, 2],
        ),
        "01050200000002000102030405060708090a0b0c0d0e0f0400050200000001010400000001070903"
        "0000000100000002081102101112131415161718191a1b1c1d1e1f",
    ),
    "register broker": (
        metadata_record(
            RecordType.REGISTER_BROKER,
            broker_id=1,
            incarnation_id=TOPIC_ID,
            broker_epoch=7,
            end_points=[{"name": "PLAINTEXT", "host": "localhost", "port": 65535}],
            features=[{"name": "metadata.version", "max_supported_version": 30}],
            log_dirs=[DIRECTORY],
            cordoned_log_dirs=[],
        ),
        "0100040000000100000102030405060708090a0b0c0d0e0f0000000000000007020a504c41494e54"
        "4558540a6c6f63616c686f7374ffff00000002116d657461646174612e76657273696f6e0000001e"
        "0001010002001102101112131415161718191a1b1c1d1e1f010101",
    ),
    "config": (
        metadata_record(
            RecordType.CONFIG, resource_type=2, resource_name="orders", name="retention.ms"
        ),
        "01040002076f72646572730d726574656e74696f6e2e6d730100",
    ),
    "no-op": (metadata_record(RecordType.NO_OP), "01140000"),
}


@pytest.mark.parametrize(("record", "written"), KAFKA_BYTES.values(), ids=KAFKA_BYTES)
def test_records_have_the_bytes_that_kafka_writes(record: MetadataRecord, written: str) -> None:
    assert encode_metadata_record(record).hex() == written
    assert decode_metadata_record(bytes.fromhex(written)) == record


@pytest.mark.parametrize("record_type", list(RecordType))
def test_every_kind_in_every_version_survives_encoding(record_type: RecordType) -> None:
    message = record_message(record_type)
    assert message.number == record_type
    for version in message.versions:
        record = MetadataRecord(record_type, version, message.struct_class())
        assert decode_metadata_record(memoryview(encode_metadata_record(record))) == record


def test_records_are_written_at_the_versions_of_kafka_4_3() -> None:
    newest = {
        RecordType.REGISTER_BROKER: 4,
        RecordType.PARTITION: 2,
        RecordType.PARTITION_CHANGE: 2,
    }
    for record_type in RecordType:
        assert metadata_record(record_type).version == newest.get(record_type, 0)


def test_a_registration_change_has_the_lowest_version_that_carries_it() -> None:
    def version(**fields: object) -> int:
        return metadata_record(RecordType.BROKER_REGISTRATION_CHANGE, **fields).version

    assert version(fenced=-1) == 0
    assert version(in_controlled_shutdown=1) == 1
    assert version(log_dirs=[DIRECTORY]) == 2
    assert version(fenced=-1, cordoned_log_dirs=[]) == 3


def test_nested_mappings_are_structs_at_once() -> None:
    record = metadata_record(RecordType.REGISTER_BROKER, end_points=[{"name": "A", "port": 9092}])
    assert record.body.end_points[0].port == 9092


def test_an_unknown_field_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="topic_name"):
        metadata_record(RecordType.TOPIC, topic_name="orders")


@pytest.mark.parametrize("value", ["020000", "010600", "017f00", "010205", "01ff0100"])
def test_record_newer_than_supported_stops_the_replay(value: str) -> None:
    with pytest.raises(KafkaError) as raised:
        decode_metadata_record(bytes.fromhex(value) + bytes(20))
    assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("value", ["", "01", "0102", "010200", "01020002ff", "0114000000"])
def test_malformed_record_bytes_are_refused(value: str) -> None:
    with pytest.raises(MalformedFrameError):
        decode_metadata_record(bytes.fromhex(value))
