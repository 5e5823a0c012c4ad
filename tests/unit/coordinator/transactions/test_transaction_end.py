"""EndTxn by state, client version, and result, with retries."""

import pytest

from tests.support.coordinators.transaction_kit import (
    COORDINATOR_EPOCH,
    OLD,
    Transactions,
    with_epoch,
)
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.outcome import Marker

FENCED = ErrorCode.PRODUCER_FENCED
INVALID = ErrorCode.INVALID_TXN_STATE
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_transaction_ends_in_the_next_epoch(is_commit):
    transactions = Transactions()
    producer = transactions.init()
    transactions.add(producer, 0, 1)
    assert transactions.end(producer, is_commit=is_commit) == (100, 1)
    assert transactions.state() == ("PrepareCommit" if is_commit else "PrepareAbort")
    [written] = transactions.write_markers()
    assert written.marker == Marker(100, 1, COORDINATOR_EPOCH, is_commit, 2)
    assert written.partitions == {("a", 0), ("a", 1)}
    assert transactions.state() == ("CompleteCommit" if is_commit else "CompleteAbort")
    assert not transactions.of().partitions


@pytest.mark.parametrize("is_commit", [True, False])
def test_older_clients_keep_their_epoch(is_commit):
    transactions = Transactions(version=OLD)
    producer = transactions.init()
    transactions.add(producer, 0, client=OLD)
    assert transactions.end(producer, is_commit=is_commit, client=OLD) == (-1, -1)
    [written] = transactions.write_markers()
    assert written.marker == Marker(100, 0, COORDINATOR_EPOCH, is_commit, OLD)
    assert transactions.add(producer, 0, client=OLD) is ErrorCode.NONE


def test_while_markers_are_written_both_ends_wait():
    transactions = Transactions()
    producer = transactions.init()
    transactions.add(producer, 0)
    following = transactions.end(producer)
    for sender in (producer, following):
        for is_commit in (True, False):
            assert transactions.end(sender, is_commit=is_commit) is CONCURRENT


def test_older_clients_wait_too():
    transactions = Transactions(version=OLD)
    producer = transactions.init()
    transactions.add(producer, 0, client=OLD)
    transactions.end(producer, client=OLD)
    assert transactions.end(producer, client=OLD) is CONCURRENT
    assert transactions.end((100, 1), client=OLD) is FENCED


# (previous operation, retry or current epoch, commit or abort) -> the result
RETRY, PRESENT = -1, 0
TABLE = {
    ("empty", RETRY, True): FENCED,
    ("empty", RETRY, False): FENCED,
    ("empty", PRESENT, True): INVALID,
    ("empty", PRESENT, False): "next",
    ("commit", RETRY, True): "same",
    ("commit", RETRY, False): INVALID,
    ("commit", PRESENT, True): INVALID,
    ("commit", PRESENT, False): "next",
    ("abort", RETRY, True): INVALID,
    ("abort", RETRY, False): "same",
    ("abort", PRESENT, True): INVALID,
    ("abort", PRESENT, False): "next",
}


@pytest.mark.parametrize(("before", "epoch", "is_commit"), TABLE)
def test_end_without_transaction_bumps_epoch_and_previous_epoch_is_a_retry(
    before, epoch, is_commit
):
    transactions = Transactions()
    if before == "empty":
        transactions.init()
        producer_id, present = transactions.init()
    else:
        producer_id, present = transactions.ended(is_commit=before == "commit")
    expected = TABLE[before, epoch, is_commit]
    answer = transactions.end((producer_id, present + epoch), is_commit=is_commit)
    if expected == "same":
        assert answer == (producer_id, present)
        assert not transactions.markers
    elif expected == "next":
        assert answer == (producer_id, present + 1)
        [written] = transactions.write_markers()
        assert not written.partitions
        assert transactions.state() == "CompleteAbort"
    else:
        assert answer is expected


@pytest.mark.parametrize("before", ["empty", "commit", "abort"])
@pytest.mark.parametrize("is_commit", [True, False])
def test_older_clients_may_only_repeat_their_last_end(before, is_commit):
    transactions = Transactions(version=OLD)
    if before == "empty":
        producer = transactions.init()
    else:
        producer = transactions.ended(is_commit=before == "commit", client=OLD)
    answer = transactions.end(producer, is_commit=is_commit, client=OLD)
    is_repeated = before == ("commit" if is_commit else "abort")
    assert answer == ((-1, -1) if is_repeated else INVALID)
    assert not transactions.markers


