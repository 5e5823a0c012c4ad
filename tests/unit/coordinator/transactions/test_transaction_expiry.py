"""Timed-out transactions are aborted; unused ids are removed."""

from tests.support.coordinators.transaction_kit import START_MS, TIMEOUT_MS, Transactions
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.transactions.expiry import sweep_expired

WEEK_MS = 7 * 24 * 60 * 60_000
YEAR_MS = 365 * 24 * 60 * 60_000


def test_transaction_is_aborted_at_its_timeout():
    transactions = Transactions()
    producer = transactions.init()
    transactions.now_ms = 5
    transactions.add(producer, 0)
    transactions.now_ms = 5 + TIMEOUT_MS
    assert transactions.abort_timed_out() == []
    transactions.now_ms += 1
    assert transactions.abort_timed_out() == ["t"]
    assert transactions.state() == "PrepareAbort"
    assert transactions.abort_timed_out() == []
    transactions.write_markers()
    assert transactions.state() == "CompleteAbort"


def test_producer_of_timed_out_transaction_is_fenced():
    transactions = Transactions()
    producer = transactions.init()
    transactions.add(producer, 0)
    transactions.now_ms = TIMEOUT_MS + 1
    transactions.abort_timed_out()
    transactions.write_markers()
    # This is indistinguishable from a retry of the producer's own end.
    assert transactions.end(producer, is_commit=False) == (100, 1)
    assert transactions.end(producer, is_commit=True) is ErrorCode.INVALID_TXN_STATE
    assert transactions.add(producer, 0) is ErrorCode.PRODUCER_FENCED
    assert transactions.init(known=producer) == (100, 1)


def test_transaction_timeout_continues_after_a_load():
    transactions = Transactions()
    producer = transactions.init()
    transactions.add(producer, 0)
    transactions.now_ms = TIMEOUT_MS + 1
    assert transactions.reloaded().abort_timed_out() == ["t"]


def test_adding_partitions_does_not_extend_the_timeout():
    transactions = Transactions()
    producer = transactions.init()
    transactions.add(producer, 0)
    transactions.now_ms = TIMEOUT_MS
    transactions.add(producer, 1)
    transactions.now_ms += 1
    assert transactions.abort_timed_out() == ["t"]


def test_a_jump_of_the_wall_clock_ends_no_transaction_early_and_keeps_none_longer():
    for jump_ms in (YEAR_MS, -YEAR_MS):
        transactions = Transactions()
        before, after = transactions.init("before"), transactions.init("after")
        transactions.add(before, 0, name="before")
        transactions.now_ms = 100
        transactions.jump_ms = jump_ms
        assert transactions.abort_timed_out() == []
        transactions.add(after, 0, name="after")
        transactions.now_ms = TIMEOUT_MS
        assert transactions.abort_timed_out() == []
        transactions.now_ms = TIMEOUT_MS + 1
        assert transactions.abort_timed_out() == ["before"]
        transactions.now_ms = TIMEOUT_MS + 100
        assert transactions.abort_timed_out() == []
        transactions.now_ms = TIMEOUT_MS + 101
        assert transactions.abort_timed_out() == ["after"]


def test_transaction_with_maximum_timeout_never_expires():
    transactions = Transactions()
    producer = transactions.init(timeout_ms=2**31 - 1)
    transactions.add(producer, 0)
    transactions.now_ms = 2**32
    assert transactions.abort_timed_out() == []


def test_failed_abort_is_retried_later():
    transactions = Transactions()
    transactions.add(transactions.init(), 0)
    transactions.now_ms = TIMEOUT_MS + 1
    transactions.fails_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    transactions.abort_timed_out()
    assert transactions.state() == "Ongoing"
    transactions.fails_with = None
    assert transactions.abort_timed_out() == ["t"]
    [written] = transactions.write_markers()
    assert written.marker.producer_epoch == 1


def test_transactional_ids_unused_for_a_week_expire():
    transactions = Transactions()
    transactions.ended()
    transactions.init("new")
    transactions.add(transactions.init("busy"), 0, name="busy")
    open_producer = transactions.init("decided")
    transactions.add(open_producer, 0, name="decided")
    transactions.end(open_producer, name="decided")
    transactions.now_ms = WEEK_MS - 1
    transactions.init("new")
    _sweep(transactions)
    assert transactions.shard.recorded.keys() == {"t", "new", "busy", "decided"}
    transactions.now_ms = WEEK_MS
    _sweep(transactions)
    assert transactions.shard.recorded.keys() == {"new", "busy", "decided"}
    assert transactions.reloaded().shard.recorded.keys() == {"new", "busy", "decided"}


def test_expired_transactional_id_is_treated_as_new():
    transactions = Transactions()
    producer = transactions.ended()
    transactions.now_ms = WEEK_MS
    _sweep(transactions)
    assert transactions.add(producer, 0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert transactions.init() == (101, 0)


def _sweep(transactions):
    for outcome in sweep_expired(transactions.shard, START_MS + transactions.now_ms):
        transactions.run(lambda *_, outcome=outcome: outcome)
