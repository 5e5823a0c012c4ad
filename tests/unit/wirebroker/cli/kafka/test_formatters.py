"""Output of the console consumer for bytes and records of internal topics."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from compiling.messages.definitions import all_schemas
from wirebroker.cli.kafka.formatters.deserializers import deserializer_of, double_text, float_text
from wirebroker.cli.kafka.formatters.internal_records import (
    GROUPS,
    OFFSETS,
    SHARE_GROUPS,
    SHARE_STATES,
    TRANSACTIONS,
)
from wirebroker.cli.kafka.formatters.named_formatters import FORMATTERS, RecordPrinter, formatter_of
from wirebroker.cli.kafka.formatters.record_json import (
    OFFSET_TOPIC_FORMS,
    SHARE_STATE_FORMS,
    TRANSACTION_FORMS,
)
from wirebroker.client.errors import ClientError
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.codecs.coordinator_records import (
    CommittedOffset,
    group_metadata_record,
    offset_commit_record,
)
from wirebroker.codecs.group_records import (
    GroupRecordKind,
    WholeGroupKey,
    group_record,
    group_record_message,
)
from wirebroker.codecs.message import load_message
from wirebroker.codecs.records.record import Record
from wirebroker.codecs.share_state_records import (
    ShareStateKey,
    ShareStateKind,
    share_state_message,
    share_state_record,
)
from wirebroker.codecs.transaction_records import encode_transaction_value, transaction_key

if TYPE_CHECKING:
    from compiling.messages.schema import Field, StructSchema
    from wirebroker.cli.kafka.formatters.internal_records import InternalRecords

PLACE = TopicPartition("t", 0)
OFFSET_KEY = b"\0\1\0\1g\0\1t\0\0\0\2"


def record(key: bytes | None, value: bytes | None) -> Record:
    return Record(7, 1000, key, value, [])


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (-1.5, "-1.5"),
        (0.1, "0.1"),
        (1e-5, "1.0E-5"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (1234567.0, "1234567.0"),
        (9999999.5, "9999999.5"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (100.0, "100.0"),
        (1e23, "1.0E23"),
        (5e-324, "4.9E-324"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (1 / 3, "0.3333333333333333"),
    ],
)
def test_doubles_are_printed_as_by_java(number: float, text: str) -> None:
    assert double_text(number) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.1, "0.1"),
        (1e-5, "1.0E-5"),
        (16777216.0, "1.6777216E7"),
        (3.4028235e38, "3.4028235E38"),
        (1.4e-45, "1.4E-45"),
        (1 / 3, "0.33333334"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (123.456, "123.456"),
    ],
)
def test_floats_are_printed_as_by_java(number: float, text: str) -> None:
    (single,) = struct.unpack(">f", struct.pack(">f", number))
    assert float_text(single) == text


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("BooleanDeserializer", b"\1", b"true"),
        ("BooleanDeserializer", b"\0", b"false"),
        ("ShortDeserializer", b"\xff\xfe", b"-2"),
        ("FloatDeserializer", struct.pack(">f", 0.1), b"0.1"),
        ("DoubleDeserializer", struct.pack(">d", 1e-5), b"1.0E-5"),
        ("StringDeserializer", b"a\xed\xa0\x80b\xff", "a\ufffdb\ufffd".encode()),
        ("BytesDeserializer", b"a\\ \x7f\xff", rb"a\x5C \x7F\xFF"),
        ("ByteArrayDeserializer", b"\xff", b"\xff"),
        ("ByteBufferDeserializer", b"ab", b"java.nio.HeapByteBuffer[pos=0 lim=2 cap=2]"),
        ("VoidDeserializer", None, b"null"),
        (None, b"\xff", b"\xff"),
    ],
)
def test_deserializers_print_the_same_as_kafkas(
    name: str | None, data: bytes | None, text: bytes
) -> None:
    assert deserializer_of(name, b"null")(data) == text
    if name is not None:
        full_name = f"org.apache.kafka.common.serialization.{name}"
        assert deserializer_of(full_name, b"null")(data) == text


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("DoubleDeserializer", b"1", "Size of data received by DoubleDeserializer is not 8"),
        ("BooleanDeserializer", b"\2", "Unexpected byte received by BooleanDeserializer: 2"),
        ("VoidDeserializer", b"", "Data should be null for a VoidDeserializer."),
        ("UUIDDeserializer", b"x", "Error parsing data into UUID"),
    ],
)
def test_deserializers_refuse_the_same_as_kafkas(name: str, data: bytes, message: str) -> None:
    with pytest.raises(ClientError) as refused:
        deserializer_of(name, b"null")(data)
    assert str(refused.value) == message


def test_a_class_that_is_not_known_is_reported_and_prints_bytes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert deserializer_of("com.example.Json", b"null")(b"{}") == b"{}"
    stderr = capsys.readouterr().err
    assert "Unable to instantiate a deserializer from com.example.Json" in stderr


@pytest.mark.parametrize(
    ("chosen", "line"),
    [
        ("print.epoch print.delivery", b"Delivery:NOT_PRESENT\tEpoch:NOT_PRESENT\tv\n"),
        (
            "print.key print.headers print.epoch print.delivery print.offset print.partition"
            " print.timestamp",
            b"CreateTime:1000\tPartition:0\tOffset:7\tDelivery:NOT_PRESENT\tEpoch:NOT_PRESENT\t"
            b"NO_HEADERS\tk\tv\n",
        ),
        ("print.anything", b"v\n"),
    ],
)
def test_record_parts_are_printed_in_kafkas_order(chosen: str, line: bytes) -> None:
    printer = RecordPrinter(dict.fromkeys(chosen.split(), "true"))
    assert printer.line_of(PLACE, record(b"k", b"v"), "CreateTime") == line


def test_nothing_is_printed_if_no_part_is_selected() -> None:
    printer = RecordPrinter({"print.value": "false"})
    assert printer.line_of(PLACE, record(b"k", b"v"), "CreateTime") == b""


def test_each_formatter_has_its_name() -> None:
    names = [name.rpartition(".")[2] for name in FORMATTERS]
    assert names == [
        "DefaultMessageFormatter",
        "DefaultMessageFormatter",
        "LoggingMessageFormatter",
        "NoOpMessageFormatter",
        "OffsetsMessageFormatter",
        "GroupMetadataMessageFormatter",
        "TransactionLogMessageFormatter",
        "ShareGroupMessageFormatter",
        "ShareGroupStateMessageFormatter",
    ]
    printed = [
        formatter_of(name, {})(PLACE, record(OFFSET_KEY, None), "CreateTime")
        for name in FORMATTERS[:-1]
    ]
    tombstone = b'{"key":{"type":1,"data":{"group":"g","topic":"t","partition":2}},"value":null}'
    assert printed == [b"null\n", b"null\n", b"null\n", b"", tombstone, b"", b"", b""]
    share_state = record(b"\0\1\0\1g" + bytes(20), None)
    assert formatter_of(FORMATTERS[-1], {})(PLACE, share_state, "CreateTime") == (
        b'{"key":{"type":1,"data":{"groupId":"g","topicId":"AAAAAAAAAAAAAAAAAAAAAA","partition":0}},'
        b'"value":null}'
    )


def shown(kind: InternalRecords, key: bytes | None, value: bytes | None) -> str:
    return kind.line_of(PLACE, record(key, value), "CreateTime").decode()


def test_committed_offsets_are_printed_as_by_kafka() -> None:
    key = '{"key":{"type":1,"data":{"group":"g","topic":"t","partition":2}},'
    topic_id = bytes.fromhex("ab1c48fc5b2a7841228a2def1edfad1f")
    record = offset_commit_record("g", "t", 2, CommittedOffset(5, -1, "é", 99, topic_id=topic_id))
    assert shown(OFFSETS, record.key, record.value) == (
        f'{key}"value":{{"version":4,"data":{{"offset":5,"leaderEpoch":-1,"metadata":"é",'
        '"commitTimestamp":99,"topicId":"qxxI_FsqeEEiii3vHt-tHw"}}}'
    )
    record = offset_commit_record("g", "t", 2, CommittedOffset(5, -1, "", 99))
    assert shown(OFFSETS, record.key, record.value).endswith('"commitTimestamp":99}}}')
    record = offset_commit_record("g", "t", 2, CommittedOffset(5, -1, "", 99, 199))
    assert shown(OFFSETS, record.key, record.value) == (
        f'{key}"value":{{"version":1,"data":{{"offset":5,"metadata":"","commitTimestamp":99,'
        '"expireTimestamp":199}}}'
    )


def test_groups_are_printed_as_by_kafka() -> None:
    member = {
        "member_id": "m",
        "group_instance_id": None,
        "client_id": "c",
        "client_host": "/127.0.0.1",
        "rebalance_timeout": 300000,
        "session_timeout": 45000,
        "subscription": b"\0\3",
        "assignment": b"",
    }
    record = group_metadata_record(
        "g",
        protocol_type="consumer",
        generation=1,
        protocol="range",
        leader="m",
        current_state_timestamp=99,
        members=[member],
    )
    key = '{"key":{"type":2,"data":{"group":"g"}},'
    assert shown(GROUPS, record.key, record.value) == (
        f'{key}"value":{{"version":3,"data":{{"protocolType":"consumer","generation":1,'
        '"protocol":"range","leader":"m","currentStateTimestamp":99,"members":[{"memberId":"m",'
        '"groupInstanceId":null,"clientId":"c","clientHost":"/127.0.0.1",'
        '"rebalanceTimeout":300000,"sessionTimeout":45000,"subscription":"AAM=",'
        '"assignment":""}]}}}'
    )
    del member["group_instance_id"], member["rebalance_timeout"]
    fields = {"protocol_type": "", "generation": 0, "protocol": None, "leader": None}
    old = load_message("group_metadata_value").encode(0, {**fields, "members": [member]})
    assert shown(GROUPS, record.key, b"\0\0" + old) == (
        f'{key}"value":{{"version":0,"data":{{"protocolType":"","generation":0,"protocol":null,'
        '"leader":null,"members":[{"memberId":"m","clientId":"c","clientHost":"/127.0.0.1",'
        '"sessionTimeout":45000,"subscription":"AAM=","assignment":""}]}}}'
    )


def test_transactions_are_printed_as_by_kafka() -> None:
    value = encode_transaction_value(
        1,
        producer_id=1,
        previous_producer_id=1,
        producer_epoch=0,
        transaction_timeout_ms=60000,
        transaction_status=1,
        transaction_partitions=[{"topic": "t", "partition_ids": [0]}],
        transaction_last_update_timestamp_ms=99,
        transaction_start_timestamp_ms=98,
        client_transaction_version=2,
    )
    assert shown(TRANSACTIONS, transaction_key("tx"), value) == (
        '{"key":{"type":0,"data":{"transactionalId":"tx"}},"value":{"version":1,"data":{'
        '"producerId":1,"previousProducerId":1,"producerEpoch":0,"transactionTimeoutMs":60000,'
        '"transactionStatus":"Ongoing","transactionPartitions":[{"topic":"t","partitionIds":[0]}],'
        '"transactionLastUpdateTimestampMs":99,"transactionStartTimestampMs":98,'
        '"clientTransactionVersion":2}}}'
    )


def test_share_groups_are_printed_as_by_kafka() -> None:
    metadata = WholeGroupKey(GroupRecordKind.SHARE_GROUP_METADATA, "g")
    record = group_record(metadata, epoch=3, metadata_hash=-5)
    assert shown(SHARE_GROUPS, record.key, record.value) == (
        '{"key":{"type":11,"data":{"groupId":"g"}},"value":{"version":0,"data":{"epoch":3,'
        '"metadataHash":-5}}}'
    )
    of_consumers = WholeGroupKey(GroupRecordKind.CONSUMER_GROUP_METADATA, "g")
    assert shown(SHARE_GROUPS, *group_record(of_consumers)) == ""
    key = ShareStateKey(ShareStateKind.SHARE_UPDATE, "g", bytes(16), 1)
    record = share_state_record(key, start_offset=7)
    assert shown(SHARE_STATES, record.key, record.value) == (
        '{"key":{"type":1,"data":{"groupId":"g","topicId":"AAAAAAAAAAAAAAAAAAAAAA","partition":1}},'
        '"value":{"version":0,"data":{"snapshotEpoch":0,"leaderEpoch":0,"startOffset":7,'
        '"stateBatches":[]}}}'
    )


@pytest.mark.parametrize("kind", [OFFSETS, GROUPS, TRANSACTIONS, SHARE_GROUPS, SHARE_STATES])
def test_other_records_are_left_out_and_broken_ones_refused(kind: InternalRecords) -> None:
    assert shown(kind, None, b"v") == ""
    assert shown(kind, b"\0\x63rest", b"v") == ""
    with pytest.raises(ClientError, match=r"^Could not read record at offset 7 due to: Could not"):
        shown(kind, b"k", b"v")
    for number in kind.forms:
        with pytest.raises(ClientError, match=r"^Could not read record at offset 7 due to: "):
            shown(kind, struct.pack(">h", number) + b"\0\1", b"v")


FORMS = {
    "OffsetCommitValue": OFFSET_TOPIC_FORMS[1],
    "GroupMetadataValue": OFFSET_TOPIC_FORMS[2],
    "TransactionLogValue": TRANSACTION_FORMS[0],
    **{group_record_message(kind).name: OFFSET_TOPIC_FORMS[kind] for kind in GroupRecordKind},
    **{share_state_message(kind).name: SHARE_STATE_FORMS[kind] for kind in ShareStateKind},
}


@pytest.mark.parametrize("name", FORMS)
def test_formatter_defaults_and_versions_match_the_schemas(name: str) -> None:
    form = FORMS[name]
    (schema,) = [schema for schema in all_schemas() if schema.name == name]
    fields = list(_fields(schema.body))
    tagged = {field.name: _default(field) for field in fields if field.tagged_versions.last >= 0}
    assert tagged == dict(form.defaults)
    # Uuids are known by this name.
    assert {field.name for field in fields if field.type == "uuid"} <= {"topic_id"}
    last = schema.versions.last
    for field in fields:
        if field.name in tagged:
            continue
        served = form.versions.get(field.name, range(1 << 15))
        for version in range(last + 1):
            assert (version in served) == (field.versions.first <= version <= field.versions.last)


def _default(field: Field) -> object:
    if field.is_array:
        return []
    if field.struct is not None:
        return {inner.name: _default(inner) for inner in field.struct.fields}
    return bytes(16) if field.default is None else field.default


def _fields(body: StructSchema) -> list[Field]:
    fields = list(body.fields)
    for field in body.fields:
        if field.struct is not None:
            fields += _fields(field.struct)
    return fields
