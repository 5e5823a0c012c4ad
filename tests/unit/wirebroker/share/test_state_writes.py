"""Equal neighbors of a write are joined, long writes divided."""

from __future__ import annotations

from tests.support.coordinators.share_kit import KEY
from wirebroker.base.clock import in_one_go
from wirebroker.coordinator.share_partitions.share_partition import SharePartition
from wirebroker.coordinator.share_state.state import StateBatch
from wirebroker.share.state_writes import MOST_BATCHES, parts_of, write_of


def joined(*batches: tuple[int, int, int, int]) -> list[tuple[int, ...]]:
    partition = SharePartition(KEY, 7)
    write = in_one_go(write_of(partition, [StateBatch(*batch) for batch in batches]))
    assert (write.leader_epoch, write.start_offset) == (7, 0)
    return [tuple(batch) for batch in write.batches]


def test_equal_neighbors_are_joined_in_any_order():
    assert joined((4, 4, 2, 1), (0, 1, 2, 1), (2, 3, 2, 1)) == [(0, 4, 2, 1)]


def test_others_are_kept():
    different = [(0, 1, 2, 1), (2, 2, 0, 1), (3, 3, 0, 2), (5, 6, 0, 2)]
    assert joined(*different) == different


def test_parts_have_all_batches():
    batches = [StateBatch(offset, offset, offset % 2 * 2, 1) for offset in range(2_500)]
    write = in_one_go(write_of(SharePartition(KEY, 7), batches))
    parts = parts_of(write)
    assert [len(part.batches) for part in parts] == [MOST_BATCHES, MOST_BATCHES, 500]
    assert [batch for part in parts for batch in part.batches] == batches
    assert {part._replace(batches=()) for part in parts} == {write._replace(batches=())}


def test_short_write_is_one_part():
    write = in_one_go(write_of(SharePartition(KEY, 7), []))
    assert parts_of(write) == [write]
