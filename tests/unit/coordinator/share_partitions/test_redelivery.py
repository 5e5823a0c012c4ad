from __future__ import annotations

import pytest

from tests.support.coordinators.share_kit import LIMITS, ShareKit


def deliveries(limit: int, *, size: int = 16, rounds: int = 60) -> list[tuple[int, int]]:
    """Return (number of records, delivery count) of each fetch of records that always fail."""
    kit = ShareKit(LIMITS._replace(delivery_count_limit=limit))
    kit.append(size)
    result: list[tuple[int, int]] = []
    for _ in range(rounds):
        for first, last, count in kit.fetch("a"):
            result.append((last - first + 1, count))
        kit.leave("a")
        while kit.pending:
            kit.answer()
        kit.check()
    assert kit.partition.start_offset == size, "all are archived"
    return result


def test_bad_records_are_throttled_and_then_delivered_alone():
    # Two deliveries of all, then halves, quarters, and at last single records.
    result = deliveries(5)
    assert result[:3] == [(16, 1), (16, 2), (16, 3)]
    assert [pair for pair in result if pair[1] == 5] == [(1, 5)] * 16
    assert all(count <= 8 for count, delivery in result if delivery == 4)


@pytest.mark.parametrize("limit", [2, 3, 10, 25])
def test_every_record_is_delivered_up_to_the_limit(limit: int):
    result = deliveries(limit, size=4, rounds=150)
    for delivery in range(1, limit + 1):
        assert sum(count for count, of in result if of == delivery) == 4


def test_throttled_record_ends_a_delivery():
    kit = ShareKit(LIMITS._replace(delivery_count_limit=4))
    kit.append(2, 2)
    for _ in range(2):
        kit.fetch("a", 2)
        kit.leave("a")
        kit.answer()
    # Records that were delivered twice come alone, and never with new ones.
    assert kit.fetch("a") == [(0, 0, 3)]
    assert kit.fetch("a") == [(1, 1, 3)]
    assert kit.fetch("a") == [(2, 3, 1)]


def test_limit_that_was_reached_before_the_first_throttled_record_has_no_effect():
    kit = ShareKit(LIMITS._replace(delivery_count_limit=10))
    kit.append(3, 3)
    kit.fetch("a")
    for _ in range(4):
        kit.acknowledge("a", (3, 5, [2]))
        kit.answer()
        kit.fetch("a")
    kit.acknowledge("a", (0, 5, [2] * 6))
    kit.answer()
    # Half of the batch, three records, are acquired when the limit is set to that.
    assert kit.fetch("b") == [(0, 2, 2), (3, 5, 6)]
