"""AddPartitionsToTxn and verification: what belongs to a transaction before it is written to."""

import pytest

from tests.support.coordinators.transaction_kit import START_MS, Transactions
from wirebroker.codecs.errors import ErrorCode

NONE = ErrorCode.NONE


def test_the_first_partition_begins_the_transaction():
    transactions = Transactions()
    producer = transactions.init()
    transactions.now_ms = 5
    assert transactions.add(producer, 0) is NONE
    transactions.now_ms = 9
    assert transactions.add(producer, 1, 2) is NONE
    assert transactions.state() == "Ongoing"
    assert transactions.of().partitions == {("a", 0), ("a", 1), ("a", 2)}
    assert transactions.of().start_ms == START_MS + 5


def test_partition_already_in_transaction_is_not_recorded_again():
    transactions = Transactions()
    producer = transactions.init()
    transactions.add(producer, 0, 1)
    count = len(transactions.log)
    assert transactions.add(producer, 1) is NONE
    assert len(transactions.log) == count


def test_a_transaction_that_ended_is_followed_by_one_with_its_own_partitions():
    transactions = Transactions()
    producer = transactions.ended()
    assert transactions.add(producer, 5) is NONE
    assert transactions.of().partitions == {("a", 5)}


@pytest.mark.parametrize(
    ("producer", "error"),
    [
        ((99, 0), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ((100, 1), ErrorCode.PRODUCER_FENCED),
        ((100, -1), ErrorCode.PRODUCER_FENCED),
    ],
)
def test_adding_partitions_as_another_producer_is_refused(producer, error):
    transactions = Transactions()
    transactions.init()
    assert transactions.add(producer, 0) is error
    assert transactions.verify(producer, 0) is error
    assert transactions.state() == "Empty"


def test_an_unknown_transactional_id_has_no_transaction():
    transactions = Transactions()
    assert transactions.add((1, 0), 0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert transactions.verify((1, 0), 0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_while_markers_are_written_the_next_transaction_waits():
    transactions = Transactions()
    producer = transactions.init()
    transactions.add(producer, 0)
    following = transactions.end(producer)
    assert transactions.add(following, 0) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert transactions.verify(following, 0) is ErrorCode.CONCURRENT_TRANSACTIONS
    # This includes a client that missed its new epoch: it gets the epoch when it retries.
    assert transactions.add(producer, 0) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert transactions.verify(producer, 0) is ErrorCode.PRODUCER_FENCED
    transactions.write_markers()
    assert transactions.add(following, 0) is NONE


def test_verification_reports_each_partition():
    transactions = Transactions()
    producer = transactions.init()
    assert transactions.verify(producer, 0) == {0: ErrorCode.TRANSACTION_ABORTABLE}
    transactions.add(producer, 0)
    assert transactions.verify(producer, 0, 1) == {0: NONE, 1: ErrorCode.TRANSACTION_ABORTABLE}
    assert transactions.reloaded().verify(producer, 0) == {0: NONE}


def test_a_partition_that_cannot_be_recorded_is_not_in_the_transaction():
    transactions = Transactions()
    producer = transactions.init()
    transactions.fails_with = ErrorCode.NOT_COORDINATOR
    assert transactions.add(producer, 0) is ErrorCode.NOT_COORDINATOR
    transactions.fails_with = None
    assert transactions.verify(producer, 0) == {0: ErrorCode.TRANSACTION_ABORTABLE}
