"""InitProducerId with a transactional id: ids, epochs, and fencing."""

import pytest

from tests.support.coordinators.transaction_kit import OLD, Transactions, with_epoch
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.transactions.init import Init, check
from wirebroker.coordinator.transactions.settings import TransactionSettings


def test_a_new_transactional_id_gets_a_new_producer_id_with_epoch_0():
    transactions = Transactions()
    assert transactions.init() == (100, 0)
    assert transactions.init("u") == (101, 0)
    assert transactions.state() == "Empty"


def test_each_init_is_the_next_epoch():
    transactions = Transactions()
    assert [transactions.init() for _ in range(3)] == [(100, 0), (100, 1), (100, 2)]
    assert transactions.reloaded().init() == (100, 3)


def test_the_newest_init_sets_the_timeout():
    transactions = Transactions()
    transactions.init(timeout_ms=1_000)
    transactions.init(timeout_ms=2_000)
    assert transactions.of().timeout_ms == 2_000


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_out_of_bounds_is_refused(timeout_ms):
    with pytest.raises(KafkaError) as raised:
        check(Init("t", timeout_ms, None), TransactionSettings())
    assert raised.value.code is ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_an_empty_transactional_id_is_refused():
    with pytest.raises(KafkaError) as raised:
        check(Init("", 1, None), TransactionSettings())
    assert raised.value.code is ErrorCode.INVALID_REQUEST


def test_an_init_during_a_transaction_aborts_it_first():
    transactions = Transactions()
    first = transactions.init()
    transactions.add(first, 0)
    assert transactions.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert transactions.state() == "PrepareAbort"
    assert transactions.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    [written] = transactions.write_markers()
    assert (written.marker.is_commit, written.marker.producer_epoch) == (False, 1)
    assert transactions.init() == (100, 2)
    assert transactions.add(first, 0) is ErrorCode.PRODUCER_FENCED
    assert transactions.end(first) is ErrorCode.PRODUCER_FENCED


def test_before_transaction_version_2_the_abort_has_an_epoch_of_its_own_too():
    transactions = Transactions(version=OLD)
    first = transactions.init()
    transactions.add(first, 0, client=OLD)
    assert transactions.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    [written] = transactions.write_markers()
    assert (written.marker.producer_epoch, written.marker.transaction_version) == (1, OLD)
    assert transactions.init() == (100, 2)
    assert transactions.end(first, client=OLD) is ErrorCode.PRODUCER_FENCED


def test_producer_with_current_id_and_epoch_continues():
    transactions = Transactions()
    producer = transactions.init()
    assert transactions.init(known=producer) == (100, 1)


def test_repeated_init_after_lost_response_gets_same_epoch():
    transactions = Transactions()
    producer = transactions.init()
    assert transactions.init(known=producer) == (100, 1)
    assert transactions.init(known=producer) == (100, 1)
    # The record does not contain the previous producer: after a load it is fenced.
    assert transactions.reloaded().init(known=producer) is ErrorCode.PRODUCER_FENCED


def test_a_producer_that_was_replaced_is_fenced():
    transactions = Transactions()
    old = transactions.init()
    transactions.init()
    assert transactions.init(known=old) is ErrorCode.PRODUCER_FENCED
    assert transactions.init(known=(55, 1)) is ErrorCode.PRODUCER_FENCED


def test_a_producer_of_an_id_that_was_forgotten_gets_a_new_one():
    assert Transactions().init(known=(55, 3)) == (100, 0)


def test_exhausted_epochs_give_a_new_producer_id():
    transactions = Transactions()
    producer = with_epoch(transactions, 32_766)
    assert transactions.init() == (101, 0)
    # The old producer missed the new id; its last epoch identifies it.
    assert transactions.init(known=producer) is ErrorCode.PRODUCER_FENCED


def test_a_producer_at_its_last_epoch_may_ask_twice_for_its_new_id():
    transactions = Transactions()
    producer = with_epoch(transactions, 32_766)
    assert transactions.init(known=producer) == (101, 0)
    assert transactions.init(known=producer) == (101, 0)


def test_impossible_epoch_at_exhaustion_is_an_unknown_server_error():
    transactions = Transactions()
    producer_id, _ = with_epoch(transactions, 32_766)
    assert transactions.init(known=(producer_id, 5)) is ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("version", [0, 2])
def test_the_last_epoch_can_still_be_fenced(version):
    transactions = Transactions(version=version)
    producer = with_epoch(transactions, 32_766)
    transactions.add(producer, 0, client=version)
    assert transactions.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    [written] = transactions.write_markers()
    assert written.marker.producer_epoch == 32_767
    assert transactions.init()[0] == 101


def test_an_id_that_cannot_be_recorded_does_not_exist():
    transactions = Transactions()
    transactions.fails_with = ErrorCode.NOT_COORDINATOR
    assert transactions.init() is ErrorCode.NOT_COORDINATOR
    assert not transactions.shard.recorded
    transactions.fails_with = None
    assert transactions.init() == (101, 0)


def test_a_fence_that_cannot_be_recorded_changes_nothing():
    transactions = Transactions()
    producer = transactions.init()
    transactions.add(producer, 0)
    transactions.fails_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert transactions.init() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    transactions.fails_with = None
    assert not transactions.markers
    assert transactions.end(producer) == (100, 1)
