"""Columns of records against the reader of single records, and C against the Python reference."""

from __future__ import annotations

import ctypes
from array import array
from typing import TYPE_CHECKING, Any

import pytest

from tests.property.test_hot_twins import some_payload
from tests.support.harness.budget import SharedBudget
from tests.support.harness.pure_modules import pure
from tests.support.records.column_rows import fields_of, rows_of
from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.records import columns
from wirebroker.codecs.records.record import encode_record, read_records

if TYPE_CHECKING:
    from random import Random

_LAST = (1 << 63) - 1
_ALL = {"keys": True, "values": True, "headers": True}


def a_batch(random: Random) -> tuple[bytes, dict[str, Any]]:
    """Return mostly damaged records, and the batch header's claims about them."""
    payload, count = some_payload(random)
    base_offset = random.choice((0, 7, 1 << 40))
    first = random.choice((0, 0, base_offset + 1, base_offset + 100))
    return payload, {
        "count": count,
        "base_offset": base_offset,
        "base_timestamp": random.choice((-1, 0, 1_700_000_000_000, _LAST)),
        "append_time": random.choice((None, None, 5)),
        "base_sequence": random.choice((-1, 0, (1 << 31) - 2)),
        "first_offset": first,
        "end_offset": random.choice((_LAST, base_offset + 2, base_offset + 200)),
    }


def read(payload: bytes, header: dict[str, Any]) -> list[tuple[Any, ...]] | None:
    names = ("count", "base_offset", "base_timestamp", "append_time")
    try:
        records = list(read_records(payload, **{name: header[name] for name in names}))
    except KafkaError:
        return None
    return [
        (
            record.offset,
            (record.timestamp + (1 << 63)) % (1 << 64) - (1 << 63),
            record.key,
            record.value,
            [(name.encode("utf-8", "surrogateescape"), value) for name, value in record.headers],
        )
        for record in records
        if header["first_offset"] <= record.offset < header["end_offset"]
    ]


def test_columns_equal_single_records_and_omit_damaged_batches(
    pytestconfig: pytest.Config,
) -> None:
    budget = SharedBudget(pytestconfig, seconds=3 if columns.IS_QUICK else 1)
    random = budget.random
    reference = pure("records.columns")
    counts = {True: 0, False: 0}
    for _ in budget.rounds():
        builder = columns.RecordColumns(**_ALL)
        reference_builder = reference.RecordColumns(**_ALL)
        expected: list[tuple[Any, ...]] = []
        for _ in range(random.choice((1, 2, 5))):
            payload, header = a_batch(random)
            rows = read(payload, header)
            added = builder.add(payload, **header)
            assert added == reference_builder.add(payload, **header), (
                payload.hex(),
                header,
                budget.seed,
            )
            assert added == (-1 if rows is None else len(rows)), (payload.hex(), header)
            expected += rows or []
            counts[rows is not None] += 1
            assert builder.row_count == reference_builder.row_count == len(expected)
            assert builder.byte_count == reference_builder.byte_count
        taken_columns = builder.take()
        assert taken_columns == reference_builder.take(), budget.seed
        assert rows_of(columns.named(taken_columns)) == expected, budget.seed
        assert (builder.row_count, builder.byte_count) == (0, 0)
        assert builder.take() == reference.RecordColumns(**_ALL).take()
    assert all(counts.values()) or sum(counts.values()) < 50, counts


def test_taken_columns_do_not_change_while_they_are_referenced(pytestconfig: pytest.Config) -> None:
    """However many are kept, and in whatever order they are dropped and their memory is reused."""
    budget = SharedBudget(pytestconfig, seconds=1)
    random = budget.random
    retained_count = 0
    for _ in budget.rounds():
        taker = columns.RecordColumns(**_ALL)
        retained: list[tuple[columns.TakenColumns, list[tuple[Any, ...]]]] = []
        for _ in range(10):
            expected: list[tuple[Any, ...]] = []
            for _ in range(random.choice((1, 3))):
                payload, header = a_batch(random)
                if taker.add(payload, **header) > 0:
                    expected += read(payload, header) or []
            retained.append((taker.take(), expected))
            random.shuffle(retained)
            del retained[random.choice((0, 1, 2, 4)) :]
            retained_count += len(retained)
            for taken_columns, rows in retained:
                assert rows_of(columns.named(taken_columns)) == rows, budget.seed
    assert retained_count


@pytest.mark.skipif(not columns.IS_QUICK, reason="in C alone")
def test_memory_of_released_columns_is_reused() -> None:
    taker = columns.RecordColumns(keys=False, values=True, headers=False)
    record = encode_record(None, b"v" * 100_000, (), offset_delta=0, timestamp_delta=0)
    header: dict[str, Any] = {
        "count": 1,
        "base_offset": 3,
        "base_timestamp": 9,
        "append_time": None,
    }

    def address_of_values() -> int:
        taker.add(record, base_sequence=4, first_offset=0, end_offset=9, **header)
        values = columns.named(taker.take()).values
        assert values is not None
        assert isinstance(values.data, bytearray)
        assert fields_of(values) == [b"v" * 100_000]
        return ctypes.addressof(ctypes.c_char.from_buffer(values.data))

    assert len({address_of_values() for _ in range(20)}) <= 2


@pytest.mark.parametrize("wanted", ["keys", "values", "headers"])
def test_column_that_was_not_requested_is_missing(wanted: str) -> None:
    requested = {name: name == wanted for name in _ALL}
    taker = columns.RecordColumns(**requested)
    record = encode_record(b"k", b"v", [("h", None)], offset_delta=0, timestamp_delta=0)
    header: dict[str, Any] = {
        "count": 1,
        "base_offset": 3,
        "base_timestamp": 9,
        "append_time": None,
    }
    assert taker.add(record, base_sequence=4, first_offset=0, end_offset=9, **header) == 1
    taken_columns = columns.named(taker.take())
    assert {name: getattr(taken_columns, name) is not None for name in _ALL} == requested
    assert array("q", taken_columns.offsets).tolist() == [3]
    assert array("i", taken_columns.sequences).tolist() == [4]


def test_sequences_wrap_as_producers_sequences_do() -> None:
    taker = columns.RecordColumns(**_ALL)
    records = b"".join(
        encode_record(None, None, (), offset_delta=delta, timestamp_delta=0) for delta in range(3)
    )
    header: dict[str, Any] = {
        "count": 3,
        "base_offset": 0,
        "base_timestamp": 0,
        "append_time": None,
    }
    taker.add(records, base_sequence=(1 << 31) - 2, first_offset=0, end_offset=9, **header)
    taken_columns = columns.named(taker.take())
    assert array("i", taken_columns.sequences).tolist() == [(1 << 31) - 2, (1 << 31) - 1, 0]
