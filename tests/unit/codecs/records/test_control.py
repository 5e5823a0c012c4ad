import pytest

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.control import (
    ControlRecord,
    ControlType,
    EndTransactionMarker,
    KRaftVersion,
    KRaftVoters,
    LeaderChange,
    QuorumVoter,
    SnapshotFooter,
    SnapshotHeader,
    Voter,
    VoterEndpoint,
    control_type,
    decode_control_record,
    encode_control_record,
)

DIRECTORY_ID = bytes(range(16))

RECORDS: list[tuple[ControlRecord, str, str]] = [
    (EndTransactionMarker(False, 5), "00000000", "000000000005"),
    (EndTransactionMarker(True, -1), "00000001", "0000ffffffff"),
    # As Apache Kafka 4.3.1 writes it with kraft.version 0.
    (
        LeaderChange(1, (QuorumVoter(1),), (QuorumVoter(1),)),
        "00000002",
        "000000000001" + "020000000100" + "020000000100" + "00",
    ),
    (
        LeaderChange(3, (QuorumVoter(3, DIRECTORY_ID),), (), version=1),
        "00000002",
        "000100000003" + "0200000003" + DIRECTORY_ID.hex() + "00" + "01" + "00",
    ),
    (SnapshotHeader(1_700_000_000_000), "00000003", "00000000018bcfe5680000"),
    (SnapshotFooter(), "00000004", "000000"),
    (KRaftVersion(1), "00000005", "0000000100"),
    (
        KRaftVoters((Voter(1, DIRECTORY_ID, (VoterEndpoint("C", "host", 65535),), 0, 1),)),
        "00000006",
        "0000"
        + "0200000001"
        + DIRECTORY_ID.hex()
        + "02024305686f7374ffff00"
        + "000000010000"
        + "00",
    ),
]


@pytest.mark.parametrize(("record", "key", "value"), RECORDS)
def test_every_kind_has_kafka_s_bytes(record: ControlRecord, key: str, value: str) -> None:
    assert encode_control_record(record) == (bytes.fromhex(key), bytes.fromhex(value))
    assert decode_control_record(bytes.fromhex(key), bytes.fromhex(value)) == record


@pytest.mark.parametrize(("record", "key", "value"), RECORDS)
def test_a_value_that_is_cut_off_is_refused(record: ControlRecord, key: str, value: str) -> None:
    data = bytes.fromhex(value)
    # The last byte, a section of tagged fields, is not needed to parse a record.
    for length in range(len(data) - 1):
        with pytest.raises(KafkaError) as caught:
            decode_control_record(bytes.fromhex(key), data[:length])
        assert caught.value.code is ErrorCode.INVALID_RECORD


def test_unknown_later_type_is_ignored() -> None:
    assert control_type(b"\x00\x00\x00\x07") is None
    assert control_type(b"\x00\x00\xff\xff") is None
    assert decode_control_record(b"\x00\x00\x00\x07", None) is None
    # A later version of the key only adds fields.
    assert control_type(b"\x00\x01\x00\x02??") is ControlType.LEADER_CHANGE


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x00"])
def test_invalid_control_key_is_refused(key: bytes | None) -> None:
    with pytest.raises(KafkaError):
        control_type(key)


def test_a_known_type_without_a_value_is_refused() -> None:
    with pytest.raises(KafkaError):
        decode_control_record(b"\x00\x00\x00\x01", None)
