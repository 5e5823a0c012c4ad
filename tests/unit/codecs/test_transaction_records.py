"""The records of `__transaction_state`: recorded bytes, and round trips of every value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError
from wirebroker.codecs.transaction_records import (
    decode_transaction_key,
    decode_transaction_value,
    encode_transaction_value,
    transaction_key,
)

INT16, INT32, INT64 = (st.integers(-(1 << n), (1 << n) - 1) for n in (15, 31, 63))
PARTITIONS = st.one_of(
    st.none(),
    st.lists(
        st.fixed_dictionaries(
            {"topic": st.text(max_size=9), "partition_ids": st.lists(INT32, max_size=4)}
        ),
        max_size=3,
    ),
)
FIELDS = {
    "producer_id": INT64,
    "producer_epoch": INT16,
    "transaction_timeout_ms": INT32,
    "transaction_status": st.integers(-128, 127),
    "transaction_partitions": PARTITIONS,
    "transaction_last_update_timestamp_ms": INT64,
    "transaction_start_timestamp_ms": INT64,
}
TAGGED = {
    "previous_producer_id": INT64,
    "next_producer_id": INT64,
    "client_transaction_version": INT16,
}
VALUE = {
    "producer_id": 5,
    "producer_epoch": 3,
    "transaction_timeout_ms": 60_000,
    "transaction_status": 1,
    "transaction_partitions": [{"topic": "t", "partition_ids": [1, 2]}],
    "transaction_last_update_timestamp_ms": 1,
    "transaction_start_timestamp_ms": 2,
}


@given(st.text(max_size=40))
def test_a_key_is_read_as_it_was_written(transactional_id):
    assert decode_transaction_key(transaction_key(transactional_id)) == transactional_id


def test_key_of_another_record_type_is_recognized():
    assert decode_transaction_key(b"\x00\x01\x00\x00") is None


@pytest.mark.parametrize("key", [b"", b"\x00", b"\x00\x00\x00\x05abc", b"\x00\x00\x00\x01\xff"])
def test_a_key_that_does_not_fit_is_refused(key):
    with pytest.raises(MalformedFrameError):
        decode_transaction_key(key)


@given(st.fixed_dictionaries(FIELDS))
def test_a_value_of_version_0_is_read_as_it_was_written(fields):
    _assert_same(fields, decode_transaction_value(encode_transaction_value(0, **fields)))


@given(st.fixed_dictionaries({**FIELDS, **TAGGED}))
def test_a_value_of_version_1_is_read_as_it_was_written(fields):
    _assert_same(fields, decode_transaction_value(encode_transaction_value(1, **fields)))


def test_version_0_has_fields_of_fixed_length():
    assert encode_transaction_value(0, **VALUE).hex() == (
        "0000"  # version
        "0000000000000005"  # producer id
        "0003"  # epoch
        "0000ea60"  # timeout
        "01"  # Ongoing
        "00000001"
        "000174"
        "00000002"
        "00000001"
        "00000002"  # t-1, t-2
        "0000000000000001"  # last update
        "0000000000000002"  # start
    )


def test_version_1_ends_in_tagged_fields_that_differ_from_their_defaults():
    value = encode_transaction_value(
        1, **VALUE, previous_producer_id=4, next_producer_id=-1, client_transaction_version=2
    )
    assert value.hex() == (
        "0001"
        "0000000000000005"
        "0003"
        "0000ea60"
        "01"
        "02"
        "0274"
        "03"
        "00000001"
        "00000002"
        "00"
        "0000000000000001"
        "0000000000000002"
        "02"
        "00"
        "08"
        "0000000000000004"  # previous producer id
        "02"
        "02"
        "0002"  # the client's transaction.version
    )


def test_a_version_from_the_future_is_refused():
    with pytest.raises(KafkaError) as raised:
        decode_transaction_value(b"\x00\x02")
    assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION


@given(st.integers(0, 43), st.booleans())
def test_a_value_that_is_cut_off_is_refused(length, is_flexible):
    value = encode_transaction_value(int(is_flexible), **VALUE)
    with pytest.raises(MalformedFrameError):
        decode_transaction_value(value[: min(length, len(value) - 1)])


def _assert_same(fields, body):
    for name, value in fields.items():
        actual = getattr(body, name)
        if name == "transaction_partitions" and value is not None:
            actual = [
                {"topic": entry.topic, "partition_ids": entry.partition_ids} for entry in actual
            ]
        assert actual == value, name
