"""Scans of batches, without a broker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.codecs.records.batch import build_batch
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.control import EndTransactionMarker, encode_control_record
from wirebroker.console.records.partition_scan import PartitionScan, ScanRules
from wirebroker.console.records.queries import SearchQuery
from wirebroker.console.records.record_filter import filter_of

PLACE = TopicPartition("orders", 0)
LARGE = bytes(2 << 20)


def data(offset: int, value: bytes, *, producer: int = -1, codec: Codec = Codec.ZSTD) -> bytearray:
    return build_batch(
        [(None, value, ())],
        base_offset=offset,
        timestamp_ms=1,
        codec=codec,
        producer_id=producer,
        producer_epoch=0,
        is_transactional=producer >= 0,
    )


def marker_of(offset: int, *, producer: int, is_commit: bool) -> bytearray:
    key, value = encode_control_record(EndTransactionMarker(is_commit, 0))
    return build_batch(
        [(key, value, ())],
        base_offset=offset,
        timestamp_ms=1,
        producer_id=producer,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )


def row(*batches: bytearray, aborted: tuple[tuple[int, int], ...] = ()) -> Any:
    transactions = [
        SimpleNamespace(producer_id=producer, first_offset=offset) for producer, offset in aborted
    ]
    return SimpleNamespace(records=memoryview(b"".join(batches)), aborted_transactions=transactions)


def scan(*, is_committed: bool = False, text: str = "", most_headers: int = 0) -> PartitionScan:
    record_filter = filter_of(SearchQuery("orders", text=text))
    rules = ScanRules(record_filter, is_committed, False, 512, most_headers)
    return PartitionScan(PLACE, 0, None, rules)


def offsets_in(steps: Any) -> list[int]:
    return [record.offset for found in steps for record in found]


@pytest.mark.parametrize("codec", list(Codec))
def test_a_large_batch_ends_the_scan_and_is_read_in_a_turn(codec):
    scanned = scan()
    batches = row(data(0, b"a"), data(1, LARGE, codec=codec), data(2, b"c"))
    assert offsets_in(scanned.steps(batches)) == [0]
    assert (scanned.needs_turn, scanned.position) == (True, 1)
    assert offsets_in(scanned.steps(batches, in_turn=True)) == [1]
    assert (scanned.needs_turn, scanned.position) == (False, 2)
    assert offsets_in(scanned.steps(batches)) == [2]
    assert (scanned.needs_turn, scanned.notes) == (False, [])


@pytest.mark.parametrize("is_committed", [False, True])
def test_transactions_before_a_large_batch_count_when_the_scan_goes_on(is_committed):
    """The marker of the first transaction is not read as that of the second."""
    scanned = scan(is_committed=is_committed)
    batches = row(
        data(0, b"aborted", producer=7),
        marker_of(1, producer=7, is_commit=False),
        data(2, LARGE, producer=7),
        marker_of(3, producer=7, is_commit=True),
        data(4, LARGE, producer=7),
        aborted=((7, 0), (7, 4)),
    )
    found = [record for step in scanned.steps(batches) for record in step]
    while scanned.needs_turn:
        found += [record for step in scanned.steps(batches, in_turn=True) for record in step]
        found += [record for step in scanned.steps(batches) for record in step]
    states = [(record.offset, record.is_aborted) for record in found]
    assert states == ([(2, False)] if is_committed else [(0, True), (2, False), (4, True)])


def test_a_large_batch_without_hits_takes_one_turn():
    scanned = scan(text="absent")
    batches = row(data(0, LARGE), data(1, LARGE), data(2, b"c"))
    assert offsets_in(scanned.steps(batches)) == []
    for position in (1, 2):
        assert scanned.needs_turn
        assert offsets_in(scanned.steps(batches, in_turn=True)) == []
        assert scanned.position == position
        assert offsets_in(scanned.steps(batches)) == []
    assert (scanned.needs_turn, scanned.position) == (False, 3)


def test_headers_are_kept_up_to_a_number_and_a_size():
    headers = [("name", b"x" * 200)] * 5
    batch = build_batch([(None, b"", headers)], timestamp_ms=1)
    for most, kept in ((0, 0), (1, 1), (2, 2), (5, 2)):
        ((record,),) = scan(most_headers=most).steps(row(batch))
        assert (len(record.headers), record.header_count) == (kept, 5)
        assert record.is_cut is (kept < 5)
