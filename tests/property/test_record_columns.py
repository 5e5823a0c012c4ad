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


def read(payload: bytes, said: dict[str, Any]) -> list[tuple[Any, ...]] | None:
    names = ("count", "base_offset", "base_timestamp", "append_time")
    try:
        found = list(read_records(payload, **{name: said[name] for name in names}))
    except KafkaError:
        return None
    return [
        (
            each.offset,
            (each.timestamp + (1 << 63)) % (1 << 64) - (1 << 63),
            each.key,
            each.value,
            [(name.encode("utf-8", "surrogateescape"), value) for name, value in each.headers],
        )
        for each in found
        if said["first_offset"] <= each.offset < said["end_offset"]
    ]


def test_columns_hold_what_single_records_hold_and_damaged_batches_leave_no_trace(
    pytestconfig: pytest.Config,
) -> None:
    budget = SharedBudget(pytestconfig, seconds=3 if columns.IS_QUICK else 1)
    random = budget.random
    reference = pure("records.columns")
    counts = {True: 0, False: 0}
    for _ in budget.rounds():
        ours = columns.RecordColumns(**_ALL)
        theirs = reference.RecordColumns(**_ALL)
        expected: list[tuple[Any, ...]] = []
        for _ in range(random.choice((1, 2, 5))):
            payload, said = a_batch(random)
            wanted = read(payload, said)
            added = ours.add(payload, **said)
            assert added == theirs.add(payload, **said), (payload.hex(), said, budget.seed)
            assert added == (-1 if wanted is None else len(wanted)), (payload.hex(), said)
            expected += wanted or []
            counts[wanted is not None] += 1
            assert ours.row_count == theirs.row_count == len(expected)
            assert ours.byte_count == theirs.byte_count
        taken = ours.take()
        assert taken == theirs.take(), budget.seed
        assert rows_of(columns.named(taken)) == expected, budget.seed
        assert (ours.row_count, ours.byte_count) == (0, 0)
        assert ours.take() == reference.RecordColumns(**_ALL).take()
    assert all(counts.values()) or sum(counts.values()) < 50, counts


def test_what_was_taken_stays_as_it_is_while_somebody_has_it(pytestconfig: pytest.Config) -> None:
    """However many are kept, and in whatever order they are dropped and their memory is reused."""
    budget = SharedBudget(pytestconfig, seconds=1)
    random = budget.random
    kept_count = 0
    for _ in budget.rounds():
        taker = columns.RecordColumns(**_ALL)
        kept: list[tuple[columns.TakenColumns, list[tuple[Any, ...]]]] = []
        for _ in range(10):
            expected: list[tuple[Any, ...]] = []
            for _ in range(random.choice((1, 3))):
                payload, said = a_batch(random)
                if taker.add(payload, **said) > 0:
                    expected += read(payload, said) or []
            kept.append((taker.take(), expected))
            random.shuffle(kept)
            del kept[random.choice((0, 1, 2, 4)) :]
            kept_count += len(kept)
            for taken, rows in kept:
                assert rows_of(columns.named(taken)) == rows, budget.seed
    assert kept_count


@pytest.mark.skipif(not columns.IS_QUICK, reason="in C alone")
def test_memory_that_nobody_has_any_more_is_used_again() -> None:
    taker = columns.RecordColumns(keys=False, values=True, headers=False)
    record = encode_record(None, b"v" * 100_000, (), offset_delta=0, timestamp_delta=0)
    said: dict[str, Any] = {"count": 1, "base_offset": 3, "base_timestamp": 9, "append_time": None}

    def place_of_values() -> int:
        taker.add(record, base_sequence=4, first_offset=0, end_offset=9, **said)
        values = columns.named(taker.take()).values
        assert values is not None
        assert isinstance(values.data, bytearray)
        assert fields_of(values) == [b"v" * 100_000]
        return ctypes.addressof(ctypes.c_char.from_buffer(values.data))

    assert len({place_of_values() for _ in range(20)}) <= 2


@pytest.mark.parametrize("wanted", ["keys", "values", "headers"])
def test_a_column_that_nobody_asked_for_is_not_there(wanted: str) -> None:
    asked = {name: name == wanted for name in _ALL}
    taker = columns.RecordColumns(**asked)
    record = encode_record(b"k", b"v", [("h", None)], offset_delta=0, timestamp_delta=0)
    said: dict[str, Any] = {"count": 1, "base_offset": 3, "base_timestamp": 9, "append_time": None}
    assert taker.add(record, base_sequence=4, first_offset=0, end_offset=9, **said) == 1
    found = columns.named(taker.take())
    assert {name: getattr(found, name) is not None for name in _ALL} == asked
    assert array("q", found.offsets).tolist() == [3]
    assert array("i", found.sequences).tolist() == [4]


def test_sequences_wrap_as_those_of_producers_do() -> None:
    taker = columns.RecordColumns(**_ALL)
    records = b"".join(
        encode_record(None, None, (), offset_delta=delta, timestamp_delta=0) for delta in range(3)
    )
    said: dict[str, Any] = {"count": 3, "base_offset": 0, "base_timestamp": 0, "append_time": None}
    taker.add(records, base_sequence=(1 << 31) - 2, first_offset=0, end_offset=9, **said)
    found = columns.named(taker.take())
    assert array("i", found.sequences).tolist() == [(1 << 31) - 2, (1 << 31) - 1, 0]