@pytest.mark.parametrize("client", [0, 2])
def test_end_by_another_producer_is_refused(client):
    transactions = Transactions(version=client)
    producer_id, epoch = transactions.init()
    transactions.add((producer_id, epoch), 0, client=client)
    assert transactions.end((99, epoch), client=client) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert transactions.end((producer_id, epoch + 1), client=client) is FENCED
    assert transactions.end((producer_id, epoch - 1), client=client) is FENCED
    assert transactions.state() == "Ongoing"


@pytest.mark.parametrize("is_commit", [True, False])
@pytest.mark.parametrize("late_is_commit", [True, False])
def test_a_delayed_end_of_an_old_epoch_never_ends_a_newer_transaction(is_commit, late_is_commit):
    transactions = Transactions()
    producer = transactions.init()
    transactions.add(producer, 0)
    following = transactions.end(producer, is_commit=is_commit)
    transactions.write_markers()
    transactions.add(following, 1)
    assert transactions.end(producer, is_commit=late_is_commit) is FENCED
    assert transactions.state() == "Ongoing"
    assert not transactions.markers


@pytest.mark.parametrize("client", [0, 2])
def test_a_delayed_end_of_a_producer_that_was_replaced_ends_nothing(client):
    transactions = Transactions(version=client)
    old = transactions.init()
    transactions.add(old, 0, client=client)
    transactions.init()
    transactions.write_markers()
    new = transactions.init()
    transactions.add(new, 0, client=client)
    for is_commit in (True, False):
        assert transactions.end(old, is_commit=is_commit, client=client) is FENCED
    assert transactions.state() == "Ongoing"


def test_the_end_of_the_last_epoch_gives_a_new_producer_id():
    transactions = Transactions()
    producer = with_epoch(transactions, 32_766)
    transactions.add(producer, 0)
    assert transactions.end(producer) == (101, 0)
    # The client may begin with its new id before the markers are written.
    assert transactions.add((101, 0), 0) is CONCURRENT
    [written] = transactions.write_markers()
    assert (written.marker.producer_id, written.marker.producer_epoch) == (100, 32_767)
    # A retry of that end.
    assert transactions.end(producer) == (101, 0)
    assert transactions.add((101, 0), 0) is ErrorCode.NONE
    # After the next transaction has begun, the retry ends nothing.
    assert transactions.end(producer) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert transactions.state() == "Ongoing"


def test_a_new_producer_id_survives_a_load_between_the_decision_and_the_markers():
    transactions = Transactions()
    producer = with_epoch(transactions, 32_766)
    transactions.add(producer, 0)
    transactions.end(producer)
    loaded = transactions.reloaded()
    assert [pending.marker.producer_epoch for pending in loaded.markers] == [32_767]
    loaded.write_markers()
    assert loaded.init() == (101, 1)


def test_prepared_decision_is_completed_after_a_load():
    transactions = Transactions()
    producer = transactions.init()
    transactions.add(producer, 0, 1)
    transactions.end(producer)
    loaded = transactions.reloaded()
    assert loaded.markers == transactions.markers
    loaded.write_markers()
    assert loaded.state() == "CompleteCommit"
    assert not loaded.reloaded().markers


def test_decision_that_cannot_be_recorded_is_not_taken():
    transactions = Transactions()
    producer = transactions.init()
    transactions.add(producer, 0)
    transactions.fails_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert transactions.end(producer) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    transactions.fails_with = None
    assert not transactions.markers
    assert transactions.state() == "Ongoing"
    assert transactions.end(producer, is_commit=False) == (100, 1)


def test_markers_that_were_written_for_an_older_decision_complete_nothing():
    transactions = Transactions()
    producer = transactions.init()
    transactions.add(producer, 0)
    following = transactions.end(producer)
    [old] = transactions.markers
    transactions.write_markers()
    transactions.add(following, 0)
    transactions.end(following)
    transactions.markers.append(old)
    newest = transactions.markers[0]
    transactions.markers = [old]
    transactions.write_markers()
    assert transactions.state() == "PrepareCommit"
    transactions.markers = [newest]
    transactions.write_markers()
    assert transactions.state() == "CompleteCommit"


def test_the_epoch_before_that_of_an_older_client_is_no_retry():
    for is_commit in (True, False):
        transactions = Transactions()
        zombie = transactions.init()
        transactions.ended(is_commit=is_commit, client=OLD)
        assert transactions.of().producer_epoch == zombie[1] + 1
        assert transactions.end(zombie, is_commit=is_commit) is ErrorCode.PRODUCER_FENCED


def test_a_retry_after_a_load_is_answered_as_before():
    transactions = Transactions()
    following = transactions.ended()
    loaded = transactions.reloaded()
    assert loaded.end((following[0], following[1] - 1)) == following
