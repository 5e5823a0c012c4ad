"""The shard of transactional ids: how it applies records."""

import pytest

from tests.support.coordinators.transaction_kit import OLD, Transactions
from wirebroker.codecs.errors import ErrorCode, MalformedFrameError
from wirebroker.codecs.transaction_records import encode_transaction_value, transaction_key


def test_load_restores_state_except_the_last_epoch():
    transactions = Transactions()
    transactions.ended()
    transactions.add(transactions.init("u"), 0, 1, name="u")
    loaded = transactions.reloaded()
    assert loaded.shard.recorded == transactions.shard.recorded
    for name in ("t", "u"):
        assert loaded.of(name) == transactions.of(name)._replace(last_producer_epoch=-1)
    loaded.shard.check()


def test_appended_record_decides_the_state():
    transactions = Transactions()
    producer = transactions.init()
    before = transactions.of()
    intended = before.with_partitions(frozenset({("a", 0)}), now_ms=1, client_version=2)
    transactions.shard.move(intended)  # its records are never appended
    other = before.with_partitions(frozenset({("b", 7)}), now_ms=2, client_version=2)
    transactions.shard.replay(*other.record(2))
    assert transactions.of().partitions == {("b", 7)}
    assert transactions.of().updated_ms == 2
    assert transactions.of().producer_id == producer[0]


def test_failed_append_leaves_the_state_unchanged():
    transactions = Transactions()
    producer = transactions.init()
    following = transactions.init(known=producer)
    before = transactions.of()
    assert before.last_producer_epoch == producer[1], "it may ask once more"
    transactions.fails_with = ErrorCode.NOT_COORDINATOR
    assert transactions.init() is ErrorCode.NOT_COORDINATOR
    transactions.fails_with = None
    assert transactions.of() == before
    assert transactions.init(known=producer) == following


def test_records_of_transaction_version_0_have_no_tagged_fields():
    transactions = Transactions(version=OLD)
    transactions.ended(client=OLD)
    assert {(record.value or b"")[:2] for record in transactions.log} == {b"\x00\x00"}
    assert transactions.reloaded().of().previous_producer_id == -1


def test_transaction_version_0_refuses_newer_clients():
    transactions = Transactions(version=OLD)
    producer = transactions.init()
    assert transactions.add(producer, 0) is ErrorCode.UNSUPPORTED_VERSION
    assert transactions.add(producer, 0, client=OLD) is ErrorCode.NONE
    assert transactions.end(producer) is ErrorCode.UNSUPPORTED_VERSION
    assert transactions.end(producer, client=OLD) == (-1, -1)


def test_records_of_other_types_and_versions_are_ignored():
    transactions = Transactions()
    transactions.shard.replay(b"\x00\x09abc", b"\x00\x00")
    transactions.shard.replay(transaction_key("t"), b"\x00\x07new")
    assert not transactions.shard.recorded


@pytest.mark.parametrize("status", [6, 7, -1])
def test_states_that_are_never_written_are_refused(status):
    value = encode_transaction_value(
        0,
        producer_id=1,
        producer_epoch=0,
        transaction_timeout_ms=1,
        transaction_status=status,
        transaction_partitions=None,
        transaction_last_update_timestamp_ms=1,
        transaction_start_timestamp_ms=1,
    )
    with pytest.raises(MalformedFrameError):
        Transactions().shard.replay(transaction_key("t"), value)


def test_a_tombstone_removes_an_id():
    transactions = Transactions()
    transactions.add(transactions.init(), 0)
    transactions.shard.replay(transaction_key("t"), None)
    transactions.shard.replay(transaction_key("never was"), None)
    transactions.shard.check()
    assert not transactions.shard.recorded


def test_shard_description_counts_ids_and_open_transactions():
    transactions = Transactions()
    transactions.add(transactions.init(), 0)
    transactions.init("u")
    assert transactions.shard.describe() == "2 transactional ids, 1 in a transaction"
