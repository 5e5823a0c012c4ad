"""DescribeTransactions and ListTransactions: contents and filters."""

import re

import pytest

from tests.support.coordinators.transaction_kit import START_MS, TIMEOUT_MS, Transactions
from wirebroker.base.clock import in_one_go
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.transactions.admin import Filters, describe, list_transactions


@pytest.fixture
def transactions():
    transactions = Transactions()
    transactions.init("idle")
    producer = transactions.init("busy")
    transactions.now_ms = 10
    transactions.add(producer, 1, 0, name="busy")
    return transactions


def names(transactions, **filters):
    wall_ms = START_MS + transactions.now_ms
    listed = in_one_go(list_transactions(transactions.shard, Filters(**filters), wall_ms))
    return [transaction["transactional_id"] for transaction in listed]


def test_all_are_listed_with_their_states(transactions):
    assert in_one_go(list_transactions(transactions.shard, Filters(), 0)) == [
        {"transactional_id": "idle", "producer_id": 100, "transaction_state": "Empty"},
        {"transactional_id": "busy", "producer_id": 101, "transaction_state": "Ongoing"},
    ]


def test_filters_leave_out_what_does_not_match(transactions):
    assert names(transactions, states=["Ongoing"]) == ["busy"]
    assert names(transactions, states=["Ongoing", "Empty"]) == ["idle", "busy"]
    assert names(transactions, producer_ids={100}) == ["idle"]
    assert names(transactions, pattern=re.compile("b.*")) == ["busy"]
    assert names(transactions, pattern=re.compile("b")) == []
    assert names(transactions, producer_ids={100}, states=["Ongoing"]) == []


def test_duration_filter_counts_from_the_transaction_start(transactions):
    transactions.now_ms = 110
    # An idle one has no start time, which counts as long ago.
    assert names(transactions, duration_ms=99) == ["idle", "busy"]
    assert names(transactions, duration_ms=100) == ["idle"]
    assert names(transactions, duration_ms=-1) == ["idle", "busy"]


def test_unknown_state_filters_are_reported(transactions):
    filters = Filters(states=["Ongoing", "ongoing", "Nonsense"])
    assert filters.unknown_states() == ["ongoing", "Nonsense"]
    assert names(transactions, states=["Nonsense"]) == []


def test_a_transaction_is_described(transactions):
    assert in_one_go(describe(transactions.shard, "busy")) == {
        "transactional_id": "busy",
        "transaction_state": "Ongoing",
        "transaction_timeout_ms": TIMEOUT_MS,
        "transaction_start_time_ms": START_MS + 10,
        "producer_id": 101,
        "producer_epoch": 0,
        "topics": [{"topic": "a", "partitions": [0, 1]}],
    }


def test_an_unknown_transactional_id_is_not_found(transactions):
    with pytest.raises(KafkaError) as raised:
        in_one_go(describe(transactions.shard, "nobody"))
    assert raised.value.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
