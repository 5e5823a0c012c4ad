"""The order in which a topic's subscribers receive and give partitions.

A member's load is its number of partitions of all topics. Both iterators read the loads at each
step, and the caller changes the load of each member that they yield.

Source: Kafka's UniformHeterogeneousAssignmentBuilder.MemberAssignmentBalancer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


def by_load(subscribers: Sequence[int], loads: list[int]) -> list[int]:
    """Sort ascending positions of members by load, then by position."""
    return sorted(subscribers, key=loads.__getitem__)


def receivers(ordered: Sequence[int], loads: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the member that is to receive the next partition, and its load, without end.

    The least loaded members receive one partition each. Then they have the next load, together
    with members that had it before, and a new round begins.

    Args:
        ordered: The subscribers by load.
        loads: The load of each member; the caller adds 1 for each member yielded.
    """
    load = loads[ordered[0]]
    end = 0
    while True:
        while end < len(ordered) and loads[ordered[end]] == load:
            end += 1
        for position in range(end):
            yield ordered[position], load
        load += 1


def givers(
    ordered: list[int], loads: list[int], can_give: Callable[[int], bool]
) -> Iterator[tuple[int, int]]:
    """Yield the member that is to give the next partition, and its load, while one can give.

    The most loaded members give one partition each. Then they have the next lower load, together
    with members that had it before, and a new round begins.

    Args:
        ordered: The subscribers by load; reordered by this function.
        loads: The load of each member; the caller subtracts 1 for each member yielded.
        can_give: Whether a member still owns a partition that may move.
    """
    # The members of the round are ordered[start:end]. Members after them have nothing to give.
    start = end = len(ordered)
    load = 0
    while True:
        if start < end:
            load -= 1
        elif start == 0:
            return
        else:
            load = loads[ordered[start - 1]]
        while start and loads[ordered[start - 1]] == load:
            start -= 1
        for position in range(end - 1, start - 1, -1):
            member = ordered[position]
            if can_give(member):
                yield member, load
            else:
                end -= 1
                ordered[position] = ordered[end]
                ordered[end] = member
