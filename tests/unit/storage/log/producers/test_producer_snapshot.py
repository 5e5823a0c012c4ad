"""The snapshot file: its format and the detection of damage."""

from __future__ import annotations

import pytest

from wirebroker.storage.log.producers.producer_snapshot import (
    CorruptSnapshotError,
    SnapshotRow,
    decode_snapshot,
    encode_snapshot,
    snapshot_name,
    snapshot_offset,
)

ROWS = [
    SnapshotRow(7, 1, 40, 99, 3, 1_700_000_000_000, -1, -1),
    SnapshotRow(9, 0, -1, -1, 0, 5, 2, 80),
]


def test_a_snapshot_without_producers_has_ten_bytes():
    content = encode_snapshot([])
    assert len(content) == 10
    assert decode_snapshot(content) == []


def test_rows_come_back():
    content = encode_snapshot(ROWS)
    assert len(content) == 10 + 2 * 46
    assert decode_snapshot(content) == ROWS


@pytest.mark.parametrize("length", [0, 1, 9, 10, 55, 101])
def test_a_cut_off_file_is_corrupt(length):
    with pytest.raises(CorruptSnapshotError):
        decode_snapshot(encode_snapshot(ROWS)[:length])


@pytest.mark.parametrize("position", range(0, 102, 7))
def test_a_flipped_bit_is_noticed(position):
    content = bytearray(encode_snapshot(ROWS))
    content[position] ^= 1
    with pytest.raises(CorruptSnapshotError):
        decode_snapshot(bytes(content))


def test_names_carry_the_offset():
    assert snapshot_name(42) == "00000000000000000042.snapshot"
    assert snapshot_offset("00000000000000000042.snapshot") == 42
    assert snapshot_offset("00000000000000000042.log") is None
    assert snapshot_offset("42.snapshot") is None
