"""Reading ahead of a reader: in steps, each once, not beyond the end."""

from __future__ import annotations

from wirebroker.segments.read_ahead import STEP_BYTES, ReadAhead


class _File:
    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def expect(self, position: int, length: int) -> None:
        self.asked.append((position, length))


def asked(*reached: int, start: int = 0, end: int = 100 * STEP_BYTES) -> list[tuple[int, int]]:
    file = _File()
    read_ahead = ReadAhead(file, start, end)
    for position in reached:
        read_ahead.reached(position)
    return file.asked


def test_two_steps_are_read_ahead_and_no_range_twice():
    two = [(10, STEP_BYTES), (10 + STEP_BYTES, STEP_BYTES)]
    assert asked(10, 11, 9 + STEP_BYTES, start=10) == two
    third = (10 + 2 * STEP_BYTES, STEP_BYTES)
    assert asked(10, 10 + STEP_BYTES, 11 + STEP_BYTES, start=10) == [*two, third]


def test_batch_larger_than_a_step_is_caught_up_with():
    assert asked(0, 5 * STEP_BYTES) == [(step * STEP_BYTES, STEP_BYTES) for step in range(7)]


def test_nothing_after_the_end_is_read_ahead():
    assert asked(0, end=3) == [(0, 3)]
    assert asked(5, start=5, end=STEP_BYTES + 6) == [(5, STEP_BYTES), (5 + STEP_BYTES, 1)]
    assert asked(7, 8, start=7, end=7) == []
    assert asked(7, start=7, end=0) == []
