"""The merge of delivery states, case by case."""

from __future__ import annotations

import pytest

from tests.support.coordinators.share_state_kit import batches
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.share_state.batch_merge import (
    NO_START_OFFSET,
    extend_batches,
    is_ordered,
    merge_batches,
)

LARGEST = (1 << 63) - 1

CASES = {
    "nothing": ([], [], []),
    "one new batch": ([], ["0-9 s0 c1"], ["0-9 s0 c1"]),
    "a higher count wins": (["0-9 s2 c1"], ["0-9 s0 c2"], ["0-9 s0 c2"]),
    "a lower count loses": (["0-9 s0 c2"], ["0-9 s2 c1"], ["0-9 s0 c2"]),
    "of equal counts the higher state wins": (["0-9 s0 c1"], ["0-9 s2 c1"], ["0-9 s2 c1"]),
    "a part in the middle": (
        ["0-9 s0 c1"],
        ["3-5 s2 c1"],
        ["0-2 s0 c1", "3-5 s2 c1", "6-9 s0 c1"],
    ),
    "an overlap at the end": (["0-9 s0 c1"], ["5-14 s2 c1"], ["0-4 s0 c1", "5-14 s2 c1"]),
    "an overlap at the beginning": (["5-14 s0 c1"], ["0-9 s2 c1"], ["0-9 s2 c1", "10-14 s0 c1"]),
    "one covers several": (
        ["0-1 s0 c1", "4-5 s0 c3", "8-9 s0 c1"],
        ["0-9 s2 c2"],
        ["0-3 s2 c2", "4-5 s0 c3", "6-9 s2 c2"],
    ),
    "adjacent equal batches are joined": (["0-4 s0 c1"], ["5-9 s0 c1"], ["0-9 s0 c1"]),
    "a gap is kept": (["0-4 s0 c1"], ["6-9 s0 c1"], ["0-4 s0 c1", "6-9 s0 c1"]),
    "a gap is filled": (["0-4 s0 c1", "6-9 s0 c1"], ["5 s0 c1"], ["0-9 s0 c1"]),
    "new batches overlap": (
        [],
        ["0-9 s0 c1", "5-14 s2 c2", "8-20 s0 c1"],
        ["0-4 s0 c1", "5-14 s2 c2", "15-20 s0 c1"],
    ),
    "new batches are out of order": ([], ["5-9 s0 c2", "0-4 s0 c1"], ["0-4 s0 c1", "5-9 s0 c2"]),
}


@pytest.mark.parametrize(("stored", "newer", "expected"), CASES.values(), ids=CASES)
def test_merge(stored: list[str], newer: list[str], expected: list[str]) -> None:
    merged = merge_batches(batches(*stored), batches(*newer), NO_START_OFFSET)
    assert merged == batches(*expected)


def test_start_offset_cuts_batches() -> None:
    stored = batches("0-4 s0 c1", "5-9 s2 c1", "10-12 s0 c1")
    assert merge_batches(stored, (), 7) == batches("7-9 s2 c1", "10-12 s0 c1")
    assert merge_batches(stored, batches("3-8 s0 c2"), 7) == batches(
        "7-8 s0 c2", "9 s2 c1", "10-12 s0 c1"
    )
    assert merge_batches(stored, (), 13) == ()


def test_single_backwards_batch_is_kept_and_fails_with_others() -> None:
    backwards = batches("8-4 s0 c1")
    assert merge_batches((), backwards, 0) == backwards
    with pytest.raises(KafkaError) as raised:
        merge_batches(backwards, batches("0-1 s0 c1"), 0)
    assert raised.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    # It no longer counts once the start offset has passed it.
    assert merge_batches(backwards, batches("6 s0 c1"), 5) == batches("6 s0 c1")


def test_batch_up_to_the_largest_offset_fails_with_others() -> None:
    longest = batches(f"1-{LARGEST} s0 c1")
    assert not is_ordered(longest)
    with pytest.raises(KafkaError):
        merge_batches(longest, batches("1-2 s0 c2"), 0)


def test_extension_merges_only_near_batches() -> None:
    stored = batches(*(f"{offset} s{offset % 4} c1" for offset in range(0, 40, 2)))
    newer = batches("9-11 s2 c2")
    assert extend_batches(stored, newer, 3) == merge_batches(stored, newer, 3)
    assert extend_batches(stored, (), 5) == stored[3:]
    assert extend_batches((), newer, 0) == newer
    assert extend_batches(stored, batches("1-2 s0 c1"), 20) == stored[10:]


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        ([], True),
        (["0-0 s0 c1"], True),
        (["1-0 s0 c1"], False),
        (["0-4 s0 c1", "5-9 s0 c1"], True),
        (["0-4 s0 c1", "4-9 s0 c1"], False),
        (["5-9 s0 c1", "0-4 s0 c1"], False),
    ],
)
def test_is_ordered(described: list[str], *, expected: bool) -> None:
    assert is_ordered(batches(*described)) is expected
